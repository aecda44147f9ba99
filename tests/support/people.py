"""Principals of mode tokens, each with a token or a password of their own."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from engine.store.tokens import passwords
from hub.auth import secrets
from tests.support.access import given_directly
from tests.support.program import Http, Json, Program
from tests.support.receiver import Receiver

PASSWORD = "correct horse battery"


class Person(Http):
    """Requests of one principal. token_id: of their token or password."""

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
        """A subscription to all that the project's stacks do."""
        status, made = await self.call("POST", "/subscriptions", {"target": receiver.url, **more})
        assert status == 201, made
        return made

    async def errors(self) -> list[str]:
        """What the delivery history of the project's subscriptions says of notices."""
        _, known = await self.call("GET", "/subscriptions")
        found: list[str] = []
        for one in known["subscriptions"]:
            _, said = await self.call("GET", f"/subscriptions/{one['id']}/deliveries")
            found += [each["error"] for each in said["deliveries"] if each["error"]]
        return found


async def token_of(run: Program, name: str, roles: Sequence[str], project: str = "p") -> Person:
    """Who presents a token of this name."""
    token = await given_directly(run.database, project, name, roles)
    headers = {"Authorization": f"Bearer {token}"}
    return Person(run, headers, "p" if project == "*" else project, str(secrets.id_in(token)))


async def account_of(run: Program, name: str, roles: Sequence[str], project: str = "p") -> Person:
    """Who presents a name and a password."""
    await given_directly(run.database, project, name, roles, password=PASSWORD)
    async with run.database.connection() as conn:
        (found,) = await passwords(conn, name, project)
    basic = base64.b64encode(f"{name}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}"}
    return Person(run, headers, "p" if project == "*" else project, str(found.id))


def notices(receiver: Receiver) -> list[Json]:
    """The data of the notices of waiting hooks that it was sent."""
    return [event["data"] for event in receiver.events if event["type"] == "headgate.hook.waiting"]
