"""The objects of Manila that templates name, and the constraints on such names."""

from collections.abc import Sequence
from typing import Final

from engine.types.openstack.cloud import Cloud
from engine.types.openstack.names import Lookup, ObjectConstraint
from engine.types.openstack.services import SHARED_FILE_SYSTEM

SHARE_TYPES: Final = Lookup(
    "share type", SHARED_FILE_SYSTEM, "/types", "share_types", filters=False
)
SHARE_NETWORKS: Final = Lookup(
    "share network", SHARED_FILE_SYSTEM, "/share-networks", "share_networks"
)
SNAPSHOTS: Final = Lookup("share snapshot", SHARED_FILE_SYSTEM, "/snapshots", "snapshots")
SECURITY_SERVICES: Final = Lookup(
    "security service", SHARED_FILE_SYSTEM, "/security-services", "security_services"
)


def constraints(cloud: Cloud) -> Sequence[ObjectConstraint]:
    known = {
        "manila.share_type": SHARE_TYPES,
        "manila.share_network": SHARE_NETWORKS,
        "manila.share_snapshot": SNAPSHOTS,
    }
    return tuple(ObjectConstraint(name, lookup, cloud) for name, lookup in known.items())
