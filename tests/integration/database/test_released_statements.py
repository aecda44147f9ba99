"""Processes of the previous release use the schema and routines of this program."""

import json
import re
from pathlib import Path

import asyncpg
import pytest

from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.schema.compatibility import PREVIOUS_RELEASE, oldest_beside
from engine.store.schema.upgrade import read_migrations
from tests.integration.database.released_statements import (
    RELEASED,
    StatementInterface,
    describe,
    read_composites,
)
from tests.support.program import Json

CHANGELOG = Path(__file__).parents[3] / "CHANGELOG.md"
DOCUMENT = json.loads(RELEASED.read_text())
REMEDY = """statements of the previous release do not work with this schema and its routines. Keep what
they use (add another column or function), or name them in a contract migration (CONTRIBUTING.md)"""


async def find_broken(connection: Connection, statements: Json) -> dict[str, str]:
    """Name of a statement -> what is different."""
    composites = await read_composites(connection)
    broken = {}
    for name, one in statements.items():
        recorded = StatementInterface(one["parameters"], one["columns"])
        try:
            current = await describe(connection, composites, one["text"])
        except asyncpg.PostgresError as error:
            broken[name] = str(error)
        else:
            if current != recorded:
                broken[name] = f"{recorded} -> {current}"
    return broken


async def test_statements_of_the_previous_release_work_with_this_schema(database: Database) -> None:
    async with database.connection() as connection:
        broken = await find_broken(connection, DOCUMENT["statements"])
    if oldest_beside(read_migrations()) <= PREVIOUS_RELEASE:
        assert broken == {}, REMEDY
        return
    # A contract migration excludes the previous release, so no process of it may run.
    unreleased = CHANGELOG.read_text().split("\n## ")[1]
    assert re.search(r"stop all\s+processes", unreleased, re.I), "CHANGELOG.md must say so"


def test_the_statements_are_those_of_the_previous_release() -> None:
    assert DOCUMENT["migration"] == PREVIOUS_RELEASE
    assert len(DOCUMENT["statements"]) > 500


@pytest.mark.parametrize(
    "change",
    [
        "alter table hook rename column opened_at to began_at",
        "alter table software_config alter column name type varchar(255)",
        "alter type event_draft add attribute more text cascade",
        "drop function advance cascade",
    ],
)
async def test_a_change_that_breaks_them_is_found(database: Database, change: str) -> None:
    async with database.connection() as connection:
        await connection.execute(change)
        assert await find_broken(connection, DOCUMENT["statements"]) != {}
