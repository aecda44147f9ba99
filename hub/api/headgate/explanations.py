"""Explanations why a stack makes no progress: a sentence for each unfinished node, and about
resources whose state is not known. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from channels.envelope import rfc3339
from engine.continuation import continuing_request
from engine.hooks.drift_hooks import DECISIONS, adoption_refusal
from engine.hooks.durations import format_duration
from engine.plan.convergence import ConvergencePolicy
from engine.service.observation_times import NextObservation
from engine.service.observations import StackDrift
from engine.service.reads.graphs import StackGraph
from engine.service.repairs import REPAIRABLE_ACTIONS
from engine.store.observer.drift_rows import DriftedResource
from engine.store.observer.provider_endpoints import PausedObservation
from engine.store.records import HookRecord, NodeRecord
from engine.words import (
    ANYONE,
    DRIFT,
    Action,
    Decision,
    Json,
    ObservedState,
    OnDrift,
    TraversalState,
)
from hub.api.headgate import responses
from hub.api.headgate.responses import (
    HeldDrift,
    NodeProgress,
    UnknownState,
    UnrepairedDrift,
)

_UNFINISHED = ("waiting", "ready", "running", "parked")
_MAX_NAMES = 5
#: The statuses of a stack in which a policy starts repairs.
_REPAIRABLE = frozenset(f"{action}_COMPLETE" for action in REPAIRABLE_ACTIONS)


@dataclass(frozen=True, slots=True)
class WaitingHook:
    """notifications: with the states of their deliveries, as in the hooks API."""

    hook: HookRecord
    notifications: Sequence[Json]


def explain(
    graphs: Sequence[StackGraph],
    hooks: Mapping[tuple[UUID, str], WaitingHook],
    labels: Collection[str] = ("",),
) -> list[NodeProgress]:
    """Unfinished, failed and stopped nodes of the current traversal, each followed by those of its
    nested stack.

    graphs: that of the stack first. hooks: by stack ID and resource name. labels: of the workers of
    running processes.
    """
    by_stack = {one.stack_id: one for one in graphs}
    continuing = _describe_continuation(graphs[0])
    return _explain(graphs[0], by_stack, hooks, labels, continuing)


def _explain(
    graph: StackGraph,
    by_stack: Mapping[UUID, StackGraph],
    hooks: Mapping[tuple[UUID, str], WaitingHook],
    labels: Collection[str],
    continuing: str,
) -> list[NodeProgress]:
    """continuing: the sentence about what continues nodes that have ended."""
    nodes = graph.nodes
    before = unfinished_before(nodes)
    by_id = {node.id: node for node in nodes}
    progress: list[NodeProgress] = []
    for node in nodes:
        path = path_in(graph.path, node.resource_name)
        hook = hooks.get((node.stack_id, node.resource_name)) if node.state == "parked" else None
        nested = by_stack.get(node.nested_stack_id) if node.nested_stack_id else None
        if hook is not None and node.wake_at is None and node.phase != "execute":
            progress.append(_at_hook(node, path, hook))
        elif nested is not None and node.state == "parked" and node.phase == "execute":
            what = f"{_node_name(path)} ({node.operation})"
            progress.append(_without_hook(node, path, f"{what} waits for its nested stack."))
            progress += _explain(nested, by_stack, hooks, labels, continuing)
        elif node.state in _UNFINISHED:
            names = sorted({_blocker(node, by_id[one]) for one in before[node.id]})
            sentence = _describe_unfinished(node, path, names, labels)
            progress.append(_without_hook(node, path, sentence))
        elif node.state in ("failed", "stopped"):
            progress.append(_without_hook(node, path, _describe_failed(node, path, continuing)))
            if nested:
                progress += _explain(nested, by_stack, hooks, labels, continuing)
    return progress


def explain_drift(hooks: Sequence[WaitingHook]) -> list[HeldDrift]:
    """The drift about which hooks wait for an answer, without a change. hooks: these."""
    return [_held_drift(one) for one in hooks]


def _held_drift(waiting: WaitingHook) -> HeldDrift:
    hook, drift = waiting.hook, waiting.hook.notification[DRIFT]
    state, differences = ObservedState(drift["state"]), drift["differences"]
    begun = datetime.fromisoformat(drift["since"]) if drift["since"] else hook.opened_at
    since, opened = rfc3339(begun), rfc3339(hook.opened_at)
    paths = _join_names([str(one["path"]) for one in differences])
    how = "; ".join(filter(None, (paths, drift["reason"])))
    answers = [str(one) for one in _drift_answers(state, differences)]
    sentence = (
        f"{hook.path} has differed from its recorded state since {since}: it is {state}"
        f"{f' ({how})' if how else ''}. It waits at {DRIFT} since {opened} for the answer "
        f"{', '.join(answers[:-1])} or {answers[-1]} of {_answerers(hook)}; "
        f"{_subscribers(waiting.notifications)}."
    )
    return {
        "hook_id": str(hook.id),
        "resource_name": hook.resource_name,
        "path": hook.path,
        "state": state,
        "differences": [
            responses.Difference(path=one["path"], desired=one["desired"], observed=one["observed"])
            for one in differences
        ],
        "reason": drift["reason"],
        "since": since,
        "opened_at": opened,
        "allowed": list(hook.allowed),
        "answer_by": hook.may_answer,
        "notifications": list(waiting.notifications),
        "sentence": sentence,
    }


def _drift_answers(state: ObservedState, differences: Sequence[Json]) -> list[Decision]:
    """The answers that are possible, without `continue`, which is the same as `repair`."""
    refused = {Decision.ADOPT} if adoption_refusal(state, differences) else set()
    return [one for one in DECISIONS if one is not Decision.CONTINUE and one not in refused]


def _answerers(hook: HookRecord) -> str:
    assigned = [hook.assigned] if hook.assigned else []
    return " or ".join([*assigned, *(hook.may_answer or [ANYONE])])


def explain_unrepaired(
    resources: Sequence[DriftedResource],
    policy: ConvergencePolicy | None,
    status: str,
    held: Collection[tuple[UUID, str]],
    now: datetime,
) -> list[UnrepairedDrift]:
    """The resources that differ, by the reason why nothing repairs them. status: of the
    stack. held: stack IDs and names of those about which hooks wait."""
    by_reason: dict[str, list[DriftedResource]] = {}
    for one in resources:
        if one.state != ObservedState.UNKNOWN and (one.stack_id, one.name) not in held:
            by_reason.setdefault(_explain_lasting(one, policy, status, now), []).append(one)
    return [_unrepaired_drift(reason, found) for reason, found in by_reason.items()]


def _explain_lasting(
    one: DriftedResource, policy: ConvergencePolicy | None, status: str, now: datetime
) -> str:
    """Why drift is not repaired, or when it is."""
    if one.unrepaired:
        return one.unrepaired.rstrip(".")
    if policy is None:
        return "the stack has no convergence policy"
    if policy.on_drift in (OnDrift.IGNORE, OnDrift.NOTIFY):
        return f"its convergence policy has `on_drift: {policy.on_drift}`"
    if now - one.since < policy.tolerate:
        return f"its convergence policy tolerates drift for {format_duration(policy.tolerate)}"
    if policy.on_drift is OnDrift.HOLD:
        if status.endswith("_IN_PROGRESS"):
            return "no hook about drift opens during a change of the stack"
        return "its hook is answered, or opens after the next observation"
    if status not in _REPAIRABLE:
        return f"the status of the stack is {status}"
    opens_in = policy.repairs_in(now)
    if opens_in:
        return (
            f"repairs start in the window of its convergence policy, at {rfc3339(now + opens_in)}"
        )
    return "a repair has not started yet"


def _unrepaired_drift(reason: str, resources: Sequence[DriftedResource]) -> UnrepairedDrift:
    paths = sorted(path_in(one.path, one.name) for one in resources)
    since = rfc3339(min(one.since for one in resources))
    one, many = "1 resource has", f"{len(paths)} resources have"
    what = f"{one if len(paths) == 1 else many} differed from the recorded state since {since}"
    return {
        "resources": paths,
        "since": since,
        "reason": reason,
        "sentence": f"{what} ({_join_names(paths)}), without a repair: {reason}.",
    }


def explain_unknown(drift: StackDrift) -> list[UnknownState]:
    """The resources whose state could not be observed, by reason and by when they are observed
    next."""
    groups: dict[tuple[str, str], list[DriftedResource]] = {}
    times: dict[str, datetime | None] = {}
    for one in drift.resources:
        if one.state == ObservedState.UNKNOWN:
            found = drift.find_next(one)
            then = _describe_next(found, operating=one.operating)
            times[then] = found.at if found else None
            groups.setdefault((one.reason, then), []).append(one)
    return [
        _unknown(reason, resources, then, times[then])
        for (reason, then), resources in groups.items()
    ]


def _describe_next(found: NextObservation | None, *, operating: bool) -> str:
    """operating: an operation on the resource is under way."""
    if operating:
        return "The next observation is after the operation that is under way"
    if found is None:
        return "No other is scheduled"
    if found.at is None:
        return "An observation runs or starts soon"
    if found.paused:
        return f"The next observation is not before {rfc3339(found.at)}"
    return f"The next observation is at {rfc3339(found.at)}"


def _unknown(
    reason: str, resources: Sequence[DriftedResource], then: str, next_at: datetime | None
) -> UnknownState:
    paths = sorted(path_in(one.path, one.name) for one in resources)
    since = rfc3339(min(one.since for one in resources))
    why = f": {reason.rstrip('.')}" if reason else ""
    what = f"The state of {_join_names(paths)} could not be observed since {since}{why}"
    return {
        "resources": paths,
        "reason": reason,
        "since": since,
        "next_observation_at": rfc3339(next_at) if next_at else None,
        "sentence": f"{what}. {then}.",
    }


def explain_paused(paused: Sequence[PausedObservation]) -> list[responses.PausedObservation]:
    """The observations that wait for an endpoint, or for the budget of requests to it."""
    return [_describe_paused(one) for one in paused]


def _describe_paused(one: PausedObservation) -> responses.PausedObservation:
    resources = "1 resource" if one.resources == 1 else f"{one.resources} resources"
    at = f" at {one.endpoint}" if one.endpoint else ""
    what = f"{resources} of type {one.type}{at}" if one.type else resources
    if not one.resources:  # the stack was never observed
        what = "the stack"
    until = rfc3339(one.until)
    because = f" because {one.reason}" if one.reason else ""
    return {
        "resources": one.resources,
        "resource_type": one.type or None,
        "endpoint": one.endpoint or None,
        "until": until,
        "reason": one.reason,
        "sentence": f"The observation of {what} is paused until {until}{because}.",
    }


def path_in(stack: str, resource_name: str) -> str:
    """A resource's path from the root stack. stack: the path of its stack."""
    return "/".join(filter(None, (stack, resource_name)))


