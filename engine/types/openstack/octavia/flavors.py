"""What the operator offers: OS::Octavia::Flavor, FlavorProfile, AvailabilityZone,
AvailabilityZoneProfile. For administrators."""

from collections.abc import Mapping

from engine.types.contract import Call, ResourceType
from engine.types.openstack.cloud import Cloud, Session, id_of
from engine.types.openstack.object_type import MAX_TEXT, NAME, Mark, ObjectRow, ObjectType
from engine.types.openstack.octavia import schema
from engine.types.openstack.octavia.lookups import FLAVOR_PROFILES, ZONE_PROFILES
from engine.types.openstack.services import LOAD_BALANCER
from engine.words import Json


class OfferType(ObjectType):
    lists_all, reads_unlisted = True, False


class ZoneType(OfferType):
    """An availability zone has no ID: its name is the physical ID, and another one replaces it."""

    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(LOAD_BALANCER, found, NAME)

    def needs_replace(self, call: Call) -> bool:
        return NAME in call.changed

    def mark(self, call: Call) -> Mark:
        return Mark({}, {})

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        return await self.find(session, path, _zone_name(call))

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        return {**await super().fields_for_create(call, session), NAME: _zone_name(call)}


def _zone_name(call: Call) -> str:
    return str(call.properties.get(NAME) or call.own_name[-MAX_TEXT:])


def flavor_types(cloud: Cloud) -> list[ResourceType]:
    return [
        OfferType(
            schema.FLAVOR,
            ObjectRow(
                "flavor", LOAD_BALANCER, "/lbaas/flavors", "flavor", "flavors",
                fields={"flavor_profile": "flavor_profile_id"},
                lookups={"flavor_profile": FLAVOR_PROFILES},
            ),
            cloud,
        ),
        OfferType(
            schema.FLAVOR_PROFILE,
            ObjectRow(
                "flavor profile", LOAD_BALANCER, "/lbaas/flavorprofiles", "flavorprofile",
                "flavorprofiles", marked=False,
            ),
            cloud,
        ),
        ZoneType(
            schema.ZONE,
            ObjectRow(
                "availability zone", LOAD_BALANCER, "/lbaas/availabilityzones",
                "availability_zone", "availability_zones",
                fields={"availability_zone_profile": "availability_zone_profile_id"},
                lookups={"availability_zone_profile": ZONE_PROFILES},
            ),
            cloud,
        ),
        OfferType(
            schema.ZONE_PROFILE,
            ObjectRow(
                "availability zone profile", LOAD_BALANCER, "/lbaas/availabilityzoneprofiles",
                "availability_zone_profile", "availability_zone_profiles", marked=False,
            ),
            cloud,
        ),
    ]  # fmt: skip
