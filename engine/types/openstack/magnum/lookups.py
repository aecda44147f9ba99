"""The objects of Magnum that templates name, and the constraints on such names."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.types.openstack.cloud import Cloud, id_of
from engine.types.openstack.names import Lookup, ObjectConstraint
from engine.types.openstack.services import CONTAINER_INFRASTRUCTURE
from engine.words import Json

UUID: Final = "uuid"


class _UuidLookup(Lookup):
    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(self.service, found, UUID)


CLUSTER_TEMPLATES: Final = _UuidLookup(
    "cluster template", CONTAINER_INFRASTRUCTURE, "/clustertemplates", "clustertemplates",
    filters=False,
)  # fmt: skip
CLUSTERS: Final = _UuidLookup(
    "cluster", CONTAINER_INFRASTRUCTURE, "/clusters", "clusters", filters=False
)


def constraints(cloud: Cloud) -> Sequence[ObjectConstraint]:
    known = {"magnum.cluster_template": CLUSTER_TEMPLATES, "magnum.cluster": CLUSTERS}
    return tuple(ObjectConstraint(name, lookup, cloud) for name, lookup in known.items())
