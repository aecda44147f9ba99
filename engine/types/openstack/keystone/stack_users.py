"""Users of Keystone for servers, in a domain of their own, as in Heat.

Each resource has its own project, so that a server reaches nothing of another resource, and nothing
of the users' projects. Its name is made of the IDs of the stack and the resource, and is stored
nowhere; the names of its users begin with it. An operation that needs new credentials gets a new
user: Keystone refuses tokens that it gives in the second in which a password changes. The
administrator of the domain has the same role in the project, and uses its objects without a
password.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from engine.errors import HeadgateError, Unavailable
from engine.types.openstack.cloud import Cloud, Session, StackDomain, id_of, segment
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import IDENTITY
from engine.words import Json

#: Characters of a password.
PASSWORD_LENGTH: Final = 43


@dataclass(frozen=True, slots=True)
class StackUser:
    id: str
    name: str
    project_id: str
    domain_id: str
    password: str = field(repr=False)


def project_name(stack_id: UUID, resource_id: UUID) -> str:
    """The name of the project of a resource: 64 characters, as long as names of projects can be."""
    return f"{stack_id.hex}{resource_id.hex}"


def derive_password(secret: str, purpose: str) -> str:
    """A password from a secret of the resource: all calls of an operation get the same one. It has
    letters of both cases, digits and a hyphen, as rules of Keystone may require."""
    derived = hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()
    return f"Hg-{derived}"[:PASSWORD_LENGTH]


def credentials_of(user: StackUser, keystone: str, region: str, queue: str) -> dict[str, Json]:
    """What a server needs to use a queue, by the names that agents expect. keystone: its
    URL. region: "": any."""
    return {
        "auth_url": f"{keystone.removesuffix('/v3')}/v3",
        "username": user.name,
        "user_id": user.id,
        "password": user.password,
        "project_id": user.project_id,
        "domain_id": user.domain_id,
        **({"region_name": region} if region else {}),
        "queue_id": queue,
    }


class StackUsers:
    """The methods raise CloudError. Only with `CloudAccess.stack_domain`."""

    def __init__(self, cloud: Cloud, domain: StackDomain) -> None:
        self._cloud = cloud
        self._domain = domain

    async def create(
        self, project: str, password: str, described: str, *, suffix: str = ""
    ) -> StackUser:
        """Create the project of this name and the user, or enable a user that exists and set its
        password. suffix: what the name of the user ends with. described: what has the user, for
        administrators of Keystone."""
        session = self._session()
        domain_id, role = self._domain.id, await self._find_role(session)
        common = {"name": project, "domain_id": domain_id, "description": described}
        project_id = id_of(IDENTITY, await self._create(session, "project", common))
        common["name"] = name = f"{project}{suffix}"
        await self._grant(session, project_id, await self._admin(), role)
        # A password that Headgate derives cannot be changed by its user.
        options = {"ignore_change_password_upon_first_use": True, "ignore_password_expiry": True}
        fields = {"password": password, "default_project_id": project_id, "options": options}
        user_id = id_of(IDENTITY, await self._create(session, "user", {**common, **fields}))
        await self._grant(session, project_id, user_id, role)
        return StackUser(user_id, name, project_id, domain_id, password)

    async def remove_users(self, project: str, *, keep: str = "") -> None:
        """Delete the users of a project except `keep`, also those without a role in it."""
        session = self._session()
        query = {"domain_id": self._domain.id, "name__startswith": project}
        for one in await session.list(IDENTITY, "/users", "users", query):
            if str(one.get("name")).startswith(project) and one.get("name") != keep:
                path = f"/users/{segment(id_of(IDENTITY, one))}"
                await session.delete(IDENTITY, path, "delete the user of the server")

    async def has_project(self, name: str) -> bool:
        """Whether the project exists; if so, the administrator can delete what it has."""
        session = self._session()
        project = await self._find(session, "project", name)
        if project is None:
            return False
        role = await self._find_role(session)
        await self._grant(session, id_of(IDENTITY, project), await self._admin(), role)
        return True

    async def remove_project(self, name: str) -> None:
        """Delete the project, if it exists."""
        session = self._session()
        found = await self._find(session, "project", name)
        if found is not None:
            path = f"/projects/{segment(id_of(IDENTITY, found))}"
            await session.delete(IDENTITY, path, "delete the project of the server")
        self._cloud.identity.forget_stack_project(name)

    def _session(self) -> Session:
        """Keystone is the same in all regions."""
        return self._cloud.stack_users_session("")

    async def _admin(self) -> str:
        """The ID of the administrator. Raises CloudError."""
        try:
            return (await self._cloud.identity.stack_admin()).user_id
        except HeadgateError as error:
            public = "cannot find the administrator of the domain of stack users"
            retry = isinstance(error, Unavailable)
            raise CloudError(f"{public}: {error}", retry=retry, public=public) from None

    async def _grant(self, session: Session, project_id: str, user_id: str, role: str) -> None:
        path = f"/projects/{segment(project_id)}/users/{segment(user_id)}/roles/{segment(role)}"
        await session.send(IDENTITY, "PUT", path, "give the user its role")

    async def _find_role(self, session: Session) -> str:
        name = self._domain.role
        found = await session.list(IDENTITY, "/roles", "roles", {"name": name})
        if not found:
            public = f"Keystone has no role {name} for the users of servers"
            raise CloudError(public, public=public)
        return id_of(IDENTITY, found[0])

    async def _create(
        self, session: Session, what: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        try:
            doing = f"create the {what} of the server"
            made = await session.create(IDENTITY, f"/{what}s", what, doing, {what: fields})
        except CloudError as error:
            found = None
            if error.status == CONFLICT:
                found = await self._find(session, what, str(fields["name"]))
            if found is None:
                raise
        else:
            if what == "project":  # another process may have deleted one of this name
                self._cloud.identity.forget_stack_project(str(fields["name"]))
            return made
        if what == "user":
            path, doing = f"/users/{segment(id_of(IDENTITY, found))}", "set the password"
            changes = {name: fields[name] for name in ("password", "default_project_id")}
            changes["enabled"] = True
            await session.send(IDENTITY, "PATCH", path, doing, {what: changes})
        return found

    async def _find(self, session: Session, what: str, name: str) -> Mapping[str, Json] | None:
        query = {"name": name, "domain_id": self._domain.id}
        found = await session.list(IDENTITY, f"/{what}s", f"{what}s", query)
        return found[0] if found else None
