"""A hypervisor without machines: Nova's own fake driver, which also

- knows its servers after a restart, and moves them between hosts;
- is slow or fails if the metadata of a server asks for it: `testbed.spawn_seconds`,
  `testbed.spawn_error`, `testbed.delete_seconds`, `testbed.delete_error`, `testbed.resize_seconds`,
  `testbed.resize_error`. An error is the text of the failure;
- creates a server only when the file that its metadata name in `testbed.spawn_file` exists.
"""

import time
from typing import Any, ClassVar

from nova import context, exception, objects
from nova.compute import power_state, vm_states
from nova.virt import fake

from headgate_testbed.held import wait_for_file

#: Servers in these states are not on the host.
ABSENT = (vm_states.BUILDING, vm_states.ERROR, vm_states.SHELVED_OFFLOADED)


class TestBedDriver(fake.FakeDriverWithoutFakeNodes):
    """The base class keeps the identity of its node in the state directory."""

    capabilities: ClassVar[dict[str, bool]] = {
        **fake.FakeDriver.capabilities,
        "supports_migrate_to_same_host": True,
    }

    def init_host(self, host: str) -> None:
        super().init_host(host)
        admin = context.get_admin_context()
        for server in objects.InstanceList.get_by_host(admin, host, expected_attrs=["flavor"]):
            if server.vm_state not in ABSENT:
                flavor = server.flavor
                self.resources.claim(vcpus=flavor.vcpus, mem=flavor.memory_mb, disk=flavor.root_gb)
                self._add(server, server.power_state)

    def spawn(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        pause(instance, "spawn")
        wait_for_file(requested(instance, "spawn_file"))
        error = requested(instance, "spawn_error")
        if error:  # another exception makes Nova try the next host
            raise exception.BuildAbortException(instance_uuid=instance.uuid, reason=error)
        super().spawn(context, instance, *args, **kwargs)

    def destroy(self, context: Any, instance: Any, *args: Any, **kwargs: Any) -> None:
        disturb(instance, "delete")
        if instance.uuid in self.instances:
            super().destroy(context, instance, *args, **kwargs)

    def migrate_disk_and_power_off(
        self, context: Any, instance: Any, *args: Any, **kwargs: Any
    ) -> Any:
        disturb(instance, "resize")
        return super().migrate_disk_and_power_off(context, instance, *args, **kwargs)

    def power_off(self, instance: Any, timeout: int = 0, retry_interval: int = 0) -> None:
        if instance.uuid not in self.instances:
            self._add(instance, power_state.RUNNING)
        super().power_off(instance, timeout, retry_interval)

    def _add(self, instance: Any, state: int) -> None:
        self.instances[instance.uuid] = fake.FakeInstance(instance.name, state, instance.uuid)


def requested(instance: Any, key: str) -> str:
    """The value that the server's metadata has for the test bed, or an empty string."""
    return str((instance.metadata or {}).get(f"testbed.{key}", ""))


def pause(instance: Any, operation: str) -> None:
    time.sleep(float(requested(instance, f"{operation}_seconds") or 0))


def disturb(instance: Any, operation: str) -> None:
    """Be slow, or fail, as requested."""
    pause(instance, operation)
    error = requested(instance, f"{operation}_error")
    if error:
        raise exception.NovaException(error)
