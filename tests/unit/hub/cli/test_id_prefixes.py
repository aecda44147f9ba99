"""Objects by a prefix of their ID, on the command line."""

import re
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from headgate.errors import RequestError
from hub.cli.commands.hook import find
from hub.cli.connection.client import (
    ApiClient,
    find_stack,
    find_subscription,
    is_prefix,
    select_by_id,
)
from tests.unit.hub.cli.stub import Handler, Json, running_stub

ID = "3f2a1b4c-0000-4000-8000-00000000000f"
OTHER = "3f2a1b4c-0000-4000-8000-00000000001f"
LookUp = Callable[[ApiClient, str], Awaitable[Json]]
STACKS = [
    {"kind": "stack", "id": ID, "name": "shop"},
    {"kind": "stack", "id": OTHER, "name": "web"},
]


def answer_with(documents: dict[str, Json]) -> Handler:
    """By the last part of the path; others do not exist."""

    async def handler(request: web.Request) -> web.Response:
        document = documents.get(request.path.rpartition("/")[2])
        if document is not None:
            return web.json_response(document)
        error = {"type": "EntityNotFound", "message": "could not be found", "remedy": "Look."}
        return web.json_response({"error": error}, status=404)

    return handler


@pytest.mark.parametrize("length", range(4, 36))
def test_every_beginning_of_an_id_is_one(length: int) -> None:
    assert is_prefix(ID[:length]) and is_prefix(ID[:length].upper())


@pytest.mark.parametrize(
    "text", ["", "3f2", ID, "cafe-db", "3f2a1b4c0", "3f2a1b4c--", "zzzz", "3f2a\n"]
)
def test_other_texts_are_none(text: str) -> None:
    assert not is_prefix(text)


@pytest.mark.parametrize("look_up", [find_stack, find_subscription], ids=["stack", "subscription"])
async def test_a_prefix_that_is_too_short_says_so(look_up: LookUp) -> None:
    async with running_stub(answer_with({})) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(RequestError, match="A prefix of an ID has 4 or more characters"):
            await look_up(client, "fb4")


def test_the_name_of_a_token_is_not_its_id() -> None:
    with pytest.raises(RequestError, match=r'"op" is the name of a token, .* needs the ID; `list`'):
        select_by_id([{"id": ID, "name": "op"}], "op", "token", "list")


async def test_names_are_looked_for_before_prefixes() -> None:
    named = {"stack": {"id": OTHER, "stack_name": "3f2a"}}
    async with (
        running_stub(answer_with({"3f2a": named})) as stub,
        ApiClient(stub.url, "p") as client,
    ):
        assert (await find_stack(client, "3f2a"))["id"] == OTHER
        assert all("/ids" not in one.path for one in stub.seen)


async def test_one_request_finds_a_stack_or_hook_by_its_prefix() -> None:
    documents = {"3f2a": None, ID: {"stack": {"id": ID}, "id": ID}}

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/ids"):
            kind = request.query["kind"]
            return web.json_response({"ids": [{"kind": kind, "id": ID, "name": "shop"}]})
        return await answer_with(documents)(request)

    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        assert (await find_stack(client, "3f2a"))["id"] == ID
        assert (await find(client, "3F2A1B4C-"))["id"] == ID
    assert [one.path.replace("?resolve_outputs=false", "") for one in stub.seen] == [
        "/v1/p/stacks/3f2a", "/v1/p/ids?prefix=3f2a&kind=stack", f"/v1/p/stacks/{ID}",
        "/v1/p/ids?prefix=3F2A1B4C-&kind=hook", f"/v1/p/hooks/{ID}",
    ]  # fmt: skip


@pytest.mark.parametrize("look_up", [find_stack, find], ids=["stack", "hook"])
async def test_an_ambiguous_prefix_is_refused_with_the_candidates(look_up: LookUp) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        known = {"ids": {"ids": STACKS}} if request.path.endswith("/ids") else {}
        return await answer_with(known)(request)

    candidates = re.escape(f"{ID} (shop), {OTHER} (web); write more of it")
    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(RequestError, match=candidates):
            await look_up(client, "3f2a")


async def test_a_prefix_that_no_id_has_is_the_error_about_the_name() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        known: dict[str, Json] = {"hooks": {"hooks": [], "next": None}}
        known |= {"ids": {"ids": []}} if request.path.endswith("/ids") else {}
        return await answer_with(known)(request)

    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(RequestError, match="Look"):
            await find_stack(client, "3f2a")
        with pytest.raises(RequestError, match="no waiting hook"):
            await find(client, "3f2a")


async def test_one_request_finds_a_subscription_by_its_prefix() -> None:
    found: list[Json] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/ids"):
            return web.json_response({"ids": found})
        return await answer_with({ID: {"id": ID}})(request)

    async with running_stub(handler) as stub, ApiClient(stub.url, "p") as client:
        with pytest.raises(RequestError, match=r"no subscription .*`headgate subscription list`"):
            await find_subscription(client, "3f2a")
        found.append({"kind": "subscription", "id": ID, "name": "webhook"})
        assert (await find_subscription(client, "3f2a"))["id"] == ID
        assert len(stub.seen) == 3
        found.append({"kind": "subscription", "id": OTHER, "name": "email"})
        with pytest.raises(RequestError, match=re.escape(f"{ID} (webhook), {OTHER} (email)")):
            await find_subscription(client, "3f2a")
