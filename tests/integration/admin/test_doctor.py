"""headgate admin doctor: each thing that can be wrong is found, with a remedy; what is well is not."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engine.store.database import Database, taken_back
from hub.auth import secrets
from hub.checks.database import check_rules
from hub.checks.doctor import clocks, roomy, run_checks
from hub.checks.results import Looked, State
from hub.settings.settings import load_settings
from tests.support.access import given_directly
from tests.support.admin import admin
from tests.support.events import Scene, resource_event
from tests.support.keys import key_file
from tests.support.program import Program, free_port, resource
from tests.support.rabbit import Rabbit

AGO = "clock_timestamp() - interval '1 hour'"
NODE = f"""
insert into node (stack_id, traversal, id, resource_id, name, type, operation, direction, state,
                  phase, waits, requirers, reads, passed, claim, wake_at)
values ($1, 1, 0, $1, 'a', 'T', 'create', 'forward', $2, 'act', 0, '{{}}', '{{}}', '{{}}', 1, {AGO})
"""
TRAVERSAL = f"""
insert into traversal (stack_id, number, project, action, version, state, reason, digest, active,
                       wake_at, requested_by)
values ($1, 1, 'demo', 'CREATE', 1, $2, '', '', 1, {AGO}, 'me')
"""


async def found(url: str, folder: Path, config: Path | None = None, **said: Any) -> list[Looked]:
    key = folder / "credentials.key"
    if not key.exists():
        key.write_bytes(bytes(32))
        key.chmod(0o600)
    names = {"database.url": url, "credentials.key_file": str(key)}
    more = {name.replace("__", "."): value for name, value in said.items()}
    return await run_checks(load_settings(None, names | more, environment={}), config)


def unwell(looked: list[Looked]) -> list[tuple[str, str]]:
    assert all(one.remedy for one in looked if one.state != State.OK)
    return [(one.what, one.said) for one in looked if one.state != State.OK]


def stuck(looked: list[Looked]) -> list[tuple[str, str]]:
    """Of rows that a test has put there alone, so rules do not hold."""
    return [one for one in unwell(looked) if one[0] != "rules"]


async def test_nothing_is_wrong_with_a_program_that_runs_and_waits(
    running: Program, database_url: str, tmp_path: Path
) -> None:
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await running.create("s", {"a": resource()}, environment=hooks)
    await running.waiting("s")
    wrong = unwell(await found(database_url, tmp_path))
    assert [what for what, _ in wrong] == ["key"]  # of another database
    (tmp_path / "credentials.key").write_bytes(key_file().read_bytes())
    looked = await found(database_url, tmp_path)
    assert unwell(looked) == []
    assert [one.what for one in looked] == [
        "settings", "files", "disk", "webhooks", "broker", "pooler", "database", "clocks", "schema", "routines",
        "timekeeping", "key", "rules", "work",
    ]  # fmt: skip
    assert looked[-1].said == "no work is stuck; 1 hooks are waiting"


async def put(database: Database, *statements: tuple[Any, ...]) -> None:
    async with database.connection() as conn:
        for statement, *args in statements:
            await conn.execute(statement, *args)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("ready", "1 work is due that no worker claims"),
        ("running", "1 traversals have nodes with an expired lease"),
    ],
)
async def test_work_that_nobody_does(
    database: Database, database_url: str, tmp_path: Path, state: str, told: str
) -> None:
    stack = await Scene(database).stack()
    await put(database, (TRAVERSAL, stack.id, "running"), (NODE, stack.id, state))
    ((what, said),) = stuck(await found(database_url, tmp_path))
    assert what == "work" and said.startswith(told)


async def test_a_traversal_that_nobody_ends(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    stack = await Scene(database).stack()
    await put(database, (TRAVERSAL, stack.id, "ending"))
    ((_, said),) = stuck(await found(database_url, tmp_path))
    assert said.startswith("1 traversals have no unfinished nodes")


async def test_what_is_not_told_and_hooks_that_do_not_expire(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    scene = Scene(database)
    stack = await scene.stack()
    await scene.record(stack, resource_event("a"))
    await scene.hook(stack)
    assert stuck(await found(database_url, tmp_path)) == []
    one = await scene.subscription("https://example.org")
    delivery = f"insert into delivery (stack_id, sequence, subscription_id, project, event_id, type, urgent, state, next_at) values ($1, 1, $2, 'demo', $3, 't', false, 'pending', {AGO})"
    await put(
        database,
        (f"update outbox set created_at = {AGO}",),
        (f"update hook set deadline = {AGO}",),
        (delivery, stack.id, one.id, uuid4()),
    )
    said = [said for _, said in stuck(await found(database_url, tmp_path))]
    assert [one.split(" ", 1)[1].split(",")[0].split(";")[0] for one in said] == [
        "hooks are past their deadline and have not expired",
        "commits have events that were not published",
        "deliveries are due and not attempted",
    ]
    await put(database, ("update subscription set state = 'disabled'",))
    said = [said for _, said in stuck(await found(database_url, tmp_path))]
    assert said[-1].startswith("1 subscriptions are disabled") and len(said) == 3


async def test_the_schema_is_older_or_newer(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    await put(database, ("update migration set name = '0024_source.sql'",))
    looked = (await found(database_url, tmp_path))[-1]
    assert (looked.what, looked.state) == (
        "schema",
        State.WRONG,
    ) and "0024_to_0037.sql" in looked.said
    assert looked.remedy == "Run `headgate admin migrate`"
    await put(database, ("insert into migration (name) values ('9999_later.sql')",))
    looked = (await found(database_url, tmp_path))[-1]
    assert (looked.what, looked.state) == ("schema", State.WRONG) and "newer" in looked.said


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("update routines set version = version + 1", "newer than those of this headgate"),
        ("update routines set version = 0", "older than version"),
        ("update routines set digest = 'changed'", "the database has another build of version"),
        ("delete from routines", "they are missing"),
    ],
)
async def test_the_routines_are_of_another_version(
    database: Database, database_url: str, tmp_path: Path, statement: str, told: str
) -> None:
    await put(database, (statement,))
    ((what, said),) = unwell(await found(database_url, tmp_path))
    assert what == "routines" and told in said


async def test_a_rule_that_rows_break_is_named(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    await put(database, ("insert into past_graph (stack_id, traversal) values ($1, 1)", uuid4()))
    looked = [one for one in await found(database_url, tmp_path) if one.what == "rules"]
    assert {one.state for one in looked} == {State.WRONG}
    assert any("rows have the stack" in one.said for one in looked)


async def test_rules_that_take_too_long_are_a_warning(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {"a slow rule": "select pg_sleep(60) where $1::uuid is null"}
    monkeypatch.setattr("engine.store.invariants.INVARIANTS", slow)
    async with database.connection() as conn, taken_back(conn):
        await conn.execute("set local statement_timeout = '50ms'")
        (looked,) = [one async for one in check_rules(conn, "")]
    assert looked.state == State.WARNING and "a slow rule" in looked.said and looked.remedy


async def test_the_database_cannot_be_reached(tmp_path: Path) -> None:
    url = f"postgresql://ann:planted-secret@127.0.0.1:{free_port()}/x"
    ((what, said),) = unwell(await found(url, tmp_path))
    assert what == "database" and "planted-secret" not in said


def test_the_clocks_differ() -> None:
    for ahead, direction in ((100.0, "behind"), (-100.0, "ahead of")):
        looked = clocks(ahead, 0.01)
        assert looked.state == State.WARNING and f"{direction} the database" in looked.said
    # Half of what asking took is not known.
    assert [clocks(3.0, took).state for took in (0.1, 4.0)] == [State.WARNING, State.OK]


async def test_keys_that_others_may_read_or_that_are_none(
    database_url: str, tmp_path: Path
) -> None:
    key, config = tmp_path / "credentials.key", tmp_path / "headgate.toml"
    audit = tmp_path / "audit.key"
    for path in (config, audit):
        path.write_text("")
    key.write_bytes(b"short")
    for path in (key, audit, config):
        path.chmod(0o640)
    of = await found(database_url, tmp_path, config, audit__key_file=str(audit))
    said = [said for _, said in unwell(of)]
    assert said == [
        f"the key of credentials {key} has 5 bytes, not 32",
        f"others than its owner may read {key}",
        f"others than its owner may read {audit}",
        f"others than its owner may read {config}",
    ]
    for path in (key, audit, config):
        path.chmod(0o600)
    key.write_bytes(bytes(32))
    wrong = tmp_path / "no-key.pem"
    wrong.write_text("no key")
    wrong.chmod(0o600)
    ((what, said_once),) = unwell(
        await found(database_url, tmp_path, channels__webhook__signing_key_file=str(wrong))
    )
    assert what == "files" and "holds no key to sign with" in said_once


def test_there_is_little_room() -> None:
    states = [roomy(free, Path("/")).state for free in (2**40, 2**30, 2**20)]
    assert states == [State.OK, State.WARNING, State.WRONG]


async def test_webhooks_that_may_reach_anything(database_url: str, tmp_path: Path) -> None:
    looked = await found(database_url, tmp_path, channels__webhook__allow=["::/0"])
    assert [what for what, _ in unwell(looked)] == ["webhooks"]


async def test_the_broker_is_there_or_not(
    database_url: str, tmp_path: Path, rabbit: Rabbit
) -> None:
    assert unwell(await found(database_url, tmp_path, channels__amqp__url=[rabbit.url])) == []
    away = f"amqp://ann:planted-secret@127.0.0.1:{free_port()}/"
    ((what, said),) = unwell(await found(database_url, tmp_path, channels__amqp__url=[away]))
    assert what == "broker" and "planted-secret" not in said


async def test_the_command_says_a_line_for_each_and_ends_with_what_it_found(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    said = await admin("doctor", url=database_url, CREDENTIALS__KEY_FILE=str(key))
    assert said.code == 0, said.out + said.err
    assert [line.split()[1] for line in said.out.splitlines()] == ["ok"] * 14
    await put(database, ("update migration set name = '0024_source.sql'",))
    said = await admin("doctor", "--json", url=database_url, CREDENTIALS__KEY_FILE=str(key))
    assert said.code == 1
    assert said.document[-1]["remedy"] == "Run `headgate admin migrate`"
    said = await admin("doctor", url=database_url, SERVER__LISTEN="nowhere")
    assert said.code == 1 and said.out.startswith("settings     wrong    HEADGATE_SERVER__LISTEN: ")


async def test_passwords_with_weak_hashes_are_counted(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await given_directly(database, "p", "ann", ["reader"], password="correct horse battery")
    monkeypatch.setattr(secrets, "_COST", 2**14)
    await given_directly(database, "p", "bob", ["reader"], password="correct horse battery")
    monkeypatch.undo()
    wrong = [
        said for what, said in unwell(await found(database_url, tmp_path)) if what == "passwords"
    ]
    assert wrong == ["1 passwords are hashed with scrypt parameters of an earlier version"]
