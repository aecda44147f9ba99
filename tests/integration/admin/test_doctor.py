"""headgate admin doctor finds each problem, with a remedy, and no other."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engine.store.database import Database, discard_changes
from hub.auth import secrets
from hub.checks.database import CheckResult, CheckState, check_rules
from hub.checks.doctor import check_space, clocks, run_checks
from hub.settings.settings import load_settings
from tests.support.access import insert_credential
from tests.support.admin_command import run_admin
from tests.support.engine_rows import EngineRows, resource_event
from tests.support.keys import key_file
from tests.support.ports import free_port
from tests.support.program import Program, resource
from tests.support.rabbit import Rabbit

#: A database of schema 24.
SCHEMA_24 = ("truncate migration; insert into migration (name) values ('0024_source.sql')",)
HOUR_AGO = "clock_timestamp() - interval '1 hour'"
NODE = f"""
insert into node (stack_id, traversal, id, resource_id, name, type, operation, direction, state,
                  phase, pending_dependencies, dependents, reads, breakpoints_hit, claim, wake_at)
values ($1, 1, 0, $1, 'a', 'T', 'create', 'forward', $2, 'execute', 0, '{{}}', '{{}}', '{{}}', 1, {HOUR_AGO})
"""
TRAVERSAL = f"""
insert into traversal (stack_id, number, project, action, version, state, reason, digest, active_nodes,
                       wake_at, requested_by)
