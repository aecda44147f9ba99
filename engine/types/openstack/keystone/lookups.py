"""The collections of Keystone whose objects templates name, and the constraints on such names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.names import ID, Lookup, ObjectConstraint
from engine.types.openstack.services import IDENTITY
from engine.words import Json


@dataclass(frozen=True, slots=True)
class IdentityLookup(Lookup):
    """IDs have any form, such as `default`."""

    async def find_id(self, session: Session, value: str, project: str = "") -> str:
        return value if ID.fullmatch(value) else await self.verify(session, value, project)

    async def verify(self, session: Session, value: str, project: str = "") -> str:
        if await self.exists(session, value):
            return value
        found = self._choose(value, await self.find_named(session, value), project)
        if found is None:
            raise await self.unknown(session, value)
        return found


@dataclass(frozen=True, slots=True)
class RegionLookup(IdentityLookup):
    """Regions have no names."""

    def name_of(self, found: Mapping[str, Json]) -> str:
        return str(found.get("id") or "")


DOMAINS: Final = IdentityLookup("domain", IDENTITY, "/domains", "domains")
PROJECTS: Final = IdentityLookup("project", IDENTITY, "/projects", "projects")
USERS: Final = IdentityLookup("user", IDENTITY, "/users", "users")
GROUPS: Final = IdentityLookup("group", IDENTITY, "/groups", "groups")
ROLES: Final = IdentityLookup("role", IDENTITY, "/roles", "roles")
SERVICES: Final = IdentityLookup("service", IDENTITY, "/services", "services")
REGIONS: Final = RegionLookup("region", IDENTITY, "/regions", "regions", filters=False)

#: Custom constraints by name.
CONSTRAINTS: Final[Mapping[str, Lookup]] = {
    "keystone.domain": DOMAINS,
    "keystone.project": PROJECTS,
    "keystone.user": USERS,
    "keystone.group": GROUPS,
    "keystone.role": ROLES,
    "keystone.service": SERVICES,
    "keystone.region": REGIONS,
}


def identity_constraints(cloud: Cloud) -> list[ObjectConstraint]:
    return [ObjectConstraint(name, lookup, cloud) for name, lookup in CONSTRAINTS.items()]
