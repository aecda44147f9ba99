"""Who can do what: OS::Keystone::Project, User, Group, Role, Domain."""

from collections.abc import Mapping, Sequence

from engine.errors import Findings
from engine.types.contract import Call, ResourceType
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.keystone import schemas
from engine.types.openstack.keystone.grants import (
    Actor,
    change_grants,
    check_roles,
    known_grants,
    wanted_grants,
)
from engine.types.openstack.keystone.keystone_type import DOMAIN, KeystoneType
from engine.types.openstack.keystone.lookups import DOMAINS, GROUPS, PROJECTS
from engine.types.openstack.names import UnknownObject
from engine.types.openstack.object_type import ObjectRow
from engine.types.openstack.services import IDENTITY
from engine.words import Json

ROLES, MEMBERSHIPS = "roles", "groups"


def touches(call: Call, name: str) -> bool:
    """Whether a create or update concerns a property: any, if it repeats an update."""
    return call.previous is None or name in call.changed or not call.changed


class GroupType(KeystoneType):
    """An object that has roles: a group. Its role assignments end with it."""

    actor = Actor.GROUP

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_roles(properties, place, findings)

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        if touches(call, ROLES):
            object_id = self.id_of(found)
            wanted = await wanted_grants(session, self.actor, object_id, call.properties)
            before = await known_grants(session, self.actor, object_id, call.previous or {})
            await change_grants(session, add=wanted, remove=before - wanted)
        return found


class UserType(GroupType):
    """A user, who may belong to groups."""

    actor = Actor.USER

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        if touches(call, MEMBERSHIPS):
            await self._change_groups(call, session, self.id_of(found))
        return await super().follow_up(call, session, path, found)

    async def _change_groups(self, call: Call, session: Session, user: str) -> None:
        names = call.properties.get(MEMBERSHIPS) or []
        wanted = [await GROUPS.find_id(session, str(one)) for one in names]
        for group in wanted:
            path = f"/groups/{segment(group)}/users/{segment(user)}"
            await session.send(IDENTITY, "PUT", path, "add the user to a group")
        for name in (call.previous or {}).get(MEMBERSHIPS) or []:
            try:
                group = await GROUPS.find_id(session, str(name))
            except UnknownObject:
                continue
            if group not in wanted:
                path = f"/groups/{segment(group)}/users/{segment(user)}"
                await session.delete(IDENTITY, path, "remove the user from a group")


class DomainType(KeystoneType):
    """A domain, which Keystone deletes only when it is disabled."""

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        await self.put(session, path, object_id, {"enabled": False})
        await super().remove(call, session, path, object_id)


def identity_types(cloud: Cloud) -> list[ResourceType]:
    def row(what: str, separate: Sequence[str] = ()) -> ObjectRow:
        lookups = {DOMAIN: DOMAINS, "parent": PROJECTS, "default_project": PROJECTS}
        fields = {
            DOMAIN: "domain_id", "parent": "parent_id", "default_project": "default_project_id",
        }  # fmt: skip
        return ObjectRow(
            what, IDENTITY, f"/{what}s", what, f"{what}s", fields=fields, lookups=lookups,
            separate=frozenset(separate), marked=False, update_method="PATCH",
        )  # fmt: skip

    return [
        KeystoneType(schemas.PROJECT, row("project"), cloud),
        UserType(schemas.USER, row("user", (ROLES, MEMBERSHIPS)), cloud),
        GroupType(schemas.GROUP, row("group", (ROLES,)), cloud),
        KeystoneType(schemas.ROLE, row("role"), cloud),
        DomainType(schemas.DOMAIN, row("domain"), cloud),
    ]