def unfinished_before(nodes: Sequence[NodeRecord]) -> dict[int, list[int]]:
    """node ID -> IDs of the unfinished nodes that it depends on."""
    before: dict[int, list[int]] = {node.id: [] for node in nodes}
    for node in nodes:
        if node.state != "done":
            for after in node.dependents:
                before[after].append(node.id)
    return before


def _blocker(node: NodeRecord, other: NodeRecord) -> str:
    """The name of an unfinished node in the sentence of a node that depends on it. A replacement
    and the deletion of the old resource have one resource name."""
    if other.resource_name != node.resource_name:
        return _node_name(other.resource_name)
    if other.direction == "forward":
        return "its replacement"
    return "the deletion of its old resource"


def _at_hook(node: NodeRecord, path: str, waiting: WaitingHook) -> NodeProgress:
    hook, notifications = waiting.hook, waiting.notifications
    since, until = rfc3339(hook.opened_at), rfc3339(hook.deadline)
    renewed = hook.notification.get("renewed")
    again = f" (asked again: {renewed['reason']})" if renewed else ""
    sentence = (
        f"{_node_name(path)} has waited at {hook.point} since {since}{again}; "
        f"deadline {until}, then {hook.on_timeout}; {_subscribers(notifications)}."
    )
    return _progress(node, path, sentence, since, until, notifications)


