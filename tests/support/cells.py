"""Cells in tests: databases with their engines, and API processes for them, in this process."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import aiohttp

from engine.cells import highest_ranked
from engine.store.access.tokens import NewToken
from hub.auth.token_issuer import TokenRequest, issue
from hub.program.app import ROLES, running
from hub.program.cells.running import running_cells
from hub.settings.settings import Settings, load_settings
from tests.support.keys import key_file
from tests.support.ports import free_port
from tests.support.postgres import open_directory
from tests.support.program import Http
from tests.support.relay import Relay, running_relay
from tests.support.replication import USER, PostgresNode

Json = Any
ENGINE_ROLES = ROLES - {"api"}


def cell(name: str, url: str, **more: Json) -> Json:
    """An entry of [cells] databases. more: its further settings."""
    return {"name": name, "url": url, **more}


def cells_settings(
    databases: Sequence[Json], settings: Mapping[str, Json] = MappingProxyType({}), **more: Json
) -> Settings:
    """settings: of other sections. more: further settings of [cells]."""
    values = {
        "server.listen": f"127.0.0.1:{free_port()}",
        "cells.databases": databases,
        "channels.webhook.allow": ["127.0.0.0/8"],
        "credentials.key_file": str(key_file()),
        **settings,
        **{f"cells.{name}": value for name, value in more.items()},
    }
    return load_settings(None, values, environment={})


def write_api_settings(path: Path, databases: Sequence[Json], *, mode: str = "none") -> None:
    """The settings file of an API process. mode: of [auth]."""
    cells = [
        f'[[cells.databases]]\nname = "{one["name"]}"\nurl = "{one["url"]}"\n' for one in databases
    ]
    path.write_text(
        f'[auth]\nmode = "{mode}"\n[credentials]\nkey_file = "{key_file()}"\n{"".join(cells)}'
    )


def projects_of(cells: Sequence[str], count: int = 1) -> Mapping[str, list[str]]:
    """`count` projects of each cell, by hashing."""
    found: dict[str, list[str]] = {name: [] for name in cells}
    number = 0
    while any(len(one) < count for one in found.values()):
        name = highest_ranked(f"p{number}", cells) or ""
        if len(found[name]) < count:
            found[name].append(f"p{number}")
        number += 1
    return found


@asynccontextmanager
async def api_of(
    databases: Sequence[Json], settings: Mapping[str, Json] = MappingProxyType({}), **more: Json
) -> AsyncIterator[Http]:
    """An API process that serves cells. settings, more: see `cells_settings`."""
    async with (
        running_cells(cells_settings(databases, settings, **more), asyncio.Event()) as url,
        aiohttp.ClientSession() as session,
    ):
        yield Http(session, url)


@asynccontextmanager
async def engine_of(url: str, public_url: str = "", **more: Json) -> AsyncIterator[None]:
    """The engine and dispatcher of a cell. public_url: of the API. more: further settings."""
    values = {
        "database.url": url,
        "server.public_url": public_url,
        "credentials.key_file": str(key_file()),
        "channels.webhook.allow": ["127.0.0.0/8"],
        **more,
    }
    settings = load_settings(None, values, environment={})
    async with running(settings, ENGINE_ROLES, asyncio.Event()):
        yield


@asynccontextmanager
async def running_node(name: str) -> AsyncIterator[PostgresNode]:
    """A PostgreSQL server of its own, with an empty database."""
    with open_directory() as folder:
        node = PostgresNode(folder, name)
        await node.initialize()
        try:
            await node.start()
            await node.execute("create database headgate")
            yield node
        finally:
            node.kill()


@asynccontextmanager
async def relayed(node: PostgresNode) -> AsyncIterator[tuple[Relay, str]]:
    """A relay to a node, and the URL of its database through it."""
    async with running_relay(f"http://127.0.0.1:{node.port}") as relay:
        try:
            yield relay, url_of(node).replace(f":{node.port}/", f":{relay.port}/")
        finally:
            relay.restore()


def url_of(node: PostgresNode) -> str:
    return f"postgresql://{USER}@127.0.0.1:{node.port}/headgate"


def of_project(http: Http, project: str) -> Http:
    """The same client for another project."""
    return Http(http.session, http.url, project)


def new_token(project: str, name: str = "root", **more: Json) -> tuple[NewToken, str | None]:
    """A record to store, and the token; None for a password."""
    return issue(
        TokenRequest(
            id=uuid4(), project=project, name=name, roles=["admin"], by="a test",
            random_bytes=uuid4().bytes * 2, **more,
        )
    )  # fmt: skip
