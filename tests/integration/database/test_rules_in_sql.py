"""Functions in SQL that repeat a rule of Python or of the model, compared with it for all cases."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

from channels.store.records import DeliveryState
from engine.hooks.drift_digests import (
    DriftDigests,
    are_comparable,
    compare_keys_in_sql,
    digests_differ,
    digests_differ_in_sql,
)
from engine.hooks.rule import Rule, encode_rule
from engine.node.node import ENDED
from engine.plan.drift import is_applied, is_marked_after
from engine.store.database import Database
from engine.store.traversals.advance import (
    MAX_EXPIRED_LEASES,
    TOO_LARGE,
    is_given_up,
    is_last_try,
)
from engine.words import (
    GATES,
    STATUS_OF,
    Mode,
    Operation,
    Phase,
    ResourceAction,
    State,
    Status,
    StepMode,
    TraversalState,
)
from engine.work.nodes.hook_opening import ACTION_OF, CURRENT_ACTION_OF
from tests.model import store
from tests.model.system_state import Node, Transition


async def test_a_stored_rule_blocks_as_the_rule_does(database: Database) -> None:
    rules = [
        Rule("pre-create", mode=mode, dry=dry, stepped=stepped, by_operator=by_operator)
        for mode in Mode
        for dry, stepped, by_operator in product((False, True), repeat=3)
    ]
    async with database.connection() as conn:
        rows = await conn.fetch(
            "select rule_blocks(rule) as blocks from unnest($1::jsonb[]) with ordinality r (rule, n)"
            " order by n",
            [encode_rule(rule) for rule in rules],
        )
    assert [row["blocks"] for row in rows] == [rule.blocks for rule in rules]


async def test_the_limits_of_claims_are_those_of_python(database: Database) -> None:
    async with database.connection() as conn:
        row = await conn.fetchrow("select max_expired_leases() as leases, too_large() as bytes")
    assert row is not None and dict(row) == {"leases": MAX_EXPIRED_LEASES, "bytes": TOO_LARGE}


async def test_the_ended_states_are_those_of_the_node_machine(database: Database) -> None:
    async with database.connection() as conn:
        rows = await conn.fetch(
            "select state, is_ended(state) as ended from unnest($1::text[]) s (state)", list(State)
        )
    assert {row["state"] for row in rows if row["ended"]} == ENDED
    assert len(rows) == len(State)


async def test_the_status_of_a_stack_is_that_of_python(database: Database) -> None:
    found = await values_of(database, "traversal_status($1)", [(one,) for one in TraversalState])
    assert found == [STATUS_OF[one] for one in TraversalState]


async def values_of(database: Database, call: str, cases: Sequence[Sequence[Any]]) -> list[Any]:
    """The values of a function in SQL. call: with casts of its arguments: ``is_ended($1::text)``."""
    async with database.connection() as conn:
        statement = await conn.prepare(f"select {call}")
        return [await statement.fetchval(*case) for case in cases]


async def test_the_operations_that_may_be_under_way_are_those_of_active_nodes(
    database: Database,
) -> None:
    cases = list(product(State, Phase))
    found = await values_of(database, "is_operating($1, $2)", cases)
    assert found == [
        state in store.LIVE and phase in (Phase.EXECUTE, Phase.CONFIRM) for state, phase in cases
    ]


async def test_an_operation_starts_as_in_the_model(database: Database) -> None:
    now = datetime.now(UTC)
    cases = list(product(Phase, (None, now)))
    found = await values_of(database, "starts_operation($1, $2)", cases)
    assert found == [
        started_at is None and store.starts_operation(State.RUNNING, phase)
        for phase, started_at in cases
    ]


async def test_the_recorded_state_is_applied_as_the_plan_says(database: Database) -> None:
    now = datetime.now(UTC)
    cases = list(product(ResourceAction, Status, (None, now)))
    assert await values_of(database, "is_applied($1, $2, $3)", cases) == [
        is_applied(action, status, marked=marked is not None) for action, status, marked in cases
    ]


async def test_a_mark_lasts_until_an_operation_begins(database: Database) -> None:
    marked, started = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    cases = list(product((None, marked), (None, started)))
    assert await values_of(database, "marked_after($1, $2)", cases) == [
        at if is_marked_after(marked=at is not None, begun=begun is not None) else None
        for at, begun in cases
    ]


async def test_digests_of_drift_differ_as_in_python(database: Database) -> None:
    keys = [DriftDigests(key * 32) for key in (b"a", b"b")]
    digests = [
        key.make(UUID(int=1), UUID(int=2), [("x", values)])
        for key in keys
        for values in (b"1", b"2")
    ]
    cases = list(product((None, *digests), repeat=2))
    comparable = compare_keys_in_sql("$1::text", "$2::text")
    assert await values_of(database, comparable, cases) == [are_comparable(*one) for one in cases]
    differ = digests_differ_in_sql("$1::text", "$2::text")
    found = await values_of(database, differ, cases)
    assert found == [digests_differ(*one) for one in cases]


async def test_a_claim_calls_the_operation_of_an_ended_worker_again(database: Database) -> None:
    cases = list(product(State, Phase, (None, datetime.now(UTC)), Operation))
    assert await values_of(database, "is_restarted($1, $2, $3, $4)", cases) == [
        started_at is not None and operation not in GATES and store.starts_operation(state, phase)
        for state, phase, started_at, operation in cases
    ]


KEY = UUID(int=7)


async def test_operation_keys_are_those_of_the_model(database: Database) -> None:
    cases = list(product((None, KEY), Operation, Operation, Phase))
    found = await values_of(database, "operation_key_after($1, $2, $3, $4)", cases)
    words: dict[Any, str] = {None: "none", KEY: "kept", 2: "kept", 1: "new"}
    expected = []
    for before, operation, new_operation, phase in cases:
        node = _node(operation=operation, claim=1)._replace(key=None if before is None else 2)
        transition = _transition(operation=new_operation, phase=phase)
        expected.append(words[store.operation_key(node, transition)])
    assert [words.get(key, "new") for key in found] == expected
    created = [key for key in found if key not in words]
    assert len(created) == len(set(created)) > 0


async def test_operations_are_called_again_as_in_the_model(database: Database) -> None:
    cases = list(product((False, True), State, Phase))
    found = await values_of(database, "is_called_again($1, $2, $3)", cases)
    assert found == [
        store.is_called_again(_node()._replace(call_again=again), _transition(state, phase))
        for again, state, phase in cases
    ]


async def test_a_hook_shows_the_replacement_only_after_it_is_made(database: Database) -> None:
    old, new = UUID(int=1), UUID(int=2)
    cases = list(product(Phase, Operation, (old,), (None, new)))
    assert await values_of(database, "resource_at_hook($1, $2, $3, $4)", cases) == [
        replacement if (phase, operation) == (Phase.POST, Operation.REPLACE) else old
        for phase, operation, _, replacement in cases
    ]


async def test_steps_are_refused_as_in_the_model(database: Database) -> None:
    modes = (None, *StepMode)
    cases = list(product(TraversalState, modes, modes, State, (False, True)))
    found = await values_of(database, "is_refused($1, $2, $3, $4, $5)", cases)
    assert found == [
        store.is_refused(traversal, state, other_mode=mode is not decided, hooks=hooks)
        for traversal, mode, decided, state, hooks in cases
    ]


async def test_runs_are_those_of_the_model(database: Database) -> None:
    cases = list(product(TraversalState, (None, *StepMode)))
    found = await values_of(database, "has_runs($1, $2)", cases)
    assert found == [store.has_runs(traversal, mode) for traversal, mode in cases]


async def test_the_nodes_of_a_run_are_those_of_the_model(database: Database) -> None:
    rules = ((), (Rule("pre-create"),))
    cases = list(product(Operation, Phase, rules, State, range(3)))
    stored = [
        (operation, phase, [encode_rule(rule) for rule in of] or None, state, count)
        for operation, phase, of, state, count in cases
    ]
    nodes = [
        _node(state, phase, operation, pending=count) for operation, phase, _, state, count in cases
    ]
    found = await values_of(database, "is_later_run_node($1, $2, $3, $4, $5)", stored)
    assert found == [
        store.is_later_run_node(node, case[2]) for node, case in zip(nodes, cases, strict=True)
    ]
    first = await values_of(database, "is_run_node($1, $2, $3)", [case[:3] for case in stored])
    assert first == [
        store.is_run_node(node, case[2]) for node, case in zip(nodes, cases, strict=True)
    ]


def _node(
    state: State = State.RUNNING,
    phase: Phase = Phase.EXECUTE,
    operation: Operation = Operation.CREATE,
    *,
    pending: int = 0,
    claim: int = 0,
) -> Node:
    return Node(state, phase, operation, (), pending, claim, wake=True, resource=1)


def _transition(
    state: State = State.RUNNING,
    phase: Phase = Phase.EXECUTE,
    operation: Operation = Operation.CREATE,
) -> Transition:
    return Transition(state, phase, operation, (), False, None, (), False)


async def test_expired_leases_are_counted_and_limited_as_in_python(database: Database) -> None:
    counts = range(MAX_EXPIRED_LEASES + 2)
    cases = list(product(counts, State, (None, "w")))
    found = await values_of(database, "expired_leases_at_claim($1, $2, $3)", cases)
    assert found == [
        count + (state is State.RUNNING and worker is not None) for count, state, worker in cases
    ]
    each = [(count,) for count in counts]
    last = await values_of(database, "is_last_try($1)", each)
    given_up = await values_of(database, "is_given_up($1)", each)
    assert last == list(map(is_last_try, counts))
    assert given_up == list(map(is_given_up, counts))
    assert await values_of(database, "is_suspect($1)", each) == [
        count > 0 and not is_given_up(count) for count in counts
    ]


async def test_the_actions_of_operations_are_those_of_python(database: Database) -> None:
    cases = [(operation,) for operation in Operation]
    assert await values_of(database, "action_of($1)", cases) == list(ACTION_OF.values())
    assert await values_of(database, "current_action_of($1)", cases) == list(
        CURRENT_ACTION_OF.values()
    )


async def test_the_turns_of_deliveries_follow_their_state_and_time(database: Database) -> None:
    now = datetime.now(UTC)
    times = (None, *(now + timedelta(microseconds=moved) for moved in (-1, 0, 1)))
    cases = list(product(DeliveryState, times))
    pending = [state is DeliveryState.PENDING for state, _ in cases]
    turn = await values_of(database, "delivery_has_turn($1, $2)", cases)
    blocked = await values_of(database, "delivery_is_blocked($1, $2)", cases)
    due = await values_of(
        database, "coalesce(delivery_is_due($1, $2, $3), false)", [(*case, now) for case in cases]
    )
    assert turn == [one and at is not None for one, (_, at) in zip(pending, cases, strict=True)]
    assert blocked == [one and at is None for one, (_, at) in zip(pending, cases, strict=True)]
    assert due == [
        one and at is not None and at <= now for one, (_, at) in zip(pending, cases, strict=True)
    ]
    attempts = [(count,) for count in range(3)]
    assert await values_of(database, "is_retry($1)", attempts) == [False, True, True]


#: A stack and its nested one, with tags, and the same deleted.
INSERT_STACKS = """
with inserted as (
    insert into stack (id, project, name, owner, version, traversal, parent_id, tags, deleted_at)
    select gen_random_uuid(), 'p', 's' || n, 'me', 1, 1, case when n % 2 = 1 then gen_random_uuid() end,
           case n / 2 % 3 when 0 then array['a'] when 1 then array['a', 'b'] else '{}' end,
           case when n >= 6 then now() end
      from generate_series(0, 11) n
    returning id
), started as (
    insert into traversal (stack_id, number, project, action, version, state, reason, digest,
                           active_nodes, requested_by)
    select id, 1, 'p', 'CREATE', 1, 'complete', '', '', 0, 'me' from inserted
)
insert into template (stack_id, version, description, template, environment, files, parameters,
                      masked_parameters, hidden_parameters, outputs, requested_by)
select id, 1, '', '{}', '{}', '{}', '{}', '{}', '{}', '[]', 'me' from inserted
"""
#: Whether both functions list a stack; $2, $3: as `stack_page` computes them.
LISTED = """
select s.name, stack_matches(s, $1) as matches, stack_is_listed(s, $1, $2, $3) as listed
  from current_stack s order by s.name
"""


async def test_a_page_lists_the_stacks_that_match_its_filter(database: Database) -> None:
    """The quick way for plain filters gives the same answer."""
    excluded: list[list[str]] = [[], ["a"], ["b"], ["a", "c"], ["c"]]
    plain: list[Any] = [({"not_tags_any": tags} if tags else {}, True, tags) for tags in excluded]
    others: list[Any] = [({"show_nested": True}, False, []), ({"names": ["s0"]}, False, [])]
    async with database.connection() as conn:
        await conn.execute(INSERT_STACKS)
        found = [await conn.fetch(LISTED, *case) for case in (*plain, *others)]
    for rows in found:
        assert len(rows) == 12
        assert [row["listed"] for row in rows] == [row["matches"] for row in rows]
    assert [sum(row["listed"] for row in rows) for rows in found] == [3, 1, 2, 1, 3, 6, 1]