def _subscribers(notifications: Sequence[Json]) -> str:
    if not notifications:
        return "no subscription was notified"
    targets = [f"{one['target']} ({_DELIVERY_STATES[one['state']]})" for one in notifications]
    lost = all(one["state"] in ("dead", "disabled") for one in notifications)
    return ("not delivered to " if lost else "notified ") + ", ".join(targets[:_MAX_NAMES])


_DELIVERY_STATES = {
    "delivered": "delivered",
    "pending": "pending",
    "dead": "dead",
    "disabled": "subscription disabled",
}


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _describe_unfinished(
    node: NodeRecord, path: str, names: Sequence[str], labels: Collection[str]
) -> str:
    what = f"{_node_name(path)} ({node.operation})"
    if node.state == "waiting":
        return f"{what} waits for {_join_names(names) or 'an older operation on it'}."
    if node.state == "ready":
        return f"{what} is ready and waits for {_describe_worker(node.label or '', labels)}."
    if node.state == "running":
        return f"{what} runs."
    until = f" until {rfc3339(node.wake_at)}" if node.wake_at else ""
    if node.signal_resource_name is not None:
        return f"{what} waits for signals to {node.signal_resource_name}{until}."
    reason = f": {node.reason}" if node.reason else ""
    return f"{what} waits in its operation{until}{reason}."


