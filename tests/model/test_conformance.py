"""Random walks through the model, replayed on the real engine: after each move both must be equal.

Faults planted in the statements of the store must be detected, so that neither changes alone.
"""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from engine.store.database import Database
from engine.store.hooks import breakpoints, locked_hooks, step_modes
from engine.store.resources import current_resources
from engine.store.stacks import stack_tree
from engine.store.traversals import end as traversal_end
from engine.store.traversals import graph_archive, nested_stacks
from engine.store.traversals import start as traversal_start
from tests.model import faults, scenarios, tree_scenarios
from tests.model.explore import explore_once
from tests.model.faults import Fault, shortest_trace
from tests.model.random_walks import random_walk, replay_trace
from tests.model.replay import Divergence
from tests.model.stack_tree import TreeScenario
from tests.model.system_state import Scenario
from tests.model.tree_replay import random_tree_walk, replay_tree_trace

#: Random walks for each scenario, and at most this many until a fault is detected.
WALKS, MAX_WALKS = 4, 200
#: Those of stack trees.
TREE_WALKS = 3


@pytest.mark.parametrize("scenario", scenarios.ALL, ids=lambda scenario: scenario.name)
async def test_the_engine_equals_the_model(database: Database, scenario: Scenario) -> None:
    rng = random.Random(scenario.name)
    lengths = [await random_walk(database, scenario, rng) for _ in range(WALKS)]
    print(f"{scenario.name}: {sum(lengths)} moves in {WALKS} walks")
    assert sum(lengths) > 5 * WALKS


@pytest.mark.parametrize("scenario", tree_scenarios.ALL, ids=lambda scenario: scenario.name)
async def test_the_engine_steps_through_a_tree_as_the_model(
    database: Database, scenario: TreeScenario
) -> None:
    rng = random.Random(scenario.name)
    lengths = [await random_tree_walk(database, scenario, rng) for _ in range(TREE_WALKS)]
    print(f"{scenario.name}: {sum(lengths)} moves in {TREE_WALKS} walks")
    assert sum(lengths) > 5 * TREE_WALKS


async def test_known_violations_happen_in_the_engine(database: Database) -> None:
    for scenario in scenarios.ALL:
        for invariant in scenario.known_violations:
            await replay_trace(
                database, scenario, explore_once(scenario).counterexamples[invariant].trace
            )
    for tree_scenario in tree_scenarios.ALL:
        for invariant in tree_scenario.known_violations:
            await replay_tree_trace(
                database,
                tree_scenario,
                explore_once(tree_scenario).counterexamples[invariant].trace,
            )


ROUTINE = "select pg_get_functiondef(oid) from pg_proc where proname = $1"

#: A faulty version that reads the removed rows from the unfiltered steps.
UNFILTERED = """from step s;
        select jsonb_agg(s -> 'resource' || jsonb_build_object('stack_id', s -> 'stack_id'))
                   filter (where s -> 'resource' ->> 'write' = 'remove'
                             and s -> 'resource' ->> 'replaced_by' is not null)
          into v_replaced from jsonb_array_elements(p_steps) s;"""


class StatementFault(NamedTuple):
    """A fault: `faulty` replaces `correct` in a constant of a module, or in a routine.

    model_fault: the same fault in the model. Its shortest trace is replayed, because random walks
    do not find it.
    """

    description: str
    where: tuple[object, str] | str
    correct: str
    faulty: str
    scenario: Scenario | TreeScenario
    model_fault: Fault | None = None


