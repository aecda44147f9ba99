"""The guest agents of all databases of Trove, in one process.

The API of guest agents, the broker, and the reports to the conductor of Trove are real; a database
is two lists in memory, of databases and users. An instance with `testbed-create-fails` in its name
does not get a database.
"""

import time
from typing import Any

import oslo_messaging
from oslo_messaging.rpc import dispatcher

CREATE_FAILS = "testbed-create-fails"
#: Seconds between two reads of the instances, and between two reports of one.
PAUSE, REPORT_PAUSE = 0.3, 1.0
HEALTHY, STOPPED, FAILED = "healthy", "shutdown", "failed to spawn"
#: Waits for the other members of its cluster.
READY = "instance ready"


class Guest:
    """The guest agent of one instance."""

    def __init__(self, instance: Any, api_version: str) -> None:
        self.target = oslo_messaging.Target(version=api_version)
        self._name = str(instance.name)
        self._databases: dict[str, dict[str, Any]] = {}
        self._users: dict[tuple[str, str], dict[str, Any]] = {}
        #: "": it has no database.
        self.status = ""

    def prepare(
        self, context: Any, databases: Any, users: Any, cluster_config: Any, **_: Any
    ) -> None:
        self.create_database(context, databases or [])
        self.create_user(context, users or [])
        self.status = READY if cluster_config else HEALTHY
        if CREATE_FAILS in self._name:
            self.status = FAILED

    def cluster_complete(self, context: Any) -> None:
        self.status = HEALTHY

    def create_database(self, context: Any, databases: list[dict[str, Any]]) -> None:
        self._databases |= {one["_name"]: one for one in databases}

    def delete_database(self, context: Any, database: dict[str, Any]) -> None:
        self._databases.pop(database["_name"], None)

    def list_databases(self, context: Any, **_: Any) -> tuple[list[Any], None]:
        return list(self._databases.values()), None

    def create_user(self, context: Any, users: list[dict[str, Any]]) -> None:
        for one in users:
            self._users[one["_name"], one.get("_host") or "%"] = {"_host": "%", **one}

    def delete_user(self, context: Any, user: dict[str, Any]) -> None:
        self._users.pop((user["_name"], user.get("_host") or "%"), None)

    def list_users(self, context: Any, **_: Any) -> tuple[list[Any], None]:
        return list(self._users.values()), None

    def get_user(self, context: Any, username: str, hostname: str) -> Any:
        return self._users.get((username, hostname))

    def change_passwords(self, context: Any, users: list[dict[str, Any]]) -> None:
        for one in users:
            self._users[one["name"], one["host"] or "%"]["_password"] = one["password"]

    def update_attributes(
        self, context: Any, username: str, hostname: str, user_attrs: dict[str, Any]
    ) -> None:
        changed = {f"_{name}": one for name, one in user_attrs.items() if one}
        user = {**self._users.pop((username, hostname)), **changed}
        self._users[user["_name"], user["_host"]] = user

    def list_access(self, context: Any, username: str, hostname: str) -> list[Any]:
        granted = self._users[username, hostname].get("_databases") or []
        return [{"_collate": None, "_character_set": None, **one} for one in granted]

    def grant_access(
        self, context: Any, username: str, hostname: str, databases: list[str]
    ) -> None:
        known = self.list_access(context, username, hostname)
        added = [{"_name": name} for name in databases]
        self._users[username, hostname]["_databases"] = known + added

    def revoke_access(self, context: Any, username: str, hostname: str, database: str) -> None:
        left = self.list_access(context, username, hostname)
        left = [one for one in left if one["_name"] != database]
        self._users[username, hostname]["_databases"] = left

    def stop_db(self, context: Any, **_: Any) -> None:
        self.status = STOPPED

    def restart(self, context: Any) -> None:
        self.status = HEALTHY

    def start_db_with_conf_changes(self, context: Any, **_: Any) -> None:
        self.status = HEALTHY

    def get_filesystem_stats(self, context: Any, fs_path: Any) -> dict[str, Any]:
        return {"used": 0.1, "total": 1.0, "free": 0.9}

    def _nothing(self, context: Any, **_: Any) -> None:
        pass

    resize_fs = mount_volume = unmount_volume = _nothing
    install_cluster = reset_admin_password = _nothing
    update_overrides = apply_overrides = reset_configuration = _nothing


def has_server(instance: Any) -> bool:
    """Whether the server of an instance runs, on which its guest agent would be."""
    from novaclient.exceptions import NotFound
    from trove.common.clients_admin import nova_client_trove_admin

    if instance.compute_instance_id is None:
        return False
    try:
        server = nova_client_trove_admin(None).servers.get(instance.compute_instance_id)
    except NotFound:
        return False
    return bool(server.status == "ACTIVE")


def main() -> None:
    from trove.cmd.common import initialize

    initialize()
    from trove import rpc
    from trove.common.context import TroveContext
    from trove.common.rpc.secure_serializer import SecureSerializer
    from trove.common.rpc.serializer import TroveRequestContextSerializer
    from trove.conductor.api import API as Conductor
    from trove.guestagent.api import API
    from trove.instance.models import DBInstance

    serializer = SecureSerializer(TroveRequestContextSerializer(None), None)
    conductor = Conductor(TroveContext())
    guests: dict[str, Guest] = {}
    servers: dict[str, Any] = {}
    reported = 0.0
    while True:
        present = {one.id: one for one in DBInstance.find_all(deleted=False).all()}
        for instance_id in guests.keys() - present.keys():
            del guests[instance_id]
            servers.pop(instance_id).stop()
        for instance_id in present.keys() - guests.keys():
            if not has_server(present[instance_id]):
                continue
            guests[instance_id] = Guest(present[instance_id], API.API_LATEST_VERSION)
            target = oslo_messaging.Target(topic=f"guestagent.{instance_id}", server=instance_id)
            servers[instance_id] = oslo_messaging.get_rpc_server(
                rpc.TRANSPORT, target, [guests[instance_id]], executor="threading",
                serializer=serializer, access_policy=dispatcher.DefaultRPCAccessPolicy,
            )  # fmt: skip
            servers[instance_id].start()
        if time.monotonic() > reported + REPORT_PAUSE:
            reported = time.monotonic()
            for instance_id, guest in guests.items():
                if guest.status:
                    payload = {"service_status": guest.status}
                    conductor.heartbeat(instance_id, payload, sent=time.time())
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
