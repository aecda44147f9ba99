"""The test bed: servers, networks and volumes work, fail on request, and end with their run."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection
from openstack.exceptions import ResourceFailure

from tests.openstack.cloud import Project
from tests.support.program import PATIENCE, intervals

FLAVOR, LARGER_FLAVOR, TOO_LARGE = "m1.nano", "m1.tiny", "testbed.too-large"


def until(check: Callable[[], Any]) -> Any:
    """Wait until `check` returns a true value; return it."""
    deadline, pauses = time.monotonic() + PATIENCE, intervals()
    while not (found := check()):
        assert time.monotonic() < deadline
        time.sleep(next(pauses))
    return found


@contextmanager
def network(cloud: Connection) -> Iterator[Any]:
    """A network with a subnet and a router to the public network."""
    net = cloud.network.create_network(name="net")
    subnet = cloud.network.create_subnet(network_id=net.id, ip_version=4, cidr="10.0.0.0/24")
    public = cloud.network.find_network("public", ignore_missing=False)
    gateway = {"network_id": public.id}
    router = cloud.network.create_router(name="router", external_gateway_info=gateway)
    cloud.network.add_interface_to_router(router, subnet=subnet.id)
    yield net
    cloud.network.remove_interface_from_router(router, subnet=subnet.id)
    cloud.network.delete_router(router)
    cloud.network.delete_network(net)


def create_server(cloud: Connection, flavor: str = FLAVOR, **more: Any) -> Any:
    image = cloud.image.find_image("cirros", ignore_missing=False)
    flavor_id = cloud.compute.find_flavor(flavor, ignore_missing=False).id
    return cloud.compute.create_server(
        name="server", image_id=image.id, flavor_id=flavor_id, **{"networks": "none", **more}
    )


@contextmanager
def server(cloud: Connection, flavor: str = FLAVOR, **more: Any) -> Iterator[Any]:
    """A server; it may be in any state. A deleted server leaves Nova's lists last."""
    created = create_server(cloud, flavor, **more)
    try:
        yield created
    finally:
        cloud.compute.delete_server(created)
        cloud.compute.wait_for_delete(created, interval=0.3)
        until(lambda: created.id not in [one.id for one in cloud.compute.servers(details=False)])


def until_active(cloud: Connection, created: Any, status: str = "ACTIVE") -> Any:
    return cloud.compute.wait_for_server(created, status, interval=0.3, wait=PATIENCE)


def test_a_server_with_port_volume_and_floating_ip(project: Project) -> None:
    cloud = project.cloud
    with network(cloud) as net:
        port = cloud.network.create_port(network_id=net.id, name="port")
        volume = cloud.block_storage.create_volume(size=1, name="data")
        with server(cloud, networks=[{"port": port.id}]) as created:
            until_active(cloud, created)
            assert until(lambda: cloud.network.get_port(port).status == "ACTIVE")
            public = cloud.network.find_network("public", ignore_missing=False)
            address = cloud.network.create_ip(floating_network_id=public.id, port_id=port.id)
            assert until(lambda: cloud.network.get_ip(address).status == "ACTIVE")
            cloud.block_storage.wait_for_status(volume, "available", interval=0.3)
            cloud.compute.create_volume_attachment(created, volume_id=volume.id)
            cloud.block_storage.wait_for_status(volume, "in-use", interval=0.3)
            cloud.network.delete_ip(address)
        cloud.network.delete_port(port)
        cloud.block_storage.wait_for_status(volume, "available", interval=0.3)
        cloud.block_storage.delete_volume(volume.id)
        cloud.block_storage.wait_for_delete(volume, interval=0.3)


def test_a_resize_waits_for_confirmation(project: Project) -> None:
    cloud = project.cloud
    with server(cloud) as created:
        until_active(cloud, created)
        larger = cloud.compute.find_flavor(LARGER_FLAVOR, ignore_missing=False)
        cloud.compute.resize_server(created, larger.id)
        until_active(cloud, created, "VERIFY_RESIZE")
        cloud.compute.confirm_server_resize(created)
        assert until_active(cloud, created).flavor.name == LARGER_FLAVOR


