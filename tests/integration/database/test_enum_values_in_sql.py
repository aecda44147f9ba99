"""Literals of states in SQL are values of the enumerations of their columns."""

import re
from collections.abc import Iterable, Mapping, Sequence

import pytest

from channels.store.records import DeliveryState, Origin, SubscriptionState
from engine import words
from engine.store.database import Database
from engine.store.observer.observation_credentials import STATES
from engine.store.schema.routine_versions import routines
from tests.integration.database.test_statements import FOUND
from tests.support.sql_literals import texts, values

DECISIONS = frozenset(
    {words.word_of(one, how) for one in (words.Decision.STEP,) for how in words.StepKind}
    | {*words.Decision, *words.OnTimeout}
)

#: Values of `[auth] mode`.
MODES = frozenset({"none", "tokens", "keystone"})

#: Columns that hold values of an enumeration.
_OF: Mapping[tuple[str, str], Sequence[Iterable[str]]] = {
    ("traversal", "state"): (words.TraversalState,),
    ("traversal", "action"): (words.Action,),
    ("traversal", "step_mode"): (words.StepMode,),
    ("node", "state"): (words.State,),
    ("node", "phase"): (words.Phase,),
    ("node", "operation"): (words.Operation,),
    ("node", "direction"): (words.Direction,),
    ("resource", "action"): (words.ResourceAction,),
    ("resource", "status"): (words.Status,),
    ("resource", "deletion_policy"): (words.DeletionPolicy,),
    ("observation", "state"): (
        frozenset(
            state for state in words.ObservedState if state is not words.ObservedState.PRESENT
        ),
    ),
    ("converge_request", "state"): (words.ConvergeState,),
    ("drift_hook", "decision"): (DECISIONS,),
    ("hook", "state"): (words.HookState,),
    ("hook", "mode"): (words.Mode,),
    ("hook", "on_timeout"): (words.OnTimeout,),
    ("hook", "decision"): (DECISIONS,),
    ("hook", "channel"): (words.AnswerChannel,),
    ("decision", "channel"): (words.AnswerChannel,),
    ("decision", "kind"): (DECISIONS,),
    ("token", "kind"): (frozenset({"token", "password"}),),
    ("advance", "kind"): (
        frozenset({"node", "later", "unread", "end", "turn", "refused", "alone", "idle"}),
    ),
    # Statuses of stacks and of resources.
    ("event", "action"): (words.Action, words.ResourceAction),
    ("event", "status"): (words.Status,),
    ("event data", "operation"): (frozenset({"protect", "unprotect", "drift"}),),
    ("software_deployment", "action"): (words.Action,),
    ("software_deployment", "status"): (words.Status,),
    ("subscription", "state"): (SubscriptionState,),
    ("subscription", "origin"): (Origin,),
    ("delivery", "state"): (DeliveryState,),
    ("token_mode", "mode"): (MODES,),
    ("observation_credential", "state"): (STATES,),
    # A view of PostgreSQL: https://www.postgresql.org/docs/current/monitoring-stats.html
    ("pg_stat_replication", "state"): (
        frozenset({"startup", "catchup", "streaming", "backup", "stopping"}),
    ),
}
VALUES: Mapping[tuple[str, str], frozenset[str]] = {
    column: frozenset(each for enum in enums for each in enum) for column, enums in _OF.items()
}
TABLES: Mapping[str, frozenset[str]] = {
    table: frozenset(column for other, column in VALUES if other == table) for table, _ in VALUES
}


def allowed(tables: Iterable[str], column: str) -> frozenset[str]:
    """The values of a column; if the table is unknown, those of all possible tables of Headgate."""
    of = [table for table, name in VALUES if name == column and table in tables]
    of = of or [table for table, name in VALUES if name == column and not table.startswith("pg_")]
    return frozenset(word for table in of for word in VALUES[table, column])


def wrong(text: str) -> list[str]:
    """Literals that are not a value of their column."""
    return [
        f"line {one.line}: {one.column} '{one.word}'"
        for one in values(text, TABLES)
        if one.word not in allowed(one.tables, one.column)
    ]


TEXTS = FOUND | {file.name: file.text for file in routines()}

#: Values that are also names of other things: keys of JSON, formats, kinds of rows.
AMBIGUOUS = frozenset({"drift", "later", "node", "patch", "progress", "protect", "rule", "step", "token", "unprotect",
                       "update", "end", "turn", "unread", "refused"})  # fmt: skip
