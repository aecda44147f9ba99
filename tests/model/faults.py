"""Planted faults in the node machine, in planning and in statements, each with the invariant that
must detect it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from engine.hooks import answers
from engine.hooks.rule import Rule, step_rule
from engine.hooks.step_mode import RUN_TO, StepModeChange, step_mode_change
from engine.node import decisions, machine
from engine.node import node as tables
from engine.node.node import (
    ENDED,
    BreakpointAdded,
    Expired,
    Input,
    InvalidInput,
    MustConfirm,
    MustReplace,
    MustRetry,
    Step,
    Superseded,
    WakeAt,
)
from engine.node.pending_breakpoints import pending_breakpoints
from engine.plan import cleanup, forward, gates, passes
from engine.plan.draft import ExistingResource, Plan, PlannedNode
from engine.store.traversals.nested_stacks import NestedStackRecord
from engine.types.contract import Call, Child, Done, Outcome
from engine.types.groups import group_steps, member_changes, member_template, step_plans
from engine.types.groups.group import Batch, Policy
from engine.types.groups.group_steps import GroupPlan, GroupStep, MemberChange, Progress
from engine.types.groups.member_template import CurrentMembers
from engine.words import (
    Action,
    Decision,
    Operation,
    Phase,
    StackId,
    State,
    StepMode,
    TraversalState,
    pre_stack,
)
from tests.model import (
    nested,
    planning,
    protocol,
    scenarios,
    stack_tree,
    store,
    traversals,
    tree_scenarios,
    worker_decisions,
)
from tests.model.explore import AnyScenario, Counterexample, explore
from tests.model.nested import Nested, NestedSystemState
from tests.model.stack_tree import TreeState, expire_hook
from tests.model.system_state import (
    Hook,
    LaterNode,
    Node,
    NodePlan,
    NodeView,
    Row,
    SystemState,
    Transition,
    Worker,
    Write,
)

Table = dict[tuple[State, Phase, type[Input]], machine.Row]


class Fault(NamedTuple):
    """`replacement` replaces `attribute` of `module`. invariant: detects the fault in `scenario`.

    past_violations: another invariant detects the fault earlier, so explore past its violations.
    """

    description: str
    module: object
    attribute: str
    replacement: Any
    scenario: AnyScenario
    invariant: str
    past_violations: bool = False


def _ignore_breakpoints(system: SystemState, worker: Worker, later: LaterNode) -> bool:
    node = system.node(worker.traversal, later.node)
    return node is not None and node.claim == later.claim and node.state is State.WAITING


def _ignore_state(system: SystemState, worker: Worker, later: LaterNode) -> bool:
    return system.node(worker.traversal, later.node) is not None


def _ignore_first(system: SystemState, worker: Worker) -> bool:
    return all(store.fits(system, worker, later) for later in worker.later)


def _ignore_other_dependencies(node: Node, rules: tuple[Rule, ...]) -> bool:
    return node.state is State.WAITING and store.is_run_node(node, rules)


def _gate_without_later_nodes(nodes: list[PlannedNode], gate: PlannedNode) -> list[PlannedNode]:
    waited_for = {before for node in nodes for before in node.after}
    gate.after = {place for place in range(len(nodes)) if place not in waited_for}
    return [*nodes, gate]


def _ignore_claim(node: Node | None, worker: Worker) -> bool:
    return node is not None and node.state in store.LIVE


_released_by, _update_traversals, _apply_transition = (
    store.released_by,
    store.update_traversals,
    store.apply_transition,
)
_read_existing, _existing = traversals.read_existing, planning._existing
_rows_of = passes._applicable_rows
_begin_claim, _change, _failed = (
    worker_decisions.begin_claim,
    worker_decisions.change,
    worker_decisions._failed,
)
_wake_parent = nested.wake_parent
_in_place_write, _notify_type = worker_decisions._in_place_write, decisions._notify_type


def _release_no_successor(
    system: SystemState, worker: Worker, node: Node, transition: Transition
) -> list[tuple[int, int]]:
    return _released_by(system, worker, node._replace(successor=None), transition)


def _release_twice(
    system: SystemState, worker: Worker, node: Node, transition: Transition
) -> list[tuple[int, int]]:
    return [one for one in _released_by(system, worker, node, transition) for _ in range(2)]


def _release_after_failure(
    system: SystemState, worker: Worker, node: Node, transition: Transition
) -> list[tuple[int, int]]:
    done = State.DONE if transition.state in ENDED else transition.state
    return _released_by(system, worker, node, transition._replace(state=done))


def _count_ended_only(system: SystemState, changes: list[tuple[int, int]]) -> SystemState:
    return _update_traversals(system, [(number, min(change, 0)) for number, change in changes])


def _count_own_traversal_only(system: SystemState, changes: list[tuple[int, int]]) -> SystemState:
    first = changes[0][0]
    return _update_traversals(system, [one for one in changes if one[0] == first or one[1] > 0])


def _wake_no_traversal(system: SystemState, changes: list[tuple[int, int]]) -> SystemState:
    after = _update_traversals(system, changes)
    for number in {number for number, _ in changes}:
        wake = system.traversal(number).wake
        after = after.with_traversal(number, after.traversal(number)._replace(wake=wake))
    return after


def _apply_outdated_removal(
    system: SystemState, worker: Worker, transition: Transition
) -> SystemState:
    after = _apply_transition(system, worker, transition)
    removed = (
        transition.write.row if transition.write and transition.write.kind == "remove" else None
    )
    if removed is None or store.is_current(system.node(worker.traversal, worker.node), worker):
        return after
    return after.with_rows(store.replace_requirement(list(after.rows), removed))


def _keep_resource(system: SystemState, transition: Transition, number: int, at: int) -> int:
    return system.traversal(number).graph.nodes[at].resource


def _keep_key(node: Node, transition: Transition) -> int | None:
    return store.key_or_new(node, node.claim) if transition.phase is Phase.EXECUTE else node.key


def _read_no_requirements(row: Row, running: planning.RunningOperation | None) -> ExistingResource:
    return replace(_existing(row, running), using=frozenset())


def _read_no_operation(row: Row, running: planning.RunningOperation | None) -> ExistingResource:
    return _existing(row, None)


def _write_read_digest(view: NodeView, operation: Operation) -> Write:
    write = _in_place_write(view, operation)
    assert view.row is not None
    return write._replace(row=write.row._replace(digest=view.row.digest))


def _leave_out_first(
    operation: Operation, rows: Sequence[ExistingResource]
) -> list[ExistingResource]:
    return _rows_of(operation, rows)[1:]


def _read_no_suspend(row: Row, running: planning.RunningOperation | None) -> ExistingResource:
    return replace(_existing(row, running), suspending=False)


def _gate_first_node(nodes: list[PlannedNode], gate: PlannedNode) -> list[PlannedNode]:
    place = len(nodes)
    return [replace(nodes[0], after={*nodes[0].after, place}), *nodes[1:], gate]


def _gate_without_finish(
    plan: Plan,
    stack_id: StackId,
    action: Action,
    rules: Sequence[Rule],
    *,
    lifecycle_plugins: bool,
) -> Plan:
    before = [rule for rule in rules if rule.point == pre_stack(action)]
    return gates.add_gates(plan, stack_id, action, before, lifecycle_plugins=lifecycle_plugins)


def _planned_rules(system: SystemState, node_plan: NodePlan, write: Write) -> tuple[Rule, ...]:
    return node_plan.rules


def _ignore_restrictions(node_plan: NodePlan, view: NodeView) -> Transition | None:
    return _begin_claim(node_plan._replace(restricted=()), view)


def _ignore_retention(node_plan: NodePlan, view: NodeView) -> Operation | None:
    row = view.row and view.row._replace(policy="Delete")
    return _change(node_plan, view._replace(row=row))


def _accept_every_step(node: tables.Node, decision: Decision, by: str, reason: str) -> Step:
    return _notify_type(node, Decision.CONTINUE, by, reason)


def _confirm_without_rules(node: tables.Node, node_input: MustConfirm) -> Step | InvalidInput:
    return decisions.confirm(replace(node, rules=()), node_input)


def _keep_confirmed_steps(node: tables.Node, node_input: MustReplace) -> Step | InvalidInput:
    step = decisions.begin_replacement(node, node_input)
    if isinstance(step, InvalidInput):
        return step
    return Step(
        replace(step.node, breakpoints_hit=(*node.breakpoints_hit, *step.node.breakpoints_hit)),
        step.effects,
    )


def _ignore_stepping(node: tables.Node, operation: Operation, phase: Phase) -> list[Rule]:
    return pending_breakpoints(replace(node, stepping=False), operation, phase)


def _resume_nothing(word: str, rule: Rule) -> StepModeChange:
    return replace(step_mode_change(word, rule), resumes=lambda other: False)


def _resume_nothing_outside(word: str, rule: Rule) -> StepModeChange:
    change = step_mode_change(word, rule)
    return replace(change, resumes=lambda other: False) if word == "step-out" else change


def _change_without(level: str, decision: str) -> Callable[[str, Rule], StepModeChange]:
    """`step_mode_change`, which leaves out a level for a decision."""

    def changed(word: str, rule: Rule) -> StepModeChange:
        change = step_mode_change(word, rule)
        if word != decision:
            return change
        return replace(change, parents={}) if level == "parents" else replace(change, nested={})

    return changed


def _parents_keep_run(word: str, rule: Rule) -> StepModeChange:
    """`step_mode_change`, which leaves parents in step mode `run`."""
    change = step_mode_change(word, rule)
    kept = dict(change.parents)
    kept.pop(StepMode.RUN, None)
    return replace(change, parents=kept)


def _end_stepping_at_deadline(
    tree: TreeState, number: int, hook: Hook, expired: Expired
) -> TreeState:
    change, levels = step_mode_change(Decision.CONTINUE, step_rule(hook.point)), {number: 0}
    return expire_hook(stack_tree.set_step_modes(tree, change, levels), number, hook, expired)


def _add_no_breakpoint(node: Node, rules: tuple[Rule, ...] = (), *, stepping: bool = False) -> Node:
    return node


def _step_with_parent(tree: TreeState, number: int, worker: Worker) -> StepMode | None:
    return tree.stacks[number].traversal(worker.traversal).step_mode


def _rules_unless_into(tree: TreeState, number: int, worker: Worker) -> StepMode | None:
    into = (number, worker.traversal, worker.node) in tree.step_into
    return StepMode.STEP if into else None


def _change_of_all_traversals(tree: TreeState, number: int) -> dict[int, int]:
    levels = {number: 0}
    at = number
    while (parent := tree.positions[at].parent) >= 0:
        levels[parent] = levels[at] - 1
        at = parent
    for inside, position in enumerate(tree.positions):
        if levels.get(position.parent, -1) >= 0 and tree.stacks[inside].current:
            levels[inside] = levels[position.parent] + 1
    return levels


def _keep_nested(tree: TreeState, number: int, worker: Worker, nested: int) -> TreeState:
    return tree


def _change_value(view: NodeView, operation: Operation) -> Write:
    write = _in_place_write(view, operation)
    return write._replace(row=write.row._replace(value=write.row.digest + "?"))


def _wake_after_success(system: NestedSystemState, ended: Nested) -> NestedSystemState:
    complete = ended.result is TraversalState.COMPLETE
    return _wake_parent(system, ended) if complete else system


def _with_row(state: State, phase: Phase, kind: type[Input], decision: Any) -> Table:
    return dict(machine.TABLE) | {(state, phase, kind): machine.Row(decision, ())}


def _roll_back_to_current(system: SystemState) -> SystemState:
    return traversals.start_change(system, Action.ROLLBACK, system.template)


def _forget_left_resource(
    node_plan: NodePlan, view: NodeView, node: tables.Node, tainted: bool, *, leaves_resource: bool
) -> Write:
    write = _failed(node_plan, view, node, tainted, leaves_resource=leaves_resource)
    return write if write.kind == "update" else Write("update", write.row)


def _read_stored_rows(system: SystemState) -> planning.CurrentRows:
    return tuple(one for one in _read_existing(system) if system.row(one[0].id) is not None)


def _plan_no_replacement(running: planning.RunningOperation) -> None:
    return None


def _archive_all_nodes(system: SystemState) -> SystemState:
    for number, traversal in enumerate(system.traversals[:-1], 1):
        removed = traversal._replace(nodes=(None,) * len(traversal.nodes))
        system = system.with_traversal(number, removed)
    return system


_cancel_operations, _end_early = traversals.cancel_operations, traversals.end_early


def _cancel_last(system: SystemState) -> SystemState:
    earlier = system.traversals[:-1]
    return _cancel_operations(system)._replace(
        traversals=(*earlier, _cancel_operations(system).traversals[-1])
    )


def _cancel_when_superseded(system: SystemState, number: int, state: str) -> SystemState:
    return _cancel_operations(_end_early(system, number, state))


def _retry(node: tables.Node, node_input: MustRetry) -> Step | InvalidInput:
    after = decisions.retry(replace(node, cancelled=False), node_input)
    return replace(after, node=replace(after.node, cancelled=node.cancelled))


def _replace_always(node: tables.Node, node_input: MustReplace) -> Step | InvalidInput:
    return decisions.begin_replacement(replace(node, cancelled=False), node_input)


def _continue(node: tables.Node, *_: object) -> Step:
    return Step(replace(node, state=State.READY))


def _lose_timer(node: tables.Node, node_input: Any) -> Step | InvalidInput:
    step = machine.decide(node, node_input)
    if isinstance(step, InvalidInput):
        return step
    others = tuple(effect for effect in step.effects if not isinstance(effect, WakeAt))
    return Step(step.node, others)


def _resume_all(word: str, rule: Rule) -> StepModeChange:
    change = step_mode_change(word, rule)
    return replace(change, resumes=lambda rule: word == Decision.RUN)


def _without_superseded(*states: State) -> Table:
    return {
        at: row
        for at, row in machine.TABLE.items()
        if at[2] is not Superseded or at[0] not in states
    }


_DROP = machine.Row(decisions.drop, ())
_DROP_OPERATIONS = dict(machine.TABLE) | {
    (state, Phase.EXECUTE, Superseded): _DROP for state in (State.RUNNING, State.PARKED)
}
_NO_DEADLINE = dict(machine.TABLE) | {
    (State.PARKED, Phase.PRE, Expired): machine.Row(_continue, ()),
}
_NEVER_GIVEN_BACK = {
    at: row
    for at, row in machine.TABLE.items()
    if at != (State.RUNNING, Phase.PRE, BreakpointAdded)
}
_real_ask, _real_next_step = group_steps._ask_confirmation, group_steps._next_step
_real_batch = member_changes._batch


def _batch_of_all(target: int, current: int, up_to_date: int, policy: Policy) -> Batch | None:
    return None if up_to_date >= current == target else Batch(target, target)


def _ask_once(call: Call, step: GroupStep, at: Progress) -> Outcome | None:
    return _real_ask(call, step, at) if at.number == 1 else None


def _ignore_rejection(call: Call, step: GroupStep, at: Progress) -> Outcome | None:
    return _real_ask(replace(call, confirmation=None), step, at)


def _bodies_of_existing(current: CurrentMembers, names: Sequence[str]) -> dict[str, Any]:
    return {name: current.bodies[name] for name in names if name in current.bodies}


def _ignore_operations(current: CurrentMembers, *others: Any) -> MemberChange:
    return _real_batch(replace(current, under_way=frozenset()), *others)


def _end_after_first_step(
    call: Call,
    plan: GroupPlan,
    current: CurrentMembers,
    at: Progress,
    done: Callable[[Child], Done],
) -> GroupStep | Outcome:
    if at.last and call.child is not None:
        return done(call.child)
    return _real_next_step(call, plan, current, at, done)


_BATCH = "each_batch_waits_for_its_answer"
_OUTDATED_CLAIM, _EFFECT_ONCE = (
    "an_outdated_claim_changes_nothing",
    "an_operation_takes_effect_once",
)
_WAITS, _ACTIVE = "waits_equal_the_unfinished_predecessors", "active_equals_the_active_nodes"
_ENDED, _ANSWER = (
    "an_ended_traversal_only_finishes_operations",
    "operations_wait_for_their_hooks",
)
_HELD, _WOKEN = "a_claim_has_one_holder", "every_live_node_is_woken"
_HOOKS, _BEGINS = "every_waiting_hook_blocks_a_node", "an_ended_traversal_begins_nothing"
_STEPS, _RUN = "a_step_is_performed_only_when_accepted", "run_leaves_no_hook_that_it_skips"
_STEPPING = "stepping_stops_before_every_operation"
_IN_RUN = "a_run_writes_only_what_may_begin"
_LOST = "every_parked_node_is_woken"
_MODES, _OVER = "step_modes_follow_the_answers", "only_stepping_stops"
_AT_ONCE = "a_cancelled_operation_is_called_at_once"
_LIVENESS = "an_end_is_always_reachable"

OUTDATED_REMOVAL = Fault(
    "an outdated step updates dependents of a replaced resource",
    store, "apply_transition", _apply_outdated_removal,
    scenarios.REPLACED_WITH_DEPENDENTS, _OUTDATED_CLAIM,
)  # fmt: skip

RUN_PAST_BREAKPOINT = Fault(
    "a run writes a node before which a breakpoint was set meanwhile",
    store, "fits", _ignore_breakpoints, scenarios.RUN_AT_BREAKPOINT, _IN_RUN,
)  # fmt: skip
KEPT_AT_BREAKPOINT = Fault(
    "a worker keeps its claim of a node before which a breakpoint was set",
    store, "give_back", lambda node, state: node._replace(state=state, wake=True),
    scenarios.BREAKPOINT_AT_REPLACED, _ANSWER,
)  # fmt: skip
RUN_WITHOUT_FIRST = Fault(
    "a run is written although its first node is claimed by another worker",
    store, "is_complete", _ignore_first, scenarios.RUN, _OUTDATED_CLAIM,
)  # fmt: skip

ADDED_BY_SUPERSEDED = Fault(
    "a superseded replacement adds a delete",
    store, "may_add", lambda traversal: True, scenarios.REPLACED_SUPERSEDED,
    "an_ended_traversal_only_finishes_operations",
)  # fmt: skip
NOT_WAITED_FOR = Fault(
    "the delete of what a resource uses does not wait for its added delete",
    store, "wait_for_one_more", lambda system, number, at: system, scenarios.REPLACED_BOTH, _WAITS,
)  # fmt: skip
OTHER_MODE = Fault(
        "a step decided for another step mode is written: an operation begins",
        store, "is_of_other_mode", lambda system, worker: False, scenarios.STEPPED, _STEPPING,
    )  # fmt: skip

STEPS_WITH_PARENT = Fault(
        "a step over a nested stack stops inside",
        stack_tree, "mode_of_nested", _step_with_parent, tree_scenarios.STEPPED, _OVER, True,
    )  # fmt: skip
INTO_AFTER_RUN = Fault(
        "a step into a nested stack that has not begun outlasts a run",
        stack_tree, "clear_step_into", lambda tree, change, levels: tree,
        tree_scenarios.STEPPED_BESIDE, _OVER, True,
    )  # fmt: skip
OTHER_CHANGE = Fault(
        "an answer steps the nested stacks of an earlier change",
        stack_tree, "change_of", _change_of_all_traversals,
        tree_scenarios.STEPPED_SUPERSEDED, "an_answer_leaves_earlier_changes_alone",
    )  # fmt: skip

FAULTS: tuple[Fault, ...] = (
    Fault(
        "a step does not increment the claim",
        store, "next_claim", lambda claim: claim, scenarios.HOOKED, _EFFECT_ONCE,
    ),
    Fault(
        "a step is written without comparing its claim",
        store, "is_current", _ignore_claim, scenarios.CHAIN, _OUTDATED_CLAIM,
    ),
    Fault(
        "a step is written without comparing its claim: two outcomes",
        store, "is_current", _ignore_claim, scenarios.HOOKED, _EFFECT_ONCE,
    ),
    Fault(
        "an expired lease is claimed without incrementing the claim",
        store, "claim_when_claimed", lambda node: node.claim + (node.state is not State.RUNNING),
        scenarios.CHAIN, _HELD,
    ),
    Fault(
        "each claim gives the operation a new key",
        store, "key_or_new", lambda node, number: number, scenarios.CHAIN, _EFFECT_ONCE,
    ),
    Fault(
        "a newer traversal does not drop ready nodes",
        machine, "TABLE", _without_superseded(State.READY), scenarios.UPDATED, _ENDED,
    ),
    Fault(
        "a newer traversal does not drop nodes at hooks",
        machine, "TABLE", _without_superseded(State.PARKED), scenarios.HOOK_SUPERSEDED, _ENDED,
    ),
    Fault(
        "a newer traversal drops nodes that run an operation",
        machine, "TABLE", _DROP_OPERATIONS, scenarios.DELETED,
        "a_complete_stack_equals_its_physical_resources",
    ),
    Fault(
        "a hook of a superseded traversal keeps waiting",
        traversals, "supersede_hooks", lambda system, number: system,
        scenarios.HOOK_SUPERSEDED, _HOOKS,
    ),
    Fault(
        "a superseded traversal opens hooks after its operations",
        store, "refuses", lambda *_: False, scenarios.HOOK_SUPERSEDED, _BEGINS,
    ),
    Fault(
        "the node of the newer traversal is not released",
        store, "released_by", _release_no_successor, scenarios.UPDATED, _WAITS,
    ),
    Fault(
        "the node of the newer traversal is not released, and its traversal ends without it",
        store, "released_by", _release_no_successor, scenarios.UPDATED_IN_CREATE,
        "a_complete_stack_equals_its_template", True,
    ),
    Fault(
        "a newer traversal deletes nodes that run an operation: no terminal state",
        traversals, "archive_nodes", _archive_all_nodes, scenarios.UPDATED_IN_CREATE, _LIVENESS,
        True,
    ),
    Fault(
        "the newer traversal has no successor of the older operation",
        traversals, "set_successor", lambda system, older, at, successor: system, scenarios.UPDATED,
        _WAITS,
    ),
    Fault("waits are decremented twice", store, "released_by", _release_twice,
    scenarios.DIAMOND_OF_4,
    _WAITS),
    Fault(
        "a failure releases dependents",
        store, "released_by", _release_after_failure, scenarios.CHAIN, "operations_keep_the_order",
        True,
    ),
    Fault(
        "nodes that become ready are not counted as active",
        store, "update_traversals", _count_ended_only, scenarios.CHAIN, _ACTIVE,
    ),
    Fault(
        "a node that waited for an older operation stays counted as active",
        store, "update_traversals", _count_own_traversal_only, scenarios.UPDATED, _ACTIVE,
    ),
    Fault(
        "a step does not wake its traversal",
        store, "update_traversals", _wake_no_traversal, scenarios.HOOKED, _WOKEN,
    ),
    Fault(
        "a newer traversal deletes nodes that run an operation",
        traversals, "archive_nodes", _archive_all_nodes, scenarios.UPDATED, _WAITS,
    ),
    Fault(
        "breakpoints are ignored", decisions, "pending_breakpoints", lambda *_: [],
        scenarios.HOOKED, _ANSWER,
    ),
    Fault(
        "a rejected node continues", decisions, "_fail", _continue, scenarios.HOOKED, _ANSWER,
    ),
    Fault(
        "a deadline with stop continues the node",
        machine, "TABLE", _NO_DEADLINE, scenarios.HOOKED, _ANSWER,
    ),
    OUTDATED_REMOVAL,
    Fault(
        "a node that waited does not continue with the replacement",
        store, "resource_after", _keep_resource, scenarios.UPDATED_TWICE,
        "a_name_has_one_current_row",
        True,
    ),
    Fault(
        "the replacement that an operation may create is not planned for",
        planning, "_replacement", _plan_no_replacement, scenarios.DELETED_DURING_REPLACEMENT,
        "a_complete_stack_equals_its_physical_resources",
    ),
    Fault(
        "the new row of a deleted row's operation is not read",
        traversals, "read_existing", _read_stored_rows, scenarios.RECREATED_DURING_DELETE,
        "a_complete_stack_equals_its_physical_resources",
    ),
    Fault(
        "a replacement uses the operation key of the update",
        store, "operation_key", _keep_key, scenarios.UPDATED_TWICE, _EFFECT_ONCE,
    ),
    Fault(
        "the requirements of running operations are not read",
        planning, "_existing", _read_no_requirements, scenarios.DEPENDENT_OF_REPLACEMENT,
        "operations_keep_the_order",
    ),
    Fault(
        "rules declared later are not stored with a resource",
        store, "_stored_rules", _planned_rules, scenarios.HOOKED_LATER,
        "removed_resources_wait_for_their_hooks",
    ),
    Fault(
        "a retained resource is deleted",
        worker_decisions, "change", _ignore_retention, scenarios.RETAINED,
        "retained_resources_are_not_deleted",
    ),
    Fault(
        "a restricted operation is called",
        protocol, "begin_claim", _ignore_restrictions, scenarios.FORBIDDEN,
        "restricted_operations_are_not_called",
    ),
    Fault(
        "a rollback leads to the failed template",
        traversals, "roll_back", _roll_back_to_current, scenarios.ROLLED_BACK,
        "a_rollback_leads_to_the_last_complete_version",
    ),
    Fault(
        "the time limit of a waiting traversal is not checked",
        store, "is_working", lambda traversal: False, scenarios.TIMED_OUT,
        "every_ending_traversal_is_ended",
    ),
    Fault(
        "the resource that a failure left is not stored",
        worker_decisions, "_failed", _forget_left_resource, scenarios.RECREATED_LEAVING_RESOURCE,
        "a_complete_stack_equals_its_physical_resources",
    ),
    Fault(
        "a check writes the digest that it has read",
        worker_decisions, "_in_place_write", _write_read_digest, scenarios.CHECKED,
        "an_in_place_action_changes_no_definition",
    ),
    Fault(
        "a check does not read running operations",
        planning, "_existing", _read_no_operation, scenarios.CHECK_AFTER_CANCEL,
        "an_in_place_action_waits_for_running_operations", True,
    ),
    Fault(
        "breakpoints of a check are ignored",
        decisions, "pending_breakpoints", lambda *_: [], scenarios.CHECK_WITH_HOOKS, _ANSWER,
    ),
    Fault(
        "a suspend leaves out a resource",
        passes, "_applicable_rows", _leave_out_first, scenarios.SUSPENDED,
        "an_in_place_action_reaches_every_resource",
    ),
    Fault(
        "a suspend ignores the order",
        passes, "_order", lambda *_: {}, scenarios.SUSPENDED, "in_place_actions_keep_the_order",
    ),
    Fault(
        "a resume does not see a suspend under way",
        planning, "_existing", _read_no_suspend, scenarios.SUSPEND_CANCELLED,
        "an_in_place_action_reaches_every_resource",
    ),
    Fault(
        "breakpoints of a suspend are ignored",
        decisions, "pending_breakpoints", lambda *_: [], scenarios.SUSPEND_WITH_HOOKS, _ANSWER,
    ),
    Fault(
        "the hook before the stack blocks no node",
        gates, "_wait_for_gate", lambda nodes, gate: [*nodes, gate], scenarios.STACK_HOOKS,
        "a_stack_hook_blocks_every_node",
    ),
    Fault(
        "the hook before the stack blocks one node only",
        gates, "_wait_for_gate", _gate_first_node, scenarios.STACK_HOOKS,
        "a_stack_hook_blocks_every_node",
    ),
    Fault(
        "a stack completes without its last hook",
        planning, "add_gates", _gate_without_finish, scenarios.STACK_HOOKS,
        "a_stack_completes_after_its_hook",
    ),
    Fault(
        "hooks of a stack are ignored",
        decisions, "pending_breakpoints", lambda *_: [], scenarios.STACK_HOOKS,
        "a_stack_hook_blocks_every_node",
        True,
    ),
    Fault(
        "one approval is enough",
        answers, "Approval", lambda missing: answers.FinalAnswer(Decision.CONTINUE),
        scenarios.APPROVED, "a_hook_continues_with_all_its_approvals",
    ),
    Fault(
        "a hook waits although it has all approvals",
        answers, "FinalAnswer", lambda decision: answers.Approval(0),
        scenarios.APPROVED, "a_hook_continues_with_all_its_approvals",
    ),
    Fault(
        "a retried operation loses the answer to its step",
        worker_decisions, "answer_to_keep", lambda view, node_input: None, scenarios.CONFIRMED,
        "an_operation_has_the_answer_to_its_question",
    ),
    Fault(
        "a retried operation performs a rejected step",
        worker_decisions, "answer_to_keep", lambda view, node_input: None,
        scenarios.BATCHES, _STEPS,
    ),
    Fault(
        "a rejected step is reported as accepted",
        decisions, "_notify_type", _accept_every_step, scenarios.CONFIRMED, _STEPS,
    ),
    Fault(
        "a step opens no hook",
        machine, "TABLE",
        _with_row(State.RUNNING, Phase.EXECUTE, MustConfirm, _confirm_without_rules),
        scenarios.CONFIRMED, _STEPS,
    ),
    Fault(
        "a node at a step is dropped when its traversal is superseded",
        machine, "TABLE", _with_row(State.PARKED, Phase.CONFIRM, Superseded, decisions.drop),
        scenarios.CONFIRMED_SUPERSEDED, "an_operation_ends_with_an_outcome",
    ),
    Fault(
        "a repeated point opens one hook",
        decisions, "REPEATED", frozenset(), scenarios.BATCHES, "the_machine_accepts_every_outcome",
    ),
    Fault(
        "a replacement keeps the confirmed steps of its update",
        machine, "TABLE",
        _with_row(State.RUNNING, Phase.EXECUTE, MustReplace, _keep_confirmed_steps),
        scenarios.CONFIRMED_REPLACED, "the_machine_accepts_every_outcome",
    ),
    OTHER_MODE,
    Fault(
        "a step decided for another step mode is written: a hook opens",
        store, "is_of_other_mode", lambda system, worker: False, scenarios.STEPPED_CREATE, _RUN,
    ),
    Fault(
        "a hook of stepping opens after its end",
        store, "is_of_other_mode", lambda system, worker: False, scenarios.STEPPED_CREATE,
        "only_stepping_opens_its_hooks",
    ),
    Fault(
        "operations without hooks begin in spite of stepping",
        store, "add_breakpoint_to", _add_no_breakpoint, scenarios.STEPPED_CREATE, _STEPPING,
    ),
    Fault(
        "stepping sets no breakpoints",
        decisions, "pending_breakpoints", _ignore_stepping, scenarios.STEPPED, _STEPPING,
    ),
    Fault(
        "an answer is applied in the step mode before it",
        protocol, "mode_at_hook", lambda system, hook, before: before, scenarios.STEPPED_REPLACE,
        _RUN,
    ),
    Fault(
        "run resumes no other hook",
        protocol, "step_mode_change", _resume_nothing, scenarios.STEPPED_CREATE, _RUN,
    ),
    Fault(
        "run skips no rule",
        worker_decisions, "rules_in_force", lambda rules, step_mode: rules,
        scenarios.STEPPED_REPLACE, _RUN,
    ),
    Fault(
        "a check of a suspended resource hides it from a resume",
        worker_decisions, "_stays_suspended", lambda row, operation: False,
        scenarios.SUSPENDED_AND_CHECKED,
        "an_in_place_action_reaches_every_resource",
    ),
    Fault(
        "a snapshot of a suspended resource hides it from an update",
        worker_decisions, "_stays_suspended", lambda row, operation: False,
        scenarios.SUSPENDED_AND_SNAPSHOT,
        "updates_find_no_suspended_resource",
    ),
    Fault(
        "a snapshot leaves out a resource",
        passes, "_applicable_rows", _leave_out_first, scenarios.SNAPSHOT_TAKEN,
        "an_in_place_action_reaches_every_resource",
    ),
    Fault(
        "a snapshot changes the applied value",
        worker_decisions, "_in_place_write", _change_value, scenarios.SNAPSHOT_TAKEN,
        "an_in_place_action_changes_no_definition",
    ),
    Fault(
        "an update resumes nothing",
        ExistingResource, "suspended", property(lambda row: False),
        scenarios.SUSPENDED_AND_SNAPSHOT,
        "updates_find_no_suspended_resource",
    ),
    Fault(
        "an outdated worker ends the nested traversal of a newer operation",
        nested, "may_end_nested", lambda system, worker: True, nested.SUPERSEDED, _LOST,
    ),
    Fault(
        "a nested stack that ends before its parent waits wakes no node",
        nested, "wakes_at_once", lambda node: False, nested.RETRIED, _LOST,
    ),
    Fault(
        "a nested stack that fails wakes no parent",
        nested, "wake_parent", _wake_after_success, nested.SUPERSEDED, _LOST,
    ),
    Fault(
        "a nested stack that ends wakes a node without its timer",
        nested, "wake_node", lambda system, number: system, nested.DELETED, _LOST,
    ),
    Fault(
        "a worker without the claim starts a nested traversal",
        nested, "has_claim", lambda system, worker: True, nested.SUPERSEDED, "a_step_starts_once",
    ),
    Fault(
        "a superseded operation starts a nested traversal",
        nested, "parent_state", lambda system, number: TraversalState.RUNNING, nested.SUPERSEDED,
        "an_ended_traversal_starts_no_nested_one",
    ),
    Fault(
        "an operation does not know the nested traversal that it has started",
        NestedStackRecord, "is_run_by", lambda record, key: False, nested.CANCELLED,
        "no_nested_traversal_outlives_its_operation",
    ),
    Fault(
        "a replacement adds no delete",
        store, "may_add", lambda traversal: False, scenarios.REPLACED,
        "a_complete_stack_equals_its_physical_resources",
    ),
    ADDED_BY_SUPERSEDED,
    Fault(
        "an added delete waits only for its replacement",
        store, "unfinished_before", lambda traversal, at: 1, scenarios.REPLACED, _WAITS,
    ),
    NOT_WAITED_FOR,
    Fault(
        "the hook after the stack does not wait for replacements",
        gates, "_wait_for_last_nodes", _gate_without_later_nodes, scenarios.REPLACED_AND_GATED,
        "active_equals_the_active_nodes",
    ),
    RUN_PAST_BREAKPOINT,
    RUN_WITHOUT_FIRST,
    Fault(
        "a run writes a node that would stop in stepping",
        store, "fits", _ignore_breakpoints, scenarios.RUN_STEPPED, _STEPPING,
    ),
    Fault(
        "a run writes a node that was dropped",
        store, "fits", _ignore_state, scenarios.RUN_TO_A_JOIN, "an_ended_node_never_changes",
    ),
    KEPT_AT_BREAKPOINT,
    Fault(
        "a claimed node is not given back at a breakpoint",
        machine, "TABLE", _NEVER_GIVEN_BACK, scenarios.BREAKPOINT_AT_REPLACED, _ANSWER,
    ),
    Fault(
        "a node that is given back is not due",
        store, "give_back",
        lambda node, state: node._replace(state=state, claim=node.claim + 1, wake=False),
        scenarios.BREAKPOINT_AT_CLAIMED, _WOKEN,
    ),
    Fault(
        "a run has a node that waits for another one, too",
        store, "is_later_run_node", _ignore_other_dependencies, scenarios.RUN_TO_A_JOIN, _IN_RUN,
    ),
    Fault(
        "a removed resource is deleted beside the other changes",
        passes, "PASSES", tuple(one for one in passes.PASSES if one is not cleanup.delete_last),
        scenarios.REMOVED_BESIDE, "removed_resources_are_deleted_last",
    ),
    Fault(
        "a delete does not wake the operations that it cancels",
        traversals, "wake_cancelled", lambda node: node, scenarios.WAITING_DELETED, _AT_ONCE,
    ),
    Fault(
        "an operation that is being called when it is cancelled waits for its timer",
        store, "is_called_again", lambda node, transition: False, scenarios.WAITING_DELETED,
        _AT_ONCE,
    ),
    Fault(
        "a delete cancels operations of the last traversal only",
        traversals, "cancel_operations", _cancel_last, scenarios.WAITING_UPDATED_AND_DELETED,
        "a_delete_cancels_all_operations",
    ),
    Fault(
        "an update cancels the operations that it supersedes",
        traversals, "end_early", _cancel_when_superseded, scenarios.WAITING_UPDATED_AND_DELETED,
        "only_a_cancelled_change_cancels_operations",
    ),
    Fault(
        "a cancelled operation is retried",
        machine, "TABLE", _with_row(State.RUNNING, Phase.EXECUTE, MustRetry, _retry),
        scenarios.WAITING_DELETED, "a_cancelled_operation_begins_nothing",
    ),
    Fault(
        "a cancelled update turns into a replacement",
        machine, "TABLE", _with_row(State.RUNNING, Phase.EXECUTE, MustReplace, _replace_always),
        scenarios.WAITING_REPLACED, "a_cancelled_operation_begins_nothing",
    ),
    Fault(
        "a step into a nested stack stops in the parent only",
        stack_tree, "mode_of_nested", lambda tree, number, worker: None,
        tree_scenarios.STEPPED, _STEPPING, True,
    ),
    STEPS_WITH_PARENT,
    Fault(
        "a nested stack that begins after run stops at its rules",
        stack_tree, "mode_of_nested", _rules_unless_into, tree_scenarios.RUN, _MODES,
    ),
    Fault(
        "a step in a nested stack does not reach its parents",
        stack_tree, "step_mode_change", _change_without("parents", "step"),
        tree_scenarios.STEPPED_FROM_INSIDE, _STEPPING, True,
    ),
    Fault(
        "a deadline ends stepping",
        stack_tree, "expire_hook", _end_stepping_at_deadline,
        tree_scenarios.STEPPED_FROM_INSIDE, _MODES,
    ),
    Fault(
        "a step in a nested stack does not reach parents in which run applies",
        stack_tree, "step_mode_change", _parents_keep_run,
        tree_scenarios.RUN_THEN_STEPPED, _MODES,
    ),
    Fault(
        "a step out of a nested stack does not stop in its parent",
        stack_tree, "step_mode_change", _change_without("parents", "step-out"),
        tree_scenarios.STEPPED_FROM_INSIDE, _STEPPING, True,
    ),
    Fault(
        "a step out of a stack leaves its nested stacks stepping",
        stack_tree, "step_mode_change", _change_without("nested", "step-out"),
        tree_scenarios.STEPPED_BESIDE_INSIDE, _MODES,
    ),
    Fault(
        "a step out of a stack resumes no other hook of stepping",
        stack_tree, "step_mode_change", _resume_nothing_outside,
        tree_scenarios.STEPPED_BESIDE_INSIDE, "stepping_ends_with_its_hooks",
    ),
    Fault(
        "continue in a nested stack does not end stepping in its parent",
        stack_tree, "step_mode_change", _change_without("parents", "continue"),
        tree_scenarios.STEPPED, _OVER, True,
    ),
    Fault(
        "run leaves nested stacks as they are",
        stack_tree, "step_mode_change", _change_without("nested", "run"),
        tree_scenarios.RUN, "run_leaves_no_hook_that_it_skips", True,
    ),
    Fault(
        "a step begins stepping in the parent, whose ready operations begin",
        store, "add_breakpoint_to", _add_no_breakpoint,
        tree_scenarios.STEPPED_FROM_INSIDE, _STEPPING,
    ),
    Fault(
        "a worker begins an operation of the parent, decided before the step in the nested stack",
        store, "is_of_other_mode", lambda system, worker: False,
        tree_scenarios.STEPPED_WITH_RULES, _STEPPING,
    ),
    INTO_AFTER_RUN,
    OTHER_CHANGE,
    Fault(
        "a member of a group begins before the answer to its hook",
        decisions, "pending_breakpoints", lambda *_: [],
        tree_scenarios.BATCHES_OF_HOOKED_MEMBERS, _ANSWER,
    ),
    Fault(
        "a batch changes all members",
        step_plans, "next_batch", _batch_of_all, tree_scenarios.BATCHES_FAILING,
        "a_batch_changes_no_more_members",
    ),
    Fault(
        "a batch does not wait for an answer",
        group_steps, "_ask_confirmation", lambda call, step, at: None,
        tree_scenarios.BATCHES, _BATCH,
    ),
    Fault(
        "an answer holds for all batches",
        group_steps, "_ask_confirmation", _ask_once, tree_scenarios.BATCHES, _BATCH,
    ),
    Fault(
        "a batch begins in spite of a rejection",
        group_steps, "_ask_confirmation", _ignore_rejection, tree_scenarios.BATCHES, _BATCH,
    ),
    Fault(
        "a group is complete after its first batch",
        group_steps, "_next_step", _end_after_first_step, tree_scenarios.BATCHES_FAILING,
        "a_complete_group_has_its_members",
    ),
    Fault(
        "a change that was superseded between two batches begins the next",
        stack_tree, "may_start", lambda state: True, tree_scenarios.BATCHES_SUPERSEDED,
        "only_a_running_traversal_starts_nested_ones",
    ),
    Fault(
        "a member that a superseded batch has not changed seems to have its definition",
        member_template, "_previous_bodies", lambda child: {}, tree_scenarios.BATCHES_SUPERSEDED,
        "a_batch_changes_no_more_members",
    ),
    Fault(
        "a batch begins beside an operation of a superseded batch",
        member_changes, "_batch", _ignore_operations, tree_scenarios.SMALLER_BATCHES,
        "a_batch_changes_no_more_members",
    ),
    Fault(
        "the definition with which a superseded change creates a member is lost",
        CurrentMembers, "previous_bodies", _bodies_of_existing,
        tree_scenarios.SMALLER_BATCHES, "a_batch_changes_no_more_members",
    ),
    Fault(
        "a nested stack that begins after running to its resource has no breakpoint",
        stack_tree, "with_run_to", lambda tree, start, system: system,
        tree_scenarios.RUN_TO, "a_stop_of_run_to_is_answered",
    ),
    Fault(
        "running to a resource leaves nested stacks stepping",
        stack_tree, "RUN_TO", replace(RUN_TO, nested={}), tree_scenarios.RUN_TO, _MODES,
    ),
    Fault(
        "running to a resource leaves hooks of stepping waiting",
        stack_tree, "RUN_TO", replace(RUN_TO, resumes=lambda rule: False),
        tree_scenarios.RUN_TO, "running_to_a_resource_ends_stepping",
    ),
    Fault(
        "one approval is enough in a nested stack",
        answers, "Approval", lambda missing: answers.FinalAnswer(Decision.CONTINUE),
        tree_scenarios.APPROVED, "hooks_continue_with_all_their_approvals",
    ),
    Fault(
        "run continues hooks of nested stacks that need several approvals",
        stack_tree, "step_mode_change", _resume_all,
        tree_scenarios.APPROVED, "hooks_continue_with_all_their_approvals",
    ),
    Fault(
        "a nested stack in which stepping ended wakes no parent",
        stack_tree, "wake_parent", lambda tree, number: tree,
        tree_scenarios.STEPPED, "every_live_node_is_woken",
    ),
    Fault(
        "a change that supersedes stepping leaves the hooks of nested stacks waiting",
        stack_tree, "wake_waiting", lambda tree, number, after: after,
        tree_scenarios.STEPPED_SUPERSEDED, "an_ended_traversal_waits_for_no_nested_stack",
    ),
    Fault(
        "an operation that is superseded while its nested stack steps does not end it",
        stack_tree, "end_nested_early", _keep_nested,
        tree_scenarios.STEPPED_CANCELLED, "no_nested_traversal_outlives_its_operation",
    ),
    Fault(
        "an update does not read its data again",
        forward, "_with_data", lambda draft, names, reads: names, scenarios.DATA,
        "every_update_reads_the_data",
    ),
    Fault(
        "a suspend includes data",
        ExistingResource, "is_data", property(lambda row: False), scenarios.DATA_SUSPENDED,
        "data_is_only_read",
    ),
    Fault(
        "a delete deletes the physical resource of data",
        worker_decisions, "change", _ignore_retention, scenarios.DATA_SUSPENDED,
        "data_is_only_read", True,
    ),
    Fault("a timer is lost", worker_decisions, "decide", _lose_timer, scenarios.CHAIN, _WOKEN),
)  # fmt: skip


@contextmanager
def with_fault(fault: Fault) -> Iterator[None]:
    """Plant the fault, with empty caches."""
    with pytest.MonkeyPatch.context() as patch:
        _clear_caches()
        patch.setattr(fault.module, fault.attribute, fault.replacement)
        yield
    _clear_caches()


def _clear_caches() -> None:
    worker_decisions.decide_cached.cache_clear()
    planning.plan_change.cache_clear()
    planning.plan_in_place_action.cache_clear()


def find_counterexample(fault: Fault) -> Counterexample | None:
    """The counterexample to the invariant that must detect the fault."""
    with with_fault(fault):
        exploration = explore(
            fault.scenario, past_violations=fault.past_violations, until=fault.invariant
        )
    return exploration.counterexamples.get(fault.invariant)


def shortest_trace(fault: Fault) -> Sequence[Any]:
    counterexample = find_counterexample(fault)
    assert counterexample is not None
    return counterexample.trace
