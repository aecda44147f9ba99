"""Role assignments of users and groups in projects and domains, as Keystone's API has them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.errors import Findings
from engine.types.openstack.cloud import Session, segment
from engine.types.openstack.keystone.lookups import DOMAINS, PROJECTS, ROLES
from engine.types.openstack.names import UnknownObject
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import IDENTITY
from engine.words import Json

_PROJECT, _DOMAIN, _ROLE = "project", "domain", "role"


class Actor(StrEnum):
    """Who has a role."""

    USER = "user"
    GROUP = "group"


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One role assignment. actor_id, scope_id, role_id: IDs. scope: `project` or `domain`."""

    actor: Actor
    actor_id: str
    scope: str
    scope_id: str
    role_id: str

    @property
    def path(self) -> str:
        return (
            f"/{self.scope}s/{segment(self.scope_id)}"
            f"/{self.actor}s/{segment(self.actor_id)}/roles/{segment(self.role_id)}"
        )

    def as_json(self) -> Json:
        return [self.actor.value, self.actor_id, self.scope, self.scope_id, self.role_id]

    @staticmethod
    def from_json(value: Json) -> "Grant":
        return Grant(Actor(value[0]), *map(str, value[1:]))


def check_roles(properties: Mapping[str, Json], place: str, findings: Findings) -> None:
    """Report entries of `roles` that name both a project and a domain, or none."""
    for number, one in enumerate(properties.get("roles") or []):
        if not isinstance(one, Mapping):
            continue
        named = [name for name in (_PROJECT, _DOMAIN) if one.get(name) is not None]
        if len(named) != 1:
            reason = "has both project and domain" if named else "has neither project nor domain"
            findings.add(f"{place}.roles.{number}", reason, "Name one of them.")


async def wanted_grants(
    session: Session, actor: Actor, actor_id: str, properties: Mapping[str, Json]
) -> set[Grant]:
    """The role assignments that `roles` lists. Raises CloudError."""
    return {await _grant(session, actor, actor_id, one) for one in properties.get("roles") or []}


async def known_grants(
    session: Session, actor: Actor, actor_id: str, properties: Mapping[str, Json]
) -> set[Grant]:
    """As `wanted_grants`, without those whose role, project or domain no longer exists."""
    found = set()
    for one in properties.get("roles") or []:
        try:
            found.add(await _grant(session, actor, actor_id, one))
        except UnknownObject:
            continue
    return found


async def _grant(session: Session, actor: Actor, actor_id: str, entry: Mapping[str, Json]) -> Grant:
    scope = _PROJECT if entry.get(_PROJECT) is not None else _DOMAIN
    lookup = PROJECTS if scope == _PROJECT else DOMAINS
    scope_id = await lookup.find_id(session, str(entry[scope]))
    role_id = await ROLES.find_id(session, str(entry[_ROLE]))
    return Grant(actor, actor_id, scope, scope_id, role_id)


async def change_grants(
    session: Session, *, add: Collection[Grant], remove: Collection[Grant]
) -> None:
    """Assign and remove roles. It can be repeated. Raises CloudError."""
    for one in sorted(add):
        await session.send(IDENTITY, "PUT", one.path, "assign the role")
    for one in sorted(remove):
        await session.delete(IDENTITY, one.path, "remove the role assignment")


async def exists(session: Session, grant: Grant) -> bool:
    try:
        await session.send(IDENTITY, "HEAD", grant.path, "read the role assignment")
    except CloudError as error:
        if error.is_missing:
            return False
        raise
    return True


async def list_grants(session: Session, actor: Actor, actor_id: str) -> set[Grant]:
    """All role assignments of a user or group, except inherited ones. Raises CloudError."""
    query = {f"{actor}.id": actor_id}
    found: Sequence[Mapping[str, Json]] = await session.list(
        IDENTITY, "/role_assignments", "role_assignments", query
    )
    return {
        Grant(actor, actor_id, scope, str(one["scope"][scope]["id"]), str(one["role"]["id"]))
        for one in found
        for scope in (_PROJECT, _DOMAIN)
        if scope in one["scope"] and "OS-INHERIT:inherited_to" not in one["scope"]
    }