STATEMENT_FAULTS = (
    StatementFault("a step does not increment the claim", "apply_transitions",
          "claim = n.claim + 1, -- the same", "claim = n.claim, -- what", scenarios.CHAIN),
    StatementFault("a step does not compare the claim", "apply_transitions",
          "and n.id = s.node and n.claim = s.claim", "and n.id = s.node", scenarios.CHAIN),
    StatementFault("a claim does not increment", "claim_due",
          "'running', claim = n.claim + 1", "'running', claim = n.claim", scenarios.CHAIN),
    StatementFault("waits are decremented twice", "wake_dependents",
          "pending_dependencies = n.pending_dependencies - f.times",
          "pending_dependencies = n.pending_dependencies - 2 * f.times", scenarios.CHAIN),
    StatementFault("the node of the newer traversal is not released", "wake_dependents",
          "select m.stack_id, m.current_traversal, m.successor, 1",
          "select m.stack_id, m.current_traversal, -1, 1", scenarios.UPDATED),
    StatementFault("a node that waited does not continue with the replacement", "wake_dependents",
          "coalesce(f.replacement_id, n.resource_id)", "n.resource_id",
          scenarios.REPLACED_SUPERSEDED),
    StatementFault("nodes that become ready are not counted", "traversal_changes",
          "select r.stack_id, r.traversal, false, 1, 0",
          "select r.stack_id, r.traversal, false, 0, 0",
          scenarios.CHAIN),
    StatementFault("a node that waited for an older operation stays counted", "traversal_changes",
          "select stack_id, current_traversal, false, -1, 0",
          "select stack_id, current_traversal, false, 0, 0", scenarios.UPDATED),
    StatementFault("nodes at hooks are not counted", "traversal_changes",
          "is_blocked::integer - was_blocked::integer", "0 - was_blocked::integer",
          scenarios.HOOKED),
    StatementFault("an ended traversal opens hooks", "is_refused",
          "p_opens_hook and p_traversal_state <> 'running'\n", "false\n",
          scenarios.POST_HOOK_SUPERSEDED),
    StatementFault("a step for another step mode is written", "is_refused",
          "p_decided_mode is distinct from p_step_mode", "false",
          scenarios.STEPPED, faults.OTHER_MODE),
    StatementFault("the answer to a step is not stored", "apply_transitions",
          "confirmation = s.confirmation", "confirmation = null", scenarios.CONFIRMED),
    StatementFault("stepping leaves nodes without a phase pre", (step_modes, "SET_STEP_MODES"),
          "set phase = m.phase_after", "set phase = n.phase", scenarios.STEPPED_CREATE),
    StatementFault("a snapshot stores no rows", "apply_transitions",
          "where s.snapshot is not null", "where false", scenarios.SNAPSHOT_TAKEN),
    StatementFault("a refused step is written", "apply_transitions",
          "where not refused\n           and (not later", "where (not later",
          scenarios.POST_HOOK_SUPERSEDED),
    StatementFault("each claim gives the operation a new key", "operation_key_after",
          "coalesce(case when p_before = p_operation then p_key end,", "coalesce(null::uuid,",
          scenarios.CHAIN),
    StatementFault("a replacement uses the operation key of the update", "apply_transitions",
          "coalesce(s.operation_key,", "coalesce(n.operation_key, s.operation_key,",
          scenarios.UPDATED_TWICE),
    StatementFault("a failure releases dependents", "wake_dependents",
          "where m.state = 'done' group by", "where m.state in ('done', 'failed') group by",
          scenarios.CHAIN),
    StatementFault("a superseded replacement adds a delete", "add_nodes",
          "and t.state = 'running'", "", scenarios.REPLACED_SUPERSEDED),
    StatementFault("an added delete waits for nodes that are done", "add_nodes",
          "and n.id = b.id and n.state <> 'done'", "and n.id = b.id", scenarios.REPLACED),
    StatementFault("the nodes before an added delete do not release it", "add_nodes",
          "n.dependents || e.ids", "n.dependents", scenarios.REPLACED),
    StatementFault("an added delete releases no node", "add_nodes",
          "n.pending_dependencies + e.count", "n.pending_dependencies",
          scenarios.REPLACED_BOTH, faults.NOT_WAITED_FOR),
    StatementFault("an added delete that is ready is not counted", "add_nodes",
          "return v_ready", "return '{}'", scenarios.REPLACED_SUPERSEDED),
    StatementFault("dependents of a replaced resource are not updated", "apply_transitions",
          "coalesce(g.replaced_by, u.id)", "u.id",
          scenarios.REPLACED_WITH_DEPENDENTS),
    StatementFault("an outdated step updates dependents of a replaced resource",
          "apply_transitions",
          "from step s;", UNFILTERED, scenarios.REPLACED_WITH_DEPENDENTS, faults.OUTDATED_REMOVAL),
    StatementFault("an in-place action clears the digest", "apply_transitions",
          "coalesce(s.resource ->> 'digest', r.digest)", "coalesce(s.resource ->> 'digest', '')",
          scenarios.CHECKED),
    StatementFault("the deletion policy is not stored", "apply_transitions",
          "deletion_policy = s.resource ->> 'deletion_policy'", "deletion_policy = 'Delete'",
          scenarios.RETAINED),
    StatementFault("a failed replacement does not set its resource to FAILED", "apply_transitions",
          "case s.resource ->> 'write' when 'leave' then 'FAILED' else r.status end", "r.status",
          scenarios.LEAVING),
    StatementFault("a run writes a node before which a breakpoint was set", "apply_transitions",
          "is_later_run_node(n.operation, n.phase, n.rules,",
          "is_later_run_node(n.operation, 'execute', null,",
          scenarios.RUN_AT_BREAKPOINT, faults.RUN_PAST_BREAKPOINT),
    StatementFault("a worker keeps a node before which a breakpoint was set",
          (breakpoints, "SET_RULES"), "n.claim + s.given_back::integer", "n.claim",
          scenarios.BREAKPOINT_AT_REPLACED, faults.KEPT_AT_BREAKPOINT),
    StatementFault("a run is written without its first node", "apply_transitions",
          "having count(*) = max(run_size)", "having true", scenarios.RUN,
          faults.RUN_WITHOUT_FIRST),
    StatementFault("a run has a node that waits for another one, too", "is_later_run_node",
          "and p_state = 'waiting' and p_pending_dependencies = 1", "and p_state = 'waiting'",
          scenarios.RUN_TO_A_JOIN),
    StatementFault("a node of a run stays waiting for the one before", "apply_transitions",
          "case when s.later then 0 else n.pending_dependencies end", "n.pending_dependencies",
          scenarios.RUN),
    StatementFault("nodes of a run end without having been active", "traversal_changes",
          "+ was_waiting::integer as active", "as active",
          scenarios.RUN),
    StatementFault("a run includes a node with hook rules", "later_nodes",
          "is_later_run_node(n.operation, n.phase, n.rules,",
          "is_later_run_node(n.operation, n.phase, null,", scenarios.RUN_TO_HOOK),
    StatementFault("attempts are not counted", "apply_transitions",
          "attempts = s.attempts", "attempts = 0", scenarios.RETRIED),
    StatementFault("the time limit of a waiting traversal is not checked", "update_traversals",
          "case when t.state = 'running' -- and", "case when false -- and",
          scenarios.TIMED_OUT),
    StatementFault("time counts while all nodes are at hooks", "working_time_since",
          "p_active > p_blocked", "p_active > 0", scenarios.HOOKED),
    StatementFault("time counts after the end", "working_time_since",
          "p_state = 'running' and ", "", scenarios.UPDATED),
    StatementFault("a reached time limit ends no traversal", (traversal_end, "ENDING"),
          "t.time_limit, clock_timestamp())", "t.time_limit, '-infinity')",
          scenarios.TIMED_OUT),
    StatementFault("a rollback leads to a failed version", (traversal_end, "LAST_COMPLETE"),
          "and state = 'complete'", "", scenarios.ROLLED_BACK),
    StatementFault("ready nodes are not dropped", (traversal_end, "MOVE_NODES"),
          "n.phase = k.phase", "n.phase = k.phase and n.state <> 'ready'", scenarios.UPDATED),
    StatementFault("hooks of a superseded traversal keep waiting", (traversal_end,
          "SUPERSEDE_HOOKS"),
          "and state = 'waiting'", "and state = 'nothing'", scenarios.HOOK_SUPERSEDED),
    StatementFault("a superseded traversal is not woken for its operations", (traversal_end,
          "END_EARLY"),
          "(select min(n.wake_at) from node n\n"
          "                   where n.stack_id = $1 and n.traversal = $2\n"
          "                     and (not traversal.labelled or n.label = ''))", "null",
          scenarios.UPDATED),
    StatementFault("a delete cancels operations of the last traversal only", (traversal_end,
          "CANCEL_OPERATIONS"),
          "or t.number in", "and t.number in", scenarios.WAITING_DELETED),
    StatementFault("a delete cancels deletes", (traversal_end, "CANCEL_OPERATIONS"),
          "n.operation = any ($2)", "$2::text[] is not null", scenarios.RECREATED_DURING_DELETE),
    StatementFault("an operation that is being called is not called again", "wake_nodes",
          "call_again = k.state = 'running'", "call_again = false", scenarios.WAITING_DELETED),
    StatementFault("successors are not stored", (traversal_start, "SET_SUCCESSORS"),
          "set successor = s.successor", "set successor = null", scenarios.UPDATED),
    StatementFault("nodes that run an operation are archived", (graph_archive, "ARCHIVE_PAGE"),
          "n.state not in ('running', 'parked', 'ready')", "true", scenarios.UPDATED),
    StatementFault("the row that an operation will create is not read", (current_resources,
          "READ_CURRENT"),
          "where n.replacement_id is not null", "where false", scenarios.RECREATED_DURING_DELETE),
    StatementFault("stepping stops before data is read", (step_modes, "SET_STEP_MODES"),
          "n.operation = m.operation", "m.operation = 'create'", scenarios.DATA_STEPPED),
    StatementFault("a step into a nested stack is not stored", (step_modes, "SET_STEP_INTO"),
          "step_into = true", "step_into = false", tree_scenarios.STEPPED),
    StatementFault("a nested stack does not step into", "start_traversal",
          "when n.step_into then 'step'", "when false then 'step'", tree_scenarios.STEPPED),
    StatementFault("a step over a nested stack stops inside", "start_traversal",
          "when p.step_mode = 'run' then 'run'", "else p.step_mode", tree_scenarios.STEPPED),
    StatementFault("run does not apply to a nested stack that begins later", "start_traversal",
          "when p.step_mode = 'run' then 'run'", "", tree_scenarios.RUN),
    StatementFault("a nested traversal in step mode begins operations at once", "start_traversal",
          "then n.stepped_phase else n.phase", "then n.phase else n.phase",
          tree_scenarios.STEPPED),
    StatementFault("an answer does not reach parents", (stack_tree, "READ"),
          "where id = a.parent_id offset 0) p", "where false offset 0) p",
          tree_scenarios.STEPPED_FROM_INSIDE),
    StatementFault("an answer does not reach nested stacks", (stack_tree, "READ"),
          "where parent_id = i.id offset 0) c", "where false offset 0) c",
          tree_scenarios.RUN),
    StatementFault("an answer reaches the nested stack of an earlier change",
          (stack_tree, "READ"),
          "and t.parent_traversal = i.traversal\n)", "\n)",
          tree_scenarios.STEPPED_SUPERSEDED, faults.OTHER_CHANGE),
    StatementFault("a step into a nested stack outlasts run", (step_modes, "CLEAR_ALL"),
          "and n.step_into", "and false", tree_scenarios.STEPPED_BESIDE,
          faults.INTO_AFTER_RUN),
    StatementFault("a step into a nested stack outlasts the end of its stepping",
          (step_modes, "CLEAR_OWNERS"), "and n.step_into", "and false", tree_scenarios.STEPPED),
    StatementFault("a nested stack that begins later has no breakpoint to which a change runs",
          (breakpoints, "ADD_FOR_NESTED_STACKS"),
          "t.nested_breakpoints || s.nested_breakpoints", "t.nested_breakpoints",
          tree_scenarios.RUN_TO),
    StatementFault("a breakpoint to which a change runs leaves the phase of its node",
          (breakpoints, "SET_RULES"), "phase = s.phase", "phase = n.phase",
          tree_scenarios.RUN_TO),
    StatementFault("approvals of hooks in nested stacks are not counted",
          (locked_hooks, "READ_HOOKS"), "h.approved_keys", "array[]::text[] as approved_keys",
          tree_scenarios.APPROVED),
    StatementFault("a nested stack that failed wakes no parent", (nested_stacks, "WAKE"),
          "select wake_nodes(", "select (", tree_scenarios.STEPPED_FAILING),
    StatementFault("a nested stack that is complete wakes no parent", "complete_traversals",
          "perform wake_nodes(v_parents)", "null", tree_scenarios.STEPPED),
    StatementFault("operations with a nested stack do not end early",
          (traversal_end, "WAKE_WAITING"),
          "state in ('parked', 'running')", "false", tree_scenarios.STEPPED_STOPPED),
)  # fmt: skip


