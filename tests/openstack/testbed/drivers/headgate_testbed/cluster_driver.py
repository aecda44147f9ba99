"""Clusters without machines: a driver of Magnum.

The API, the database and the states of clusters are Magnum's own; the driver ends each change. A
label of the cluster template makes it fail or wait: `testbed.create_error`, `testbed.update_error`
and `testbed.delete_error` are the text of a failure; the change ends when the file of
`testbed.create_file`, `testbed.update_file` or `testbed.delete_file` exists. An error whose text
ends with `once` passes when the change is repeated.
"""

import threading
import time
from typing import Any, ClassVar

from magnum.common import context, exception
from magnum.drivers.common import driver
from magnum.objects import Cluster
from magnum.service.periodic import ClusterUpdateJob
from oslo_service import loopingcall

from headgate_testbed.held import wait_for_file

IN_PROGRESS = "_IN_PROGRESS"
#: Seconds between two reads of a cluster that changes.
PAUSE = 0.2
#: Looks until a cluster must have begun its change.
LIMIT = 100


class TestBedDriver(driver.Driver):
    #: The failures that have occurred: of clusters, by the kind of the change.
    failed: ClassVar[set[tuple[str, str]]] = set()

    @property
    def provides(self) -> list[dict[str, str]]:
        return [{"server_type": "vm", "os": "testbed", "coe": "kubernetes"}]

    def create_cluster(self, context: Any, cluster: Any, cluster_create_timeout: int) -> None:
        cluster.stack_id = cluster.uuid
        end_later(cluster.uuid)

    def update_cluster(
        self, context: Any, cluster: Any, scale_manager: Any = None, rollback: bool = False
    ) -> None:
        end_later(cluster.uuid)

    def delete_cluster(self, context: Any, cluster: Any) -> None:
        end_later(cluster.uuid)

    def resize_cluster(self, context: Any, cluster: Any, *args: Any, **kwargs: Any) -> None:
        end_later(cluster.uuid)

    def update_cluster_status(
        self, context: Any, cluster: Any, use_admin_ctx: bool = False
    ) -> None:
        """End the change of a cluster. Magnum also calls this every ten seconds."""
        change = str(cluster.status).removesuffix(IN_PROGRESS)
        labels, kind = cluster.labels or {}, change.lower()
        wait_for_file(labels.get(f"testbed.{kind}_file", ""))
        error = labels.get(f"testbed.{kind}_error", "")
        if error.endswith("once") and (cluster.uuid, kind) in self.failed:
            error = ""
        if error:
            self.failed.add((cluster.uuid, kind))
            cluster.status, cluster.status_reason = f"{change}_FAILED", error
            cluster.save()
            return
        if kind == "create":
            cluster.api_address = "https://172.24.4.3:6443"
            cluster.coe_version = "v1.99.0"
        cluster.status, cluster.status_reason = f"{change}_COMPLETE", None
        for group in cluster.nodegroups:
            group.status = cluster.status
            addresses = "172.24.4" if group.role == "worker" else "172.24.5"
            group.node_addresses = [f"{addresses}.{one + 1}" for one in range(group.node_count)]
            group.save()
        cluster.save()

    def upgrade_cluster(self, *args: Any, **kwargs: Any) -> None:
        raise exception.NotSupported(operation="an upgrade")

    def _unsupported(self, *args: Any, **kwargs: Any) -> None:
        raise exception.NotSupported(operation="this operation")

    create_federation = update_federation = delete_federation = _unsupported
    create_nodegroup = update_nodegroup = delete_nodegroup = _unsupported


def end_later(cluster_id: str) -> None:
    threading.Thread(target=_end, args=(cluster_id,), daemon=True).start()


def _end(cluster_id: str) -> None:
    """Wait until the conductor has stored that the change is in progress, then end it."""
    admin = context.make_admin_context(all_tenants=True)
    context.set_ctx(admin)
    for _ in range(LIMIT):
        time.sleep(PAUSE)
        cluster = Cluster.get_by_uuid(admin, cluster_id)
        if str(cluster.status).endswith(IN_PROGRESS):
            try:
                ClusterUpdateJob(admin, cluster).update_status()
            except loopingcall.LoopingCallDone:
                return