values ($1, 1, 'demo', 'CREATE', 1, $2, '', '', 1, {HOUR_AGO}, 'me')
"""


async def check_all(
    url: str, folder: Path, config: Path | None = None, **settings: Any
) -> list[CheckResult]:
    key = folder / "credentials.key"
    if not key.exists():
        key.write_bytes(bytes(32))
        key.chmod(0o600)
    names = {"database.url": url, "credentials.key_file": str(key)}
    more = {name.replace("__", "."): value for name, value in settings.items()}
    return await run_checks(load_settings(None, names | more, environment={}), config)


def problems(results: list[CheckResult]) -> list[tuple[str, str]]:
    assert all(one.remedy for one in results if one.state != CheckState.OK)
    return [(one.check, one.reason) for one in results if one.state != CheckState.OK]


def problems_without_rules(results: list[CheckResult]) -> list[tuple[str, str]]:
    """Problems without those of rules, which rows that a test inserts can break."""
    return [one for one in problems(results) if one[0] != "rules"]


async def test_a_healthy_program_has_no_problems(
    running: Program, database_url: str, tmp_path: Path
) -> None:
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await running.create("s", {"a": resource()}, environment=hooks)
    await running.waiting_hooks("s")
    wrong = problems(await check_all(database_url, tmp_path))
    assert [check for check, _ in wrong] == ["key"]  # of another database
    (tmp_path / "credentials.key").write_bytes(key_file().read_bytes())
    results = await check_all(database_url, tmp_path)
    assert problems(results) == []
    assert [one.check for one in results] == [
        "settings", "files", "hooks", "disk", "webhooks", "broker", "servers", "pooler",
        "database", "clocks", "schema", "routines", "processes", "timekeeping",
        "failovers", "key", "rules", "work", "labels",
    ]  # fmt: skip
    assert results[-2].reason == "no work is stuck (hooks waiting: 1)"
    assert results[-1].reason == "no label is missing; running processes have: none"


async def test_overlapping_operator_rules_are_found(database_url: str, tmp_path: Path) -> None:
    points = ["pre-stack-create", "pre-stack-update", "pre-stack-restore", "pre-stack-rollback"]
    policy = {"on": points, "answer_by": ["role:operator"]}
    later = {"on": ["pre-stack-update"], "projects": ["prod-*"]}
    others = [{"on": ["pre-stack-update"], "dry": True}, {"on": ["pre-create"], "at": "*"}]
    (one,) = [
        each
        for each in await check_all(database_url, tmp_path, hooks__rules=[policy, later, *others])
        if each.check == "hooks"
    ]
    assert one.state is CheckState.WARNING and one.remedy
    assert one.reason == (
        "[[hooks.rules]] 1 and [[hooks.rules]] 2 can match the same stack or resource at"
        " pre-stack-update: there, [[hooks.rules]] 2 applies, because it comes later"
    )


async def test_a_rule_of_updates_without_restores_is_found(
    database_url: str, tmp_path: Path
) -> None:
    results = await check_all(database_url, tmp_path, hooks__rules=[{"on": ["pre-stack-update"]}])
    (one,) = [each for each in results if each.check == "hooks"]
    assert one.state is CheckState.WARNING and "guard-every-stack.md" in one.remedy
    assert "[[hooks.rules]] 1 blocks at pre-stack-update" in one.reason


async def insert_stack(database: Database, *statements: tuple[Any, ...]) -> None:
    async with database.connection() as conn:
        for statement, *args in statements:
            await conn.execute(statement, *args)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("ready", "1 work is due that no worker claims"),
        ("running", "1 traversals have nodes with an expired lease"),
    ],
)
async def test_nodes_without_a_worker_are_found(
    database: Database, database_url: str, tmp_path: Path, state: str, expected: str
) -> None:
    stack = await EngineRows(database).stack()
    await insert_stack(database, (TRAVERSAL, stack.id, "running"), (NODE, stack.id, state))
    ((check, reason),) = problems_without_rules(await check_all(database_url, tmp_path))
    assert check == "work" and reason.startswith(expected)


async def test_a_traversal_that_does_not_end_is_found(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    stack = await EngineRows(database).stack()
    await insert_stack(database, (TRAVERSAL, stack.id, "ending"))
    ((_, reason),) = problems_without_rules(await check_all(database_url, tmp_path))
    assert reason.startswith("1 traversals have no unfinished nodes")


async def test_unpublished_events_dead_deliveries_and_overdue_hooks_are_found(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    engine_rows = EngineRows(database)
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    await engine_rows.hook(stack)
    assert problems_without_rules(await check_all(database_url, tmp_path)) == []
    one = await engine_rows.subscription("https://example.org")
    delivery = f"insert into delivery (stack_id, sequence, subscription_id, project, event_id, type, urgent, state, next_at) values ($1, 1, $2, 'demo', $3, 't', false, 'pending', {HOUR_AGO})"
    await insert_stack(
        database,
        (f"update outbox set created_at = {HOUR_AGO}",),
        (f"update hook set deadline = {HOUR_AGO}",),
        (delivery, stack.id, one.id, uuid4()),
    )
    reasons = [
        reason for _, reason in problems_without_rules(await check_all(database_url, tmp_path))
    ]
    assert [one.split(" ", 1)[1].split(",")[0].split(";")[0] for one in reasons] == [
        "hooks are past their deadline and have not expired",
        "commits have events that were not published",
        "deliveries are due and not attempted",
    ]
    await insert_stack(database, ("update subscription set state = 'disabled'",))
    reasons = [
        reason for _, reason in problems_without_rules(await check_all(database_url, tmp_path))
    ]
    assert reasons[-1].startswith("1 subscriptions are disabled") and len(reasons) == 3


async def test_an_older_and_a_newer_schema_are_found(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    await insert_stack(database, SCHEMA_24)
    result = (await check_all(database_url, tmp_path))[-1]
    assert (result.check, result.state) == (
        "schema",
        CheckState.ERROR,
    ) and "0024_to_0040.sql" in result.reason
    assert result.remedy == "Run `headgate admin migrate`"
    await insert_stack(database, ("update oldest_program set migration = '9999_later.sql'",))
    result = (await check_all(database_url, tmp_path))[-1]
    assert (result.check, result.state) == ("schema", CheckState.ERROR)
    assert "programs that know 9999_later.sql" in result.reason


async def test_a_later_schema_and_later_routines_that_this_program_works_with_are_no_problem(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    await insert_stack(database, ("insert into migration (name) values ('9999_later.sql')",))
    await insert_stack(database, ("update routines set version = version + 1",))
    results = await check_all(database_url, tmp_path)
    assert problems(results) == []
    (routines,) = [one.reason for one in results if one.check == "routines"]
    assert "later than version" in routines and "works with them" in routines


async def test_processes_of_several_versions_are_named(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    report = """
    insert into process (id, host, roles, report_interval, version, migration)
    values (gen_random_uuid(), $1, '{engine}', '60 s', $2, '0062_rolling_upgrades.sql')
    """
    await insert_stack(database, (report, "h1", "1.0.0"), (report, "h2", "1.0.0"))
    assert problems(await check_all(database_url, tmp_path)) == []
    await insert_stack(database, (report, "h3", "1.1.0"))
    ((check, reason),) = problems(await check_all(database_url, tmp_path))
    assert check == "processes" and reason.startswith("processes of 2 versions run: headgate 1.0.0")
    assert "(h1, h2); headgate 1.1.0" in reason


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("update routines set version = 0", "older than version"),
        ("update routines set digest = 'changed'", "the database has another build of version"),
        ("delete from routines", "they are missing"),
    ],
)
async def test_another_version_of_the_routines_is_found(
    database: Database, database_url: str, tmp_path: Path, statement: str, expected: str
) -> None:
    await insert_stack(database, (statement,))
    ((check, reason),) = problems(await check_all(database_url, tmp_path))
    assert check == "routines" and expected in reason


async def test_a_violated_rule_is_named(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    await insert_stack(
        database, ("insert into archived_graph (stack_id, traversal) values ($1, 1)", uuid4())
    )
    results = [one for one in await check_all(database_url, tmp_path) if one.check == "rules"]
    assert {one.state for one in results} == {CheckState.ERROR}
    assert any("rows belong to an existing stack" in one.reason for one in results)


async def test_rules_that_take_too_long_are_a_warning(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = {"a slow rule": "select pg_sleep(60) where $1::uuid is null"}
    monkeypatch.setattr("engine.store.maintenance.invariants.INVARIANTS", slow)
    async with database.connection() as conn, discard_changes(conn):
        await conn.execute("set local statement_timeout = '50ms'")
        (result,) = [one async for one in check_rules(conn, "")]
    assert result.state == CheckState.WARNING and "a slow rule" in result.reason and result.remedy


async def test_an_unavailable_database_is_found(tmp_path: Path) -> None:
    url = f"postgresql://ann:planted-secret@127.0.0.1:{free_port()}/x"
    ((check, reason),) = problems(await check_all(url, tmp_path))
    assert check == "database" and "planted-secret" not in reason


def test_different_clocks_are_found() -> None:
    for ahead, direction in ((100.0, "behind"), (-100.0, "ahead of")):
        result = clocks(ahead, 0.01)
        assert result.state == CheckState.WARNING and f"{direction} the database" in result.reason
    # half of the round trip time is uncertainty
    assert [clocks(3.0, took).state for took in (0.1, 4.0)] == [CheckState.WARNING, CheckState.OK]


async def test_readable_and_invalid_key_files_are_found(database_url: str, tmp_path: Path) -> None:
    key, config = tmp_path / "credentials.key", tmp_path / "headgate.toml"
    audit = tmp_path / "audit.key"
    for path in (config, audit):
        path.write_text("")
    key.write_bytes(b"short")
    for path in (key, audit, config):
        path.chmod(0o640)
    of = await check_all(database_url, tmp_path, config, audit__key_file=str(audit))
    reasons = [reason for _, reason in problems(of)]
    assert reasons == [
        f"the encryption key {key} has 5 bytes, not 32",
        f"accounts other than the owner can read {key}",
        f"accounts other than the owner can read {audit}",
        f"accounts other than the owner can read {config}",
    ]
    for path in (key, audit, config):
        path.chmod(0o600)
    key.write_bytes(bytes(32))
    wrong = tmp_path / "no-key.pem"
    wrong.write_text("no key")
    wrong.chmod(0o600)
    ((check, reason),) = problems(
        await check_all(database_url, tmp_path, channels__webhook__signing_key_file=str(wrong))
    )
    assert check == "files" and "contains no signing key" in reason


def test_a_full_disk_is_found() -> None:
    states = [check_space(free, Path("/")).state for free in (2**40, 2**30, 2**20)]
    assert states == [CheckState.OK, CheckState.WARNING, CheckState.ERROR]


async def test_an_unrestricted_allow_list_of_webhooks_is_found(
    database_url: str, tmp_path: Path
) -> None:
    results = await check_all(database_url, tmp_path, channels__webhook__allow=["::/0"])
    assert [check for check, _ in problems(results)] == ["webhooks"]


async def test_an_unavailable_broker_is_found(
    database_url: str, tmp_path: Path, rabbit: Rabbit
) -> None:
    assert problems(await check_all(database_url, tmp_path, channels__amqp__url=[rabbit.url])) == []
    away = f"amqp://ann:planted-secret@127.0.0.1:{free_port()}/"
    ((check, reason),) = problems(
        await check_all(database_url, tmp_path, channels__amqp__url=[away])
    )
    assert check == "broker" and "planted-secret" not in reason
    ((check, reason),) = problems(
        await check_all(database_url, tmp_path, observer__amqp__url=[away])
    )
    assert check == "notifications" and "[observer.amqp] url" in reason
    assert "planted-secret" not in reason


async def test_the_command_prints_a_line_per_check_and_its_exit_code_is_the_result(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    done = await run_admin("doctor", url=database_url, CREDENTIALS__KEY_FILE=str(key))
    assert done.code == 0, done.out + done.err
    assert [line.split()[1] for line in done.out.splitlines()] == ["ok"] * 19
    await insert_stack(database, SCHEMA_24)
    done = await run_admin("doctor", "--json", url=database_url, CREDENTIALS__KEY_FILE=str(key))
    assert done.code == 1
    assert done.document[-1]["remedy"] == "Run `headgate admin migrate`"
    done = await run_admin("doctor", url=database_url, SERVER__LISTEN="nowhere")
    assert done.code == 1 and done.out.startswith("settings     error    HEADGATE_SERVER__LISTEN: ")


async def test_passwords_with_weak_hashes_are_counted(
    database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await insert_credential(database, "p", "ann", ["reader"], password="correct horse battery")
    monkeypatch.setattr(secrets, "_COST", 2**14)
    await insert_credential(database, "p", "bob", ["reader"], password="correct horse battery")
    monkeypatch.undo()
    wrong = [
        reason
        for check, reason in problems(await check_all(database_url, tmp_path))
        if check == "passwords"
    ]
    assert wrong == ["1 passwords are hashed with scrypt parameters of an earlier version"]
