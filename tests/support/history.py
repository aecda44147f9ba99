"""Rebuilds the state of a stack from its events alone. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tests.support.program import Json

#: Operations that do not change the state of a resource.
WITHOUT_STATE_CHANGE = ("protect", "unprotect", "signal")


@dataclass(frozen=True)
class StackState:
    action: str
    status: str
    reason: str
    version: int
    traversal: int


@dataclass(frozen=True)
class ResourceState:
    """reason: of the last operation that ended; empty while one runs."""

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
    """The state after an event. resources: by name; hooks: by ID."""

    stack: StackState | None = None
    resources: Mapping[str, ResourceState] = field(default_factory=dict)
    hooks: Mapping[str, HookState] = field(default_factory=dict)


def rebuild(events: Iterable[Json]) -> History:
    history = History()
    for event in events:
        history = apply_event(history, event)
    return history


def apply_event(history: History, event: Json) -> History:
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
    data, kind = event["data"], event["type"].rpartition(".")[2]
    resource, operation = data["resource"], data["operation"]
    name = resource["name"]
    if operation in WITHOUT_STATE_CHANGE or resource["replaced"]:
        return resources
    if operation == "move":
        return _moved(resources, data)
    if (operation, kind) == ("delete", "completed"):
        return {one: state for one, state in resources.items() if one != name}
    action, reason = resource["action"], resource["reason"]
    if operation == "replace" and kind != "completed":
        action = (
            "UPDATE"  # the API shows the old physical resource until the replacement is complete
        )
    if resource["status"] == "IN_PROGRESS":
        reason = ""
    return {
        **resources,
        name: ResourceState(action, resource["status"], reason, resource["physical_id"]),
    }


def _moved(resources: Mapping[str, ResourceState], data: Json) -> Mapping[str, ResourceState]:
    """The same state under the new name. A move from another stack is an event of that stack."""
    here, source, to = data["stack"]["id"], data["moved"]["from"], data["moved"]["to"]
    left = {name: state for name, state in resources.items() if name != source["resource"]}
    state = resources[source["resource"]]
    return {**left, to["resource"]: state} if to["stack_id"] == here else left
