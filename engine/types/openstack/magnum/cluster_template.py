"""OS::Magnum::ClusterTemplate: the settings of clusters."""

from collections.abc import Mapping
from typing import Final

from engine.errors import Findings
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.magnum.magnum_type import MagnumType
from engine.types.openstack.magnum.schema import CLUSTER_TEMPLATE
from engine.types.openstack.neutron.lookups import NETWORKS, SUBNETS
from engine.types.openstack.object_type import ObjectRow
from engine.types.openstack.services import CONTAINER_INFRASTRUCTURE
from engine.words import Json

LABELS: Final = "labels"
#: The volume drivers of each kind of cluster.
_VOLUME_DRIVERS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes": ("cinder",),
    "swarm": ("rexray",),
    "mesos": ("rexray",),
}


class ClusterTemplate(MagnumType):
    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "cluster template", CONTAINER_INFRASTRUCTURE, "/clustertemplates", "",
            "clustertemplates",
            fields={
                "image": "image_id", "flavor": "flavor_id", "master_flavor": "master_flavor_id",
                "keypair": "keypair_id", "external_network": "external_network_id",
            },
            lookups={
                "external_network": NETWORKS, "fixed_network": NETWORKS, "fixed_subnet": SUBNETS,
            },
            marked=False,
        )  # fmt: skip
        super().__init__(CLUSTER_TEMPLATE, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        coe, driver = properties.get("coe"), properties.get("volume_driver")
        supported = _VOLUME_DRIVERS.get(str(coe), ())
        if driver is None or not supported or driver in supported:
            return
        reason = f"is not a volume driver of {coe}"
        findings.add(f"{place}.volume_driver", reason, f"Use {' or '.join(supported)}.")

    # ---- observation

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        """Magnum keeps the values of labels as texts."""
        if name == LABELS and isinstance(desired, Mapping):
            desired = {key: str(one) for key, one in desired.items()}
        return super().is_same(name, desired, observed)
