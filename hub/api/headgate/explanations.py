"""Why a stack makes no progress: a sentence for each unfinished node of its tree. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from channels.envelope import rfc3339
from engine.service.reads.graphs import StackGraph
from engine.store.records import HookRecord, NodeRecord
from engine.words import Json
from hub.api.headgate.responses import NodeProgress

_UNFINISHED = ("waiting", "ready", "running", "parked")
_AT_MOST = 5


@dataclass(frozen=True, slots=True)
class Held:
    """A waiting hook. asked: deliveries of its notification, as in the hooks API."""

    hook: HookRecord
    asked: Sequence[Json]


def reasons_in(
    graphs: Sequence[StackGraph], held: Mapping[tuple[UUID, str], Held]
) -> list[NodeProgress]:
    """Unfinished, failed and stopped nodes of the current traversal, each followed by those of its
    nested stack.

    graphs: of the stack itself first. held: by stack and resource name.
    """
    by_stack = {one.stack_id: one for one in graphs}
    return _reasons(graphs[0], by_stack, held)


def _reasons(
    graph: StackGraph,
    by_stack: Mapping[UUID, StackGraph],
    held: Mapping[tuple[UUID, str], Held],
) -> list[NodeProgress]:
    nodes = graph.nodes
    before = _waits_for(nodes)
    by_id = {node.id: node for node in nodes}
    found: list[NodeProgress] = []
    for node in nodes:
        path = path_in(graph.path, node.resource_name)
        hook = held.get((node.stack_id, node.resource_name)) if node.state == "parked" else None
        inside = by_stack.get(node.inside) if node.inside else None
        if hook is not None and node.wake_at is None and node.phase != "act":
            found.append(_held(node, path, hook))
        elif inside is not None and node.state == "parked" and node.phase == "act":
            what = f"{_named(path)} ({node.operation})"
            found.append(_plain(node, path, f"{what} waits for its nested stack."))
            found += _reasons(inside, by_stack, held)
        elif node.state in _UNFINISHED:
            names = sorted({_blocker(node, by_id[one]) for one in before[node.id]})
            found.append(_plain(node, path, _unfinished(node, path, names)))
        elif node.state in ("failed", "stopped"):
            found.append(_plain(node, path, _unwell(node, path)))
            found += _reasons(inside, by_stack, held) if inside else []
    return found


def path_in(stack: str, resource_name: str) -> str:
    """A resource's path from the root stack. stack: the path of its stack."""
    return "/".join(filter(None, (stack, resource_name)))


def unfinished_before(nodes: Sequence[NodeRecord]) -> dict[int, list[int]]:
    """node ID -> IDs of the unfinished nodes that it depends on."""
    return _waits_for(nodes)


def _waits_for(nodes: Sequence[NodeRecord]) -> dict[int, list[int]]:
    before: dict[int, list[int]] = {node.id: [] for node in nodes}
    for node in nodes:
        if node.state != "done":
            for after in node.requirers:
                before[after].append(node.id)
    return before


def _blocker(node: NodeRecord, other: NodeRecord) -> str:
    """The name of an unfinished node in the sentence of a node that depends on it. A replacement
    and the deletion of the old resource have one resource name."""
    if other.resource_name != node.resource_name:
        return _named(other.resource_name)
    if other.direction == "forward":
        return "its replacement"
    return "the deletion of its old resource"


def _held(node: NodeRecord, path: str, held: Held) -> NodeProgress:
    hook, asked = held.hook, held.asked
    since, until = rfc3339(hook.opened_at), rfc3339(hook.deadline)
    sentence = (
        f"{_named(path)} has waited at {hook.point} since {since}; "
        f"deadline {until}, then {hook.on_timeout}; {_told(asked)}."
    )
    return _progress(node, path, sentence, since, until, asked)


def _told(asked: Sequence[Json]) -> str:
    if not asked:
        return "no subscription was notified"
    said = [f"{one['target']} ({_ARRIVED[one['state']]})" for one in asked]
    lost = all(one["state"] in ("dead", "disabled") for one in asked)
    how = "not delivered to " if lost else "notified "
    return how + ", ".join(said[:_AT_MOST])


_ARRIVED = {
    "delivered": "delivered",
    "pending": "pending",
    "dead": "dead",
    "disabled": "subscription disabled",
}


def _unfinished(node: NodeRecord, path: str, names: Sequence[str]) -> str:
    what = f"{_named(path)} ({node.operation})"
    if node.state == "waiting":
        named = ", ".join(names[:_AT_MOST]) or "an older operation on it"
        more = f" and {len(names) - _AT_MOST} more" if len(names) > _AT_MOST else ""
        return f"{what} waits for {named}{more}."
    if node.state == "ready":
        return f"{what} is ready and waits for a worker."
    if node.state == "running":
        return f"{what} runs."
    until = f" until {rfc3339(node.wake_at)}" if node.wake_at else ""
    if node.awaits is not None:
        return f"{what} waits for signals to {node.awaits}{until}."
    what_for = f": {node.reason}" if node.reason else ""
    return f"{what} waits in its operation{until}{what_for}."


def _unwell(node: NodeRecord, path: str) -> str:
    how = "Update the stack to continue."
    what = f"{_named(path)} ({node.operation})"
    return f"{what} {node.state}: {node.reason or 'unknown'}. {how}"


def _named(path: str) -> str:
    """Nodes of the stack as a whole have no resource name."""
    return path or "the stack"


def _plain(node: NodeRecord, path: str, sentence: str) -> NodeProgress:
    since = rfc3339(node.started_at) if node.started_at else None
    return _progress(node, path, sentence, since, until_of(node), ())


def _progress(
    node: NodeRecord,
    path: str,
    sentence: str,
    since: str | None,
    until: str | None,
    deliveries: Sequence[Json],
) -> NodeProgress:
    """since, until: RFC 3339. deliveries: of the hook's notification, as in the hooks API."""
    return {
        "resource_name": node.resource_name,
        "path": path,
        "state": node.state,
        "phase": node.phase,
        "sentence": sentence,
        "since": since,
        "until": until,
        "told": list(deliveries),
    }


def until_of(node: NodeRecord) -> str | None:
    """When a parked node is due again, in RFC 3339; None without a timer."""
    return rfc3339(node.wake_at) if node.state == "parked" and node.wake_at else None