@pytest.fixture
async def fault(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, database: Database
) -> StatementFault:
    """Plant the fault in the module for this test, or in its database."""
    statement_fault: StatementFault = request.param
    if not isinstance(statement_fault.where, str):
        module, name = statement_fault.where
        text: str = getattr(module, name)
        assert statement_fault.correct in text
        monkeypatch.setattr(
            module, name, text.replace(statement_fault.correct, statement_fault.faulty)
        )
        return statement_fault
    async with database.connection() as conn:
        text = await conn.fetchval(ROUTINE, statement_fault.where)
        assert statement_fault.correct in text
        await conn.execute(text.replace(statement_fault.correct, statement_fault.faulty))
    return statement_fault


@pytest.mark.parametrize(
    "fault", STATEMENT_FAULTS, ids=lambda fault: fault.description, indirect=True
)
async def test_a_fault_in_a_statement_is_detected(
    database: Database, fault: StatementFault
) -> None:
    rng = random.Random(fault.description)
    trace = () if fault.model_fault is None else shortest_trace(fault.model_fault)
    with pytest.raises(Divergence) as divergence:
        await _find_divergence(database, fault.scenario, trace, rng)
    print(f"{fault.description}: {divergence.value}")


async def _find_divergence(
    database: Database,
    scenario: Scenario | TreeScenario,
    trace: Sequence[Any],
    rng: random.Random,
) -> None:
    """Replay the trace, then random walks. Raises Divergence."""
    if isinstance(scenario, TreeScenario):
        await replay_tree_trace(database, scenario, trace)
        for _ in range(MAX_WALKS):
            await random_tree_walk(database, scenario, rng)
        return
    await replay_trace(database, scenario, trace)
    for _ in range(MAX_WALKS):
        await random_walk(database, scenario, rng)
