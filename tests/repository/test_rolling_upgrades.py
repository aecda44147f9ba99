"""Migrations only add to the schema, so that processes of the previous release work beside them."""

import re
from pathlib import Path
from uuid import UUID

import pytest

from engine import errors, store
from engine.store.maintenance.processes import LIST_PROCESSES
from engine.store.schema.compatibility import (
    IS_RUNNING,
    PREVIOUS_RELEASE,
    OldestProgram,
    ProgramVersion,
    RunningProgram,
    check_program,
    check_running,
    contract_of,
    oldest_beside,
)
from engine.store.schema.routine_versions import RoutineVersion, SqlFile
from engine.store.schema.upgrade import (
    BASELINE,
    UpgradePlan,
    is_outdated,
    pending_migrations,
    read_migrations,
)
from hub.checks.database import CheckState
from hub.checks.upgrade import check_processes, judge_upgrade
from tests.support.migration_rules import find_restrictions

#: Migrations from before the promise.
EARLIER = {
    "0042_archive_queue.sql": ["archived_graph: drop constraint archived_graph_pkey",
                               "archived_graph: add primary key ( stack_id , traversal , part )"],
    "0049_convergence.sql": ["observation_schedule: requested_at drop default"],
}  # fmt: skip
#: Triggers that refuse nothing that earlier programs may do.
HARMLESS = {
    "0083_tags_of_stacks.sql": [
        "trigger tag_new_stack", "trigger tag_stack", "trigger untag_stack",
    ],
    # Refuses rows that a move between cells would delete.
    "0090_moved_projects.sql": ["trigger refuse_moved_project"] * 5,
    "0097_tokens_of_moved_projects.sql": [
        "trigger refuse_moved_project", "trigger refuse_moved_project_revoked",
    ],
}  # fmt: skip
MIGRATIONS = read_migrations()
NAMES = [one.name for one in MIGRATIONS]


def test_migrations_only_add_unless_their_first_line_says_otherwise() -> None:
    found = {
        one.name: rules
        for one in MIGRATIONS
        if one.name > BASELINE and contract_of(one) is None
        if (rules := find_restrictions(one.text))
    }
    assert found == EARLIER | HARMLESS


def test_a_contract_names_a_migration_before_it() -> None:
    for one in MIGRATIONS:
        oldest = contract_of(one)
        assert oldest is None or (oldest in NAMES and oldest <= one.name), one.name
        # A misspelt first line would be ignored.
        assert oldest is not None or not re.match(r"--\s*contract", one.text, re.I), one.name


def test_the_previous_release_is_one_of_the_migrations() -> None:
    assert PREVIOUS_RELEASE in NAMES


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("drop table hook", "drop table hook"),
        ("drop view if exists stack_state cascade", "drop view if"),
        ("truncate observation", "truncate"),
        ("alter type node_key add attribute x text", "alter type node_key"),
        ("alter table hook drop column rule", "hook: drop column rule"),
        ("alter table hook rename column rule to rules", "hook: rename column rule to rules"),
        ("alter table hook rename to hooks", "hook: rename to hooks"),
        ("alter table hook alter column number type bigint", "hook: number type bigint"),
        ("alter table hook alter column at set not null", "hook: at set not null"),
        ("alter table hook alter column at drop default", "hook: at drop default"),
        ("alter table hook add constraint c check (at > 0)", "hook: add constraint c check"),
        ("alter table hook add column x text not null", "not null without a default"),
        ("alter table hook add column x text, add column y int not null", "y int not null"),
        ("alter table hook add column x text unique", "a constraint"),
        ("create unique index one on hook (at)", "unique index one on hook"),
        ("do $$ begin perform 1; end $$", "a block of code"),
        ("create table x (); alter table hook drop column at", "hook: drop column at"),
    ],
)  # fmt: skip
def test_what_removes_or_restricts_is_found(text: str, rule: str) -> None:
    (found, *_) = find_restrictions(text)
    assert rule in found


@pytest.mark.parametrize(
    "text",
    [
        "create table x (id uuid, name text not null); create unique index y on x (name)",
        "create table x (); alter table x add column y text not null",
        "alter table hook add column x text, add column y integer not null default 7",
        "alter table hook add column x bigint generated always as identity",
        "alter table hook alter column at drop not null",
        "create index one on hook (at) where at is not null",
        "drop index hook_by_stack",
        "update hook set at = 1 where at is null",
        "comment on column hook.at is 'drop table; truncate'",
        "-- drop table hook;\ninsert into usage_roll_up (day) values (now())",
    ],
)
def test_what_only_adds_is_allowed(text: str) -> None:
    assert find_restrictions(text) == []


ADDS = SqlFile("0070_adds.sql", "create table x ();")
REMOVES = SqlFile("0071_removes.sql", "-- contract: 0070_adds.sql\ndrop table y;")
OLD, OWN = ProgramVersion("1.0.0", "0069_old.sql", 4), ProgramVersion("1.1.0", "0070_adds.sql", 5)


def running(number: int, program: ProgramVersion) -> RunningProgram:
    return RunningProgram(UUID(int=number), f"h{number}", program)


def plan(
    *,
    oldest: str,
    required: str = "",
    unknown: tuple[str, ...] = (),
    pending: tuple[SqlFile, ...] = (),
    running: tuple[RunningProgram, ...] = (),
    routines: int = 5,
) -> UpgradePlan:
    return UpgradePlan(
        own=OWN,
        pending=pending,
        unknown=unknown,
        routines=RoutineVersion(routines, True, "x"),
        required=OldestProgram(required, "1.0.0") if required else None,
        oldest=oldest,
        running=running,
    )