#: Literals whose column cannot be determined: in the second select of a union, in a compound
#: expression, as the reason of a refusal.
UNRESOLVED: Mapping[str, list[str]] = {
    "engine.store.resources.current_resources.READ_CONCERNED": ["INIT", "COMPLETE", "Delete"],
    "engine.store.resources.current_resources.READ_CURRENT": ["INIT", "COMPLETE", "Delete"],
    "engine.store.resources.resource_rows.MARK_HEALTH": ["failed"],
    "channels.store.claim.NEXT_DUE": ["enabled"],
    "channels.store.subscriptions.CHANGE": ["enabled", "disabled", "enabled"],
    "engine.store.projects.cells.FIND_API_PROCESS": ["api"],  # a role
    # Compared with Python in test_rules_in_sql.py.
    "1_current_stack.sql": ["IN_PROGRESS", "COMPLETE", "STOPPED", "FAILED"],
    "2_current_resource.sql": ["IN_PROGRESS"],
}


def unresolved(text: str) -> list[str]:
    """Literals that are a value of some column, but whose column is not found."""
    every = frozenset(word for of in VALUES.values() for word in of) - AMBIGUOUS
    seen = {one.at for one in values(text, TABLES)}
    return [one.word for at, one in texts(text) if one.word in every and at not in seen]


def test_every_literal_in_sql_is_a_value_of_its_column() -> None:
    found = {name: errors for name, text in TEXTS.items() if (errors := wrong(text))}
    assert found == {}


def test_the_column_of_every_literal_is_found() -> None:
    """Nothing escapes the test above: literals that it cannot resolve are listed here."""
    found = {name: words for name, text in TEXTS.items() if (words := unresolved(text))}
    assert found == UNRESOLVED


@pytest.mark.parametrize(
    ("name", "right", "typo", "error"),
    [
        (
            "engine.store.traversals.end.SUPERSEDE_HOOKS",
            "and state = 'waiting'",
            "'wating'",
            "state",
        ),
        ("1_node_rules.sql", "'stopped', 'dropped')", "'droped'", "state"),
        ("channels.store.delivery_results.FAIL", "set state = 'dead'", "'killed'", "state"),
        ("4_update_traversals.sql", "then 'ending' else t.state", "'endin'", "state"),
        ("1_node_rules.sql", "p_phase = 'execute'", "'acts'", "phase"),
        ("4_apply_transitions.sql", "status = 'FAILED'", "'failed'", "status"),
        ("5_advance.sql", "v_row.kind := 'refused'", "'refusd'", "kind"),
        ("1_node_rules.sql", "p_operation not in ('begin', 'finish')", "'end'", "operation"),
        ("1_node_rules.sql", "p_traversal_state <> 'running'", "'runing'", "state"),
        ("3_archive_nodes.sql", "('running', 'parked', 'ready')", "'held'", "state"),
        ("1_working_time.sql", "p_state = 'running'", "'runing'", "state"),
    ],
)
def test_a_literal_that_is_not_a_value_of_its_column_is_found(
    name: str, right: str, typo: str, error: str
) -> None:
    text = TEXTS[name]
    assert right in text
    changed = text.replace(right, re.sub(r"'\w+'(?!.*'\w+')", typo, right), 1)
    assert any(one.endswith(f"{error} {typo}") for one in wrong(changed))


def test_a_value_of_another_table_is_found() -> None:
    assert wrong("select 1 from node n where n.state = 'answered'")
    assert wrong("update hook set state = 'parked' where id = $1")
    assert wrong("insert into delivery (id, state) values ($1, 'running')")
    assert not wrong("insert into delivery (id, state) select $1, 'pending' from hook")


CHECKS = """
select r.relname as table, pg_get_constraintdef(c.oid) as text
  from pg_constraint c join pg_class r on r.oid = c.conrelid
 where c.contype = 'c' and pg_get_constraintdef(c.oid) ~ '= ANY'
"""
INDEXES = "select indexdef from pg_indexes where schemaname = 'public'"
CHECK = re.compile(r"(\w+) = ANY \(ARRAY\[(.*?)\]\)")


async def test_check_constraints_allow_exactly_the_values(database: Database) -> None:
    checked = {}
    for row in await database.pool.fetch(CHECKS):
        match = CHECK.search(row["text"])
        assert match is not None, row["text"]
        checked[row["table"], match[1]] = frozenset(re.findall(r"'(\w+)'", match[2]))
    assert {("node", "state"), ("traversal", "state"), ("hook", "state")} <= checked.keys()
    assert {column: VALUES.get(column) for column in checked} == checked


async def test_partial_indexes_use_existing_values(database: Database) -> None:
    rows = await database.pool.fetch(INDEXES)
    assert any("'waiting'" in row["indexdef"] for row in rows)
    found = [error for row in rows
             for error in wrong(row["indexdef"].replace(" ON public.", " from "))]  # fmt: skip
    assert found == []
