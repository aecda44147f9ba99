"""The service catalog: OS::Keystone::Region, Service, Endpoint."""

from collections.abc import Mapping

from engine.types.contract import Call, Outcome, ResourceType
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.cloud_operation import keep_for_successor
from engine.types.openstack.keystone import schemas
from engine.types.openstack.keystone.keystone_type import KeystoneType, own_name
from engine.types.openstack.keystone.lookups import REGIONS, SERVICES
from engine.types.openstack.object_type import DESCRIPTION, Mark, ObjectRow
from engine.types.openstack.services import IDENTITY
from engine.words import Json

ID = "id"


class RegionType(KeystoneType):
    """A region has no name, and its ID may be that of the template: the description marks it."""

    async def delete(self, call: Call) -> Outcome:
        return await keep_for_successor(self, call) or await super().delete(call)

    def mark(self, call: Call) -> Mark:
        fields = {DESCRIPTION: f"Created by Headgate: operation {call.operation_key}"}
        if call.properties.get(ID) is None:
            fields[ID] = own_name(call)
        return Mark(fields, {}, renames=call.properties.get(DESCRIPTION) is not None)

    def renamed_fields(self, call: Call) -> Mapping[str, Json]:
        return {DESCRIPTION: call.properties[DESCRIPTION]}


def catalog_types(cloud: Cloud) -> list[ResourceType]:
    return [
        RegionType(
            schemas.REGION,
            ObjectRow(
                "region", IDENTITY, "/regions", "region", "regions",
                fields={"parent_region": "parent_region_id"}, lookups={"parent_region": REGIONS},
                named=False, marked=False, update_method="PATCH",
            ),
            cloud,
        ),
        KeystoneType(
            schemas.SERVICE,
            ObjectRow(
                "service", IDENTITY, "/services", "service", "services", marked=False,
                update_method="PATCH",
            ),
            cloud,
        ),
        KeystoneType(
            schemas.ENDPOINT,
            ObjectRow(
                "endpoint", IDENTITY, "/endpoints", "endpoint", "endpoints",
                fields={"region": "region_id", "service": "service_id"},
                lookups={"region": REGIONS, "service": SERVICES}, marked=False,
                update_method="PATCH",
            ),
            cloud,
        ),
    ]  # fmt: skip
