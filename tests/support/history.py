"""A stack rebuilt from its events alone: a fold without a look at anything else. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.support.program import Json

#: Operations that change nothing of what is told of a resource here.
TOLD_ONLY = ("protect", "unprotect", "signal")


@dataclass(frozen=True)
class StackState:
    action: str
    status: str
    reason: str
    version: int
    traversal: int


@dataclass(frozen=True)
class ResourceState:
    """reason: of its last operation that has ended; empty while one runs."""

    action: str
    status: str
    reason: str
    physical_id: str | None


@dataclass(frozen=True)
class HookState:
    state: str
    decision: str | None = None
    by: str | None = None


@dataclass(frozen=True)
class History:
    """What there is after an event. resources: by name; hooks: by id."""

    stack: StackState | None = None
    resources: Mapping[str, ResourceState] = field(default_factory=dict)
    hooks: Mapping[str, HookState] = field(default_factory=dict)


def rebuilt(events: Iterable[Json]) -> History:
    history = History()
    for event in events:
        history = after(history, event)
    return history


def after(history: History, event: Json) -> History:
    data, what = event["data"], event["type"].split(".")[1]
    if what == "stack":
        return replace(history, stack=_stack(data))
    if what == "hook":
        return replace(history, hooks={**history.hooks, data["hook"]["id"]: _hook(data["hook"])})
    if what == "resource":
        return replace(history, resources=_resources(history.resources, event))
    return history


def _stack(data: Json) -> StackState:
    stack = data["stack"]
    return StackState(
        stack["action"], stack["status"], stack["reason"], data["version"], data["traversal"]
    )


def _hook(hook: Json) -> HookState:
    return HookState(hook["state"], hook.get("decision"), hook.get("decided_by"))


def _resources(resources: Mapping[str, ResourceState], event: Json) -> Mapping[str, ResourceState]:
    data, moment = event["data"], event["type"].rpartition(".")[2]
    told, operation = data["resource"], data["operation"]
    name = told["name"]
    if operation in TOLD_ONLY or told["replaced"]:
        return resources
    if operation == "move":
        return _moved(resources, data)
    if (operation, moment) == ("delete", "completed"):
        return {one: state for one, state in resources.items() if one != name}
    action, reason = told["action"], told["reason"]
    if operation == "replace" and moment != "completed":
        action = "UPDATE"  # what is shown is still the old one
    if told["status"] == "IN_PROGRESS":
        reason = ""
    return {**resources, name: ResourceState(action, told["status"], reason, told["physical_id"])}


def _moved(resources: Mapping[str, ResourceState], data: Json) -> Mapping[str, ResourceState]:
    """As it was, under its new name; what came from another stack is told of there."""
    here, source, to = data["stack"]["id"], data["moved"]["from"], data["moved"]["to"]
    left = {name: state for name, state in resources.items() if name != source["resource"]}
    state = resources[source["resource"]]
    return {**left, to["resource"]: state} if to["stack_id"] == here else left
