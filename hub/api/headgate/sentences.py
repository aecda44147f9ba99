"""Why a stack does not go on: one sentence for each unfinished node. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from channels.envelope import rfc3339
from engine.store.records import HookRecord, NodeRecord
from engine.words import Json

_UNFINISHED = ("waiting", "ready", "running", "parked")
_AT_MOST = 5


@dataclass(frozen=True, slots=True)
class Reason:
    """since, until: RFC 3339, or None. asked: whom a hook's notice went to (see the hooks API)."""

    resource_name: str
    state: str
    phase: str
    sentence: str
    since: str | None
    until: str | None
    told: Sequence[Json]


def reasons(
    nodes: Sequence[NodeRecord],
    hooks: Mapping[str, HookRecord],
    asked: Mapping[str, Sequence[Json]],
) -> list[Reason]:
    """Unfinished and unwell nodes of the current traversal.

    hooks: waiting ones by resource name. asked: their ``asked`` lists by resource name.
    """
    before = _waits_for(nodes)
    by_id = {node.id: node for node in nodes}
    found: list[Reason] = []
    for node in nodes:
        hook = hooks.get(node.resource_name) if node.state == "parked" else None
        if hook is not None and node.wake_at is None:
            found.append(_held(node, hook, asked.get(node.resource_name, ())))
        elif node.state in _UNFINISHED:
            names = sorted({_named(by_id[one].resource_name) for one in before[node.id]})
            found.append(_plain(node, _unfinished(node, names)))
        elif node.state in ("failed", "stopped"):
            found.append(_plain(node, _unwell(node)))
    return found


def unfinished_before(nodes: Sequence[NodeRecord]) -> dict[int, list[int]]:
    """node id -> ids of the unfinished nodes it comes after."""
    return _waits_for(nodes)


def _waits_for(nodes: Sequence[NodeRecord]) -> dict[int, list[int]]:
    before: dict[int, list[int]] = {node.id: [] for node in nodes}
    for node in nodes:
        if node.state != "done":
            for after in node.requirers:
                before[after].append(node.id)
    return before


def _held(node: NodeRecord, hook: HookRecord, asked: Sequence[Json]) -> Reason:
    since, until = rfc3339(hook.opened_at), rfc3339(hook.deadline)
    sentence = (
        f"{_named(hook.resource_name)} waits at {hook.point} since {since} for an answer "
        f"until {until}, then: {hook.on_timeout}; {_told(asked)}."
    )
    return Reason(node.resource_name, node.state, node.phase, sentence, since, until, asked)


def _told(asked: Sequence[Json]) -> str:
    if not asked:
        return "nobody subscribed to be told"
    said = [f"{one['target']} ({_ARRIVED[one['state']]})" for one in asked]
    lost = all(one["state"] in ("dead", "disabled") for one in asked)
    how = "nobody could be told: " if lost else "told: "
    return how + ", ".join(said[:_AT_MOST])


_ARRIVED = {
    "delivered": "arrived",
    "pending": "on its way",
    "dead": "given up",
    "disabled": "the subscription is disabled",
}


def _unfinished(node: NodeRecord, names: Sequence[str]) -> str:
    what = f"{_named(node.resource_name)} ({node.operation})"
    if node.state == "waiting":
        named = ", ".join(names[:_AT_MOST]) or "an older operation on it"
        more = f" and {len(names) - _AT_MOST} more" if len(names) > _AT_MOST else ""
        return f"{what} waits for {named}{more}."
    if node.state == "ready":
        return f"{what} is ready and waits for a worker."
    if node.state == "running":
        return f"{what} runs."
    until = f" until {rfc3339(node.wake_at)}" if node.wake_at else ""
    what_for = f": {node.reason}" if node.reason else ""
    return f"{what} waits inside its operation{until}{what_for}."


def _unwell(node: NodeRecord) -> str:
    how = "Update the stack to go on."
    what = f"{_named(node.resource_name)} ({node.operation})"
    return f"{what} {node.state}: {node.reason or 'unknown'}. {how}"


def _named(resource_name: str) -> str:
    """The gates of the stack as a whole have no name."""
    return resource_name or "the stack"


def _plain(node: NodeRecord, sentence: str) -> Reason:
    since = rfc3339(node.started_at) if node.started_at else None
    parked = node.state == "parked" and node.wake_at is not None
    until = rfc3339(node.wake_at) if parked and node.wake_at else None
    return Reason(node.resource_name, node.state, node.phase, sentence, since, until, ())