def _describe_worker(label: str, labels: Collection[str]) -> str:
    """The workers that can execute a node. labels: those that running processes have."""
    which = f"a worker with the label {label}" if label else "a worker"
    if label in labels:
        return which
    return f"{which}; no running process has {'this label' if label else 'one without labels'}"


def _describe_failed(node: NodeRecord, path: str, continuing: str) -> str:
    what = f"{_node_name(path)} ({node.operation}) {node.state}: {node.reason or 'unknown'}"
    return f"{what}. {continuing}"


def _describe_continuation(graph: StackGraph) -> str:
    """graph: of the stack that is explained."""
    if graph.path:
        return "Its root stack says how to continue."
    if (graph.traversal.action, graph.traversal.state) == (Action.CHECK, TraversalState.FAILED):
        return "Update the stack to replace what failed the check, or check the stack again."
    request = continuing_request(Action(graph.traversal.action))
    return f"{request[0].upper()}{request[1:]} to continue."


def _node_name(path: str) -> str:
    """Nodes of the stack as a whole have no resource name."""
    return path or "the stack"


def _without_hook(node: NodeRecord, path: str, sentence: str) -> NodeProgress:
    since = rfc3339(node.started_at) if node.started_at else None
    return _progress(node, path, sentence, since, until_of(node), ())


def _progress(
    node: NodeRecord,
    path: str,
    sentence: str,
    since: str | None,
    until: str | None,
    notifications: Sequence[Json],
) -> NodeProgress:
    """since, until: RFC 3339."""
    return {
        "resource_name": node.resource_name,
        "path": path,
        "state": node.state,
        "phase": node.phase,
        "sentence": sentence,
        "since": since,
        "until": until,
        "notifications": list(notifications),
    }


def until_of(node: NodeRecord) -> str | None:
    """The time (RFC 3339) at which the timer of a parked node fires; None without a timer."""
    return rfc3339(node.wake_at) if node.state == "parked" and node.wake_at else None
