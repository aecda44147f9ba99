"""OS::Manila::SecurityService: a directory service of share servers."""

from collections.abc import Mapping

from engine.types.openstack.cloud import Cloud
from engine.types.openstack.manila.listed_type import ListedType
from engine.types.openstack.manila.schema import SECURITY_SERVICE
from engine.types.openstack.object_type import ObjectRow
from engine.types.openstack.services import SHARED_FILE_SYSTEM
from engine.words import Json


class SecurityService(ListedType):
    detailed_list = "/security-services/detail"

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "security service", SHARED_FILE_SYSTEM, "/security-services", "security_service",
            "security_services", failed=frozenset(),
        )  # fmt: skip
        super().__init__(SECURITY_SERVICE, row, cloud)

    def read_object(self, found: Mapping[str, Json]) -> Mapping[str, Json]:
        """Manila shows the password."""
        return {name: one for name, one in found.items() if name != "password"}

    def is_observed(self, name: str) -> bool:
        return name != "password" and super().is_observed(name)