def test_a_contract_raises_the_oldest_program_that_may_run() -> None:
    assert oldest_beside([ADDS], previous="0069_old.sql") == "0069_old.sql"
    assert oldest_beside([ADDS, REMOVES], previous="0069_old.sql") == "0070_adds.sql"
    assert oldest_beside(MIGRATIONS) >= PREVIOUS_RELEASE


def test_a_program_starts_unless_it_is_too_old_for_the_database() -> None:
    check_program(OLD, None)
    check_program(OLD, OldestProgram("0069_old.sql", "1.1.0"))
    with pytest.raises(errors.Conflict) as refused:
        check_program(OLD, OldestProgram("0070_adds.sql", "1.2.0"))
    assert refused.value.code == "DatabaseNewer"
    for text in ("headgate 1.2.0 has upgraded", "know 0070_adds.sql", "headgate 1.0.0 knows",
                 "up to 0069_old.sql"):  # fmt: skip
        assert text in refused.value.finding.reason
    assert refused.value.finding.remedy == (
        "Start headgate 1.2.0, or another one that knows this migration"
    )


def test_a_program_does_not_start_beside_processes_that_are_too_old() -> None:
    check_running(OWN, "0069_old.sql", [running(1, OLD), running(2, OWN)])
    unknown = ProgramVersion("", "", 0)
    with pytest.raises(errors.Conflict) as refused:
        check_running(OWN, "0070_adds.sql", [running(1, unknown), running(2, OWN), running(3, OLD)])
    assert refused.value.code == "OlderProcesses"
    assert "on h1 and 1 more runs an earlier headgate" in refused.value.finding.reason
    assert "headgate 1.1.0 runs only beside programs that know it" in refused.value.finding.reason
    assert "upgrade it to the release before headgate 1.1.0" in refused.value.finding.remedy


def test_running_processes_are_checked_only_if_the_database_does_not_refuse_them_already() -> None:
    old = (running(1, OLD),)
    plan(oldest="0070_adds.sql", required="0070_adds.sql", running=old).check_running()
    with pytest.raises(errors.Conflict):
        plan(oldest="0070_adds.sql", required="0069_old.sql", running=old).check_running()
    with pytest.raises(errors.Conflict):
        plan(oldest="0070_adds.sql", running=old).check_running()


def test_later_migrations_are_accepted_only_if_the_database_allows_it() -> None:
    known = [SqlFile("0069_old.sql", ""), ADDS]
    applied = ["0069_old.sql", "0070_adds.sql", "0071_removes.sql"]
    assert pending_migrations(known, applied, may_be_newer=True) == []
    with pytest.raises(errors.Conflict, match=r"newer.*0071_removes\.sql"):
        pending_migrations(known, applied)
    with pytest.raises(errors.Conflict, match=r"newer.*0070_other\.sql"):
        other = ["0069_old.sql", "0070_adds.sql", "0070_other.sql"]
        pending_migrations([*known, REMOVES], other, may_be_newer=True)


def test_later_routines_stay() -> None:
    own = RoutineVersion(5, False, "own")
    assert is_outdated(None, own)
    assert is_outdated(RoutineVersion(4, True, "x"), own)
    assert is_outdated(RoutineVersion(5, False, "another build"), own)
    assert not is_outdated(own, own)
    assert not is_outdated(RoutineVersion(5, True, "x"), own)
    assert not is_outdated(RoutineVersion(6, False, "x"), own)


def test_the_check_says_what_a_start_does() -> None:
    lines = {one.check: one for one in judge_upgrade(plan(
        oldest="0070_adds.sql", required="0069_old.sql", pending=(ADDS, REMOVES),
        running=(running(1, OLD), running(2, OLD), running(3, OWN)),
    ))}  # fmt: skip
    assert lines["schema"].reason == (
        "the start applies 0070_adds.sql, 0071_removes.sql; with 0071_removes.sql, only programs"
        " that know 0070_adds.sql can run"
    )
    assert lines["processes"].reason == (
        "running: headgate 1.0.0, 0069_old.sql, routines 4 (h1, h2);"
        " headgate 1.1.0, 0070_adds.sql, routines 5 (h3)"
    )
    assert lines["start"].state is CheckState.ERROR and lines["start"].remedy
    lines = {one.check: one for one in judge_upgrade(plan(
        oldest="0069_old.sql", required="0069_old.sql", unknown=("0072_later.sql",), routines=900,
        running=(running(1, OLD),),
    ))}  # fmt: skip
    assert lines["schema"].reason.startswith("a later headgate has added 0072_later.sql")
    assert "version 900, which is later" in lines["routines"].reason
    assert lines["start"].state is CheckState.OK
    assert lines["start"].reason == "headgate 1.1.0 may start beside the running processes"


def test_doctor_warns_of_mixed_versions() -> None:
    assert check_processes([running(1, OWN), running(2, OWN)]).state is CheckState.OK
    assert check_processes([]).state is CheckState.OK
    mixed = check_processes([running(1, OWN), running(2, OLD)])
    assert mixed.state is CheckState.WARNING and "2 versions" in mixed.reason and mixed.remedy


def test_the_condition_of_a_running_process_is_written_once() -> None:
    """`IS_RUNNING`; further copies could differ from it."""
    sources = Path(store.__file__).parent.rglob("*.*")
    texts = {one.name: one.read_text() for one in sources if one.suffix in (".py", ".sql")}
    written = re.compile(r"\*\s*(\w+\.)?report_interval")
    copies = {name for name, text in texts.items() if written.search(text)}
    assert copies == {"compatibility.py"} and IS_RUNNING in LIST_PROCESSES