@pytest.mark.parametrize(
    ("flavor", "metadata", "message"),
    [
        (FLAVOR, {"testbed.spawn_error": "the disk is on fire"}, "the disk is on fire"),
        (TOO_LARGE, {}, "No valid host was found"),
    ],
)
def test_a_server_fails_on_request(
    project: Project, flavor: str, metadata: dict[str, str], message: str
) -> None:
    cloud = project.cloud
    with server(cloud, flavor, metadata=metadata) as created:
        with pytest.raises(ResourceFailure):
            until_active(cloud, created)
        # Nova writes the fault of a server that no host has room for after its status.
        fault = until(lambda: cloud.compute.get_server(created).fault)
        assert message in fault["message"]


def test_a_server_is_slow_on_request(project: Project) -> None:
    cloud = project.cloud
    with server(cloud, metadata={"testbed.spawn_seconds": "5"}) as created:
        active = until_active(cloud, created)
        launched = datetime.fromisoformat(active.launched_at).replace(tzinfo=UTC)
        # Both times are whole seconds.
        assert launched - datetime.fromisoformat(active.created_at) >= timedelta(seconds=4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("testbed-bind-fails", "binding_failed"), ("testbed-stays-down", "ovs")],
)
def test_a_port_does_not_become_active_on_request(
    project: Project, name: str, expected: str
) -> None:
    cloud = project.cloud
    admin = project.connect(project.add_user(("admin",)))
    net = cloud.network.create_network(name="net")
    cloud.network.create_subnet(network_id=net.id, ip_version=4, cidr="10.0.0.0/24")
    # Neutron binds a port when it gets a host.
    port = admin.network.create_port(
        network_id=net.id, name=name, binding_host_id="compute1", device_owner="compute:nova"
    )
    assert (port.status, port.binding_vif_type) == ("DOWN", expected)
    admin.network.delete_port(port)
    cloud.network.delete_network(net)


def test_a_volume_fails_on_request(project: Project) -> None:
    cloud = project.cloud
    volume = cloud.block_storage.create_volume(size=1, name="testbed-create-fails")
    with pytest.raises(ResourceFailure):
        cloud.block_storage.wait_for_status(volume, "available", interval=0.3)
    cloud.block_storage.delete_volume(volume.id)
    cloud.block_storage.wait_for_delete(volume, interval=0.3)


# Starts a test bed as a run of tests does.
RUN = """
import os, sys
from pathlib import Path
from tests.openstack.testbed.control import start
start(Path(sys.argv[1]), parent=os.getpid())
"""


@pytest.mark.parametrize("victim", ["run", "supervisor"])
def test_a_testbed_ends_when_a_process_is_killed(data_directory: Path, victim: str) -> None:
    run = subprocess.Popen([sys.executable, "-c", RUN, str(data_directory)])
    pids = data_directory / "pids"
    try:
        until(lambda: (pids / "mariadb").exists())
        supervisor = next(
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and str(data_directory) in command_line(entry)
            and "supervise" in command_line(entry)
        )  # fmt: skip
        processes = [supervisor, *(int(one.read_text()) for one in pids.iterdir())]
        assert all(is_running(pid) for pid in processes)
        until(lambda: processes_of(data_directory, "epmd"))
        if victim == "supervisor":
            os.kill(supervisor, signal.SIGKILL)
            run.wait()
    finally:
        run.kill()
        run.wait()
    until(lambda: not any(is_running(pid) for pid in processes))
    ports = json.loads((data_directory / "layout.json").read_text())["ports"]
    listening = {
        int(line.split()[1].rpartition(":")[2], 16)
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    }
    assert listening.isdisjoint(ports.values())
    until(lambda: not processes_of(data_directory))


def processes_of(directory: Path, name: str = "") -> list[str]:
    """The processes that have a test bed's directory in their commands or environments. name: of
    their program; "": of any."""
    return [
        entry.name
        for entry in Path("/proc").iterdir()
        if name in read_text(entry / "comm")
        and any(str(directory) in read_text(entry / one) for one in ("cmdline", "environ"))
    ]


def command_line(entry: Path) -> str:
    """The command of a process, or an empty string."""
    return read_text(entry / "cmdline")


def read_text(file: Path) -> str:
    """The text of a file of a process, or an empty string."""
    try:
        return file.read_text() if file.parent.name.isdigit() else ""
    except (OSError, UnicodeDecodeError):
        return ""


def is_running(pid: int) -> bool:
    return bool(command_line(Path(f"/proc/{pid}")))
