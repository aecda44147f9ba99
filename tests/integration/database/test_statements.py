"""Every SQL statement of the stores is prepared against the schema."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import asyncpg
import pytest

from engine.store.database import Database
from engine.store.maintenance import reencryption
from engine.store.schema.routine_versions import routines

STORES = ("engine.store", "channels.store")

SQL = re.compile(
    r"(?is)\A(?:\s|--[^\n]*\n)*"
    r"(?:select|insert|update|delete|merge|with|values|create|notify|listen|lock|truncate|set)\s"
)

#: Statements that return rows. asyncpg 0.32 writes out of bounds when it drops a row without
#: columns.
FIRST = re.compile(r"(?is)\A(?:\s|--[^\n]*\n)*(?:select|values)\b")


def statements() -> Iterator[tuple[str, str]]:
    """All module-level SQL constants, by name."""
    for store in STORES:
        package = importlib.import_module(store)
        for found in pkgutil.walk_packages(package.__path__, f"{store}."):
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                if name.isupper() and isinstance(value, str) and SQL.match(value):
                    yield f"{found.name}.{name}", value
    for number, text in enumerate(reencryption.statements()):
        yield f"{reencryption.__name__}.statements {number}", text


FOUND = dict(statements())


def test_the_statements_are_found() -> None:
    assert "engine.store.schema.upgrade.APPLIED" in FOUND
    assert "engine.store.traversals.advance.ADVANCE" in FOUND
    assert "channels.store.claim.CLAIM" in FOUND
    folders = {name.rsplit(".", 2)[0] for name in FOUND}
    assert {f"engine.store.{one}" for one in ("hooks", "stacks", "traversals")} <= folders


#: `for update of`, `for no key update of` and `do update set` write no other table.
WRITTEN = re.compile(
    r"(?i)(?:\binsert into|(?<!for )(?<!key )(?<!do )\bupdate|\bdelete from)\s+([a-z_]+)"
)
#: The tables of channels: subscriptions, deliveries, and how far the outbox is published.
OF_CHANNELS = frozenset({
    "subscription", "delivery", "outbox", "outbox_cursor", "slack_request",
})  # fmt: skip
#: Through these routines, channels record events of subscriptions.
RECORDING = re.compile(r"record_(?:numbered_)?events$")


def texts_of(statement: str) -> list[str]:
    """A statement and the bodies of the routines that it calls."""
    texts = [statement]
    names = {name.partition("_")[2].removesuffix(".sql"): text for name, text in ROUTINES.items()}
    for text in texts:
        for name, body in names.items():
            called = re.search(rf"\b{name}\(", text) and not RECORDING.match(name)
            if called and body not in texts:
                texts.append(body)
    return texts


ROUTINES = {file.name: file.text for file in routines()}


def test_channels_write_no_table_of_the_engine() -> None:
    """What a delivery means for a hook, they report to `engine.store.hooks.deadlines`."""
    written = {
        (name, table)
        for name, statement in FOUND.items()
        if name.startswith("channels.")
        for text in texts_of(statement)
        for table in WRITTEN.findall(text)
    }
    assert {one for one in written if one[1] not in OF_CHANNELS} == set()
    assert {table for _, table in written} == OF_CHANNELS


@pytest.mark.parametrize("statement", ["select nothing from stack", "update stack set name = 1 +"])
async def test_a_wrong_statement_is_found(database: Database, statement: str) -> None:
    async with database.connection() as connection:
        with pytest.raises(asyncpg.PostgresError):
            await connection.prepare(statement)


async def test_each_statement_matches_the_schema(database: Database) -> None:
    wrong = []
    async with database.connection() as connection:
        for name, text in FOUND.items():
            try:
                prepared = await connection.prepare(text)
                if FIRST.match(text) and not prepared.get_attributes():
                    wrong.append(f"{name}: gives rows without a column, see FIRST")
            except asyncpg.PostgresError as error:
                wrong.append(f"{name}: {error} {error.hint or ''}".rstrip())
    assert wrong == []
