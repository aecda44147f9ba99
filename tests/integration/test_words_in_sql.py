"""The names of states and the like in SQL are those of the program's enumerations."""

import re
from collections.abc import Iterable, Mapping, Sequence

import pytest

from channels.store.records import DeliveryState, Origin, SubscriptionState
from engine import words
from engine.store.database import Database
from engine.store.routine_versions import routines
from tests.integration.test_statements import FOUND
from tests.support.sql_literals import texts, values

DECISIONS = frozenset(
    {words.word_of(one, how) for one in (words.Decision.STEP,) for how in words.How}
    | {*words.Decision, *words.OnTimeout}
)

#: Of `[auth] mode`.
MODES = frozenset({"none", "tokens", "keystone"})

#: Columns that hold words of an enumeration.
_OF: Mapping[tuple[str, str], Sequence[Iterable[str]]] = {
    ("traversal", "state"): (words.TraversalState,),
    ("traversal", "action"): (words.Action,),
    ("traversal", "pace"): (words.Pace,),
    ("node", "state"): (words.State,),
    ("node", "phase"): (words.Phase,),
    ("node", "operation"): (words.Operation,),
    ("node", "direction"): (words.Direction,),
    ("resource", "action"): (words.ResourceAction,),
    ("resource", "status"): (words.Status,),
    ("resource", "deletion_policy"): (words.DeletionPolicy,),
    ("hook", "state"): (words.HookState,),
    ("hook", "mode"): (words.Mode,),
    ("hook", "on_timeout"): (words.OnTimeout,),
    ("hook", "decision"): (DECISIONS,),
    ("hook", "door"): (words.Door,),
    ("decision", "door"): (words.Door,),
    ("decision", "kind"): (DECISIONS,),
    ("token", "kind"): (frozenset({"token", "password"}),),
    ("advance", "kind"): (frozenset({"node", "unread", "end", "turn", "refused"}),),
    # Of stacks, and of resources.
    ("event", "action"): (words.Action, words.ResourceAction),
    ("event", "status"): (words.Status,),
    ("event data", "operation"): (frozenset({"protect", "unprotect"}),),
    ("software_deployment", "action"): (words.Action,),
    ("software_deployment", "status"): (words.Status,),
    ("subscription", "state"): (SubscriptionState,),
    ("subscription", "origin"): (Origin,),
    ("delivery", "state"): (DeliveryState,),
    ("token_mode", "mode"): (MODES,),
}
WORDS: Mapping[tuple[str, str], frozenset[str]] = {
    column: frozenset(each for enum in enums for each in enum) for column, enums in _OF.items()
}
TABLES: Mapping[str, frozenset[str]] = {
    table: frozenset(column for other, column in WORDS if other == table) for table, _ in WORDS
}


def allowed(tables: Iterable[str], column: str) -> frozenset[str]:
    """The words of a column; of tables that cannot be told apart, those of each."""
    of = [table for table, name in WORDS if name == column and table in tables]
    of = of or [table for table, name in WORDS if name == column]
    return frozenset(word for table in of for word in WORDS[table, column])


def wrong(text: str) -> list[str]:
    """Literals that are no word of the column that they are a value of."""
    return [
        f"line {one.line}: {one.column} '{one.word}'"
        for one in values(text, TABLES)
        if one.word not in allowed(one.tables, one.column)
    ]


TEXTS = FOUND | {file.name: file.text for file in routines()}

#: Words that are names of something else, too: keys of JSON, ways of writing, kinds of rows.
AMBIGUOUS = frozenset({"node", "progress", "protect", "rule", "step", "token", "unprotect",
                       "update", "end", "turn", "unread", "refused"})  # fmt: skip
#: Words for which no column can be read from the text: in the second select of a union, in an
#: expression that is compared as a whole, as the reason of a refusal.
BY_HAND: Mapping[str, list[str]] = {
    "engine.store.current_resources.READ_EXISTING": ["INIT", "COMPLETE", "Delete"],
    "engine.store.current_resources.READ_CONCERNED": ["INIT", "COMPLETE", "Delete"],
    "engine.store.resource_health.MARK_HEALTH": ["failed"],
    "channels.store.claim.NEXT_DUE": ["enabled"],
    "channels.store.subscriptions.CHANGE": ["enabled", "disabled", "enabled"],
    "1_current_resource.sql": ["UPDATE", "IN_PROGRESS"],
}


def unseen(text: str) -> list[str]:
    """Literals that are a word of some column, and are not seen to be a value of any."""
    every = frozenset(word for of in WORDS.values() for word in of) - AMBIGUOUS
    seen = {one.at for one in values(text, TABLES)}
    return [one.word for at, one in texts(text) if one.word in every and at not in seen]


def test_every_word_in_sql_is_one_of_its_column() -> None:
    found = {name: said for name, text in TEXTS.items() if (said := wrong(text))}
    assert found == {}


def test_every_word_is_seen_with_its_column() -> None:
    """So that nothing escapes the test before: what it cannot read is listed, one by one."""
    found = {name: words for name, text in TEXTS.items() if (words := unseen(text))}
    assert found == BY_HAND


@pytest.mark.parametrize(
    ("name", "right", "typo", "said"),
    [
        (
            "engine.store.traversal_end.SUPERSEDE_HOOKS",
            "and state = 'waiting'",
            "'wating'",
            "state",
        ),
        (
            "engine.store.traversal_end.UNWELL",
            "state in ('failed', 'stopped')",
            "'stoped'",
            "state",
        ),
        ("channels.store.delivery_results.FAIL", "set state = 'dead'", "'killed'", "state"),
        ("4_update_clock.sql", "then 'ending' else t.state", "'endin'", "state"),
        ("4_apply_transitions.sql", "s.phase = 'act'", "'acts'", "phase"),
        ("4_apply_transitions.sql", "status = 'FAILED'", "'failed'", "status"),
        ("5_advance.sql", "v_row.kind := 'refused'", "'refusd'", "kind"),
        ("4_claim_due.sql", "n.operation not in ('begin', 'finish')", "'end'", "operation"),
        ("3_archive_nodes.sql", "('running', 'parked', 'ready')", "'held'", "state"),
        ("1_working_time.sql", "p_state = 'running'", "'runing'", "state"),
    ],
)
def test_a_word_that_its_column_does_not_have_is_seen(
    name: str, right: str, typo: str, said: str
) -> None:
    text = TEXTS[name]
    assert right in text
    changed = text.replace(right, re.sub(r"'\w+'(?!.*'\w+')", typo, right), 1)
    assert any(one.endswith(f"{said} {typo}") for one in wrong(changed))


def test_a_word_of_another_table_is_seen() -> None:
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


async def test_checks_of_the_schema_allow_exactly_the_words(database: Database) -> None:
    checked = {}
    for row in await database.pool.fetch(CHECKS):
        match = CHECK.search(row["text"])
        assert match is not None, row["text"]
        checked[row["table"], match[1]] = frozenset(re.findall(r"'(\w+)'", match[2]))
    assert {("node", "state"), ("traversal", "state"), ("hook", "state")} <= checked.keys()
    assert {column: WORDS.get(column) for column in checked} == checked


async def test_indexes_are_of_words_that_there_are(database: Database) -> None:
    rows = await database.pool.fetch(INDEXES)
    assert any("'waiting'" in row["indexdef"] for row in rows)
    found = [said for row in rows
             for said in wrong(row["indexdef"].replace(" ON public.", " from "))]  # fmt: skip
    assert found == []
