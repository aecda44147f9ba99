"""Volumes as sparse files in a directory.

Contents are real: images, snapshots, clones and backups are copies. A volume with
`testbed-create-fails`, `testbed-delete-fails` or `testbed-extend-fails` in its name fails there;
the metadata `testbed.create_seconds` makes its creation slow, and `testbed.create_file` makes it
wait until this file exists.
"""

import subprocess
import time
from pathlib import Path
from typing import Any

import cinder.privsep
import os_brick.privileged
from cinder import exception, interface
from cinder.image import image_utils
from cinder.volume import configuration, driver, volume_utils
from oslo_config import cfg

from headgate_testbed.held import wait_for_file

OPTIONS = [cfg.StrOpt("file_driver_directory", default="")]
CAPACITY_GB = 100_000
cfg.CONF.register_opts(OPTIONS, group=configuration.SHARED_CONF_GROUP)


@interface.volumedriver
class FileDriver(driver.CloneableImageVD, driver.MigrateVD, driver.BaseVD):
    VERSION = "1.0"
    CI_WIKI_NAME = "none"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.configuration.append_config_values(OPTIONS)
        self._initialized = False

    @staticmethod
    def get_driver_options() -> list[Any]:
        return OPTIONS

    def do_setup(self, context: Any) -> None:
        # Nothing here needs root, so privileged calls run in this process, without sudo.
        for privileged in (cinder.privsep.sys_admin_pctxt, os_brick.privileged.default):
            privileged.set_client_mode(False)

    def check_for_setup_error(self) -> None:
        self.set_initialized()

    def local_path(self, volume: Any) -> str:
        """The file of a volume or snapshot."""
        return str(Path(self.configuration.file_driver_directory) / volume.name)

    def create_volume(self, volume: Any) -> None:
        metadata = volume.metadata or {}
        time.sleep(float(metadata.get("testbed.create_seconds", 0)))
        wait_for_file(metadata.get("testbed.create_file", ""))
        fail_if_requested(volume, "create")
        resize(self.local_path(volume), volume.size)

    def delete_volume(self, volume: Any) -> None:
        fail_if_requested(volume, "delete")
        Path(self.local_path(volume)).unlink(missing_ok=True)

    def extend_volume(self, volume: Any, new_size: int) -> None:
        fail_if_requested(volume, "extend")
        resize(self.local_path(volume), new_size)

    def create_snapshot(self, snapshot: Any) -> None:
        self._copy(snapshot.volume, snapshot, snapshot.volume_size)

    def delete_snapshot(self, snapshot: Any) -> None:
        Path(self.local_path(snapshot)).unlink(missing_ok=True)

    def create_volume_from_snapshot(self, volume: Any, snapshot: Any) -> None:
        self._copy(snapshot, volume, volume.size)

    def create_cloned_volume(self, volume: Any, src_vref: Any) -> None:
        self._copy(src_vref, volume, volume.size)

    def revert_to_snapshot(self, context: Any, volume: Any, snapshot: Any) -> None:
        self._copy(snapshot, volume, volume.size)

    def _copy(self, source: Any, target: Any, gigabytes: int) -> None:
        path = self.local_path(target)
        subprocess.run(["cp", "--sparse=always", self.local_path(source), path], check=True)
        resize(path, gigabytes)

    def clone_image(self, *args: Any) -> tuple[None, bool]:
        return None, False

    def copy_image_to_volume(
        self,
        context: Any,
        volume: Any,
        image_service: Any,
        image_id: str,
        disable_sparse: bool = False,
    ) -> None:
        path = self.local_path(volume)
        image_utils.fetch_to_raw(
            context, image_service, image_id, path, "1M", size=volume.size, run_as_root=False
        )
        resize(path, volume.size)

    def copy_volume_to_image(
        self, context: Any, volume: Any, image_service: Any, image_meta: Any
    ) -> None:
        volume_utils.upload_volume(
            context, image_service, image_meta, self.local_path(volume), volume, run_as_root=False
        )

    def migrate_volume(self, context: Any, volume: Any, host: Any) -> tuple[bool, None]:
        return False, None

    def retype(
        self, context: Any, volume: Any, new_type: Any, diff: Any, host: Any
    ) -> tuple[bool, None]:
        return host["host"] == volume.host, None

    def ensure_export(self, context: Any, volume: Any) -> None:
        pass

    def create_export(self, context: Any, volume: Any, connector: Any) -> None:
        pass

    def remove_export(self, context: Any, volume: Any) -> None:
        pass

    def initialize_connection(self, volume: Any, connector: Any) -> dict[str, Any]:
        data = {
            "device_path": self.local_path(volume),
            "access_mode": "rw",
            "encrypted": False,
        }
        return {"driver_volume_type": "local", "data": data}

    def terminate_connection(self, volume: Any, connector: Any, **kwargs: Any) -> None:
        pass

    def create_export_snapshot(self, context: Any, snapshot: Any, connector: Any) -> None:
        pass

    def remove_export_snapshot(self, context: Any, snapshot: Any) -> None:
        pass

    def initialize_connection_snapshot(
        self, snapshot: Any, connector: Any, **kwargs: Any
    ) -> dict[str, Any]:
        return self.initialize_connection(snapshot, connector)

    def terminate_connection_snapshot(self, snapshot: Any, connector: Any, **kwargs: Any) -> None:
        pass

    def backup_use_temp_snapshot(self) -> bool:
        return False

    def _update_volume_stats(self) -> None:
        backend = self.configuration.safe_get("volume_backend_name")
        pool = {
            "pool_name": backend,
            "total_capacity_gb": CAPACITY_GB,
            "free_capacity_gb": CAPACITY_GB,
            "reserved_percentage": 0,
            "thin_provisioning_support": True,
            "max_over_subscription_ratio": 100,
            "multiattach": True,
            "QoS_support": True,
            "online_extend_support": True,
        }
        self._stats = {
            "volume_backend_name": backend,
            "vendor_name": "Headgate",
            "driver_version": self.VERSION,
            "storage_protocol": "local",
            "pools": [pool],
        }


def fail_if_requested(volume: Any, operation: str) -> None:
    name = f"testbed-{operation}-fails"
    if name in (volume.display_name or ""):
        raise exception.VolumeBackendAPIException(data=name)


def resize(path: str, gigabytes: int) -> None:
    """Give the file this size; create it if it does not exist."""
    with open(path, "ab") as file:
        file.truncate(gigabytes << 30)
