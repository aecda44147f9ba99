"""Clients of principals in mode tokens, each with its own token or password."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from engine.store.access.tokens import passwords
from hub.auth import secrets
from tests.support.access import insert_credential
from tests.support.program import Http, Json, Program
from tests.support.receiver import Receiver

PASSWORD = "correct horse battery"


class PrincipalClient(Http):
    """Requests of one principal. token_id: the ID of its token or password."""

    def __init__(self, run: Program, headers: Mapping[str, str], project: str, token_id: str = ""):
        super().__init__(run.session, run.url, project)
        self._headers = dict(headers)
        self.token_id = token_id

    async def call(
        self, method: str, path: str, body: Json = None, **kwargs: Any
    ) -> tuple[int, Json]:
        kwargs["headers"] = self._headers | kwargs.get("headers", {})
        return await super().call(method, path, body, **kwargs)

    async def subscribe(self, receiver: Receiver, **more: Json) -> Json:
        """Create a subscription to all events of the project."""
        status, response = await self.call(
            "POST", "/subscriptions", {"target": receiver.url, **more}
        )
        assert status == 201, response
        return response

    async def errors(self) -> list[str]:
        """The errors in the delivery history of the project's subscriptions."""
        _, known = await self.call("GET", "/subscriptions")
        found: list[str] = []
        for one in known["subscriptions"]:
            _, response = await self.call("GET", f"/subscriptions/{one['id']}/deliveries")
            found += [each["error"] for each in response["deliveries"] if each["error"]]
        return found


async def token_client(
    run: Program, name: str, roles: Sequence[str], project: str = ""
) -> PrincipalClient:
    """A principal with a new token of the project, by default that of the program."""
    project = project or run.project
    token = await insert_credential(run.database, project, name, roles)
    headers = {"Authorization": f"Bearer {token}"}
    return PrincipalClient(
        run, headers, run.project if project == "*" else project, str(secrets.id_in(token))
    )


async def password_client(
    run: Program, name: str, roles: Sequence[str], project: str = ""
) -> PrincipalClient:
    """A principal with a new name and password."""
    project = project or run.project
    await insert_credential(run.database, project, name, roles, password=PASSWORD)
    async with run.database.connection() as conn:
        (found,) = await passwords(conn, name, project)
    basic = base64.b64encode(f"{name}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}"}
    return PrincipalClient(run, headers, run.project if project == "*" else project, str(found.id))


def hook_notifications(receiver: Receiver) -> list[Json]:
    """The data of the hook notifications that the receiver got."""
    return [event["data"] for event in receiver.events if event["type"] == "headgate.hook.waiting"]
