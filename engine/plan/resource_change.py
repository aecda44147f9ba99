"""Decides the operation of a resource when its node is claimed, from its current state."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.hot.environment.registry import is_template_file
from engine.hot.schema.type_schema import TypeSchema
from engine.words import Json, Operation, ResourceAction, Status

#: In the column `lifecycle` of a resource that a user has marked as unhealthy.
UNHEALTHY = "unhealthy"


def is_unhealthy(lifecycle: Mapping[str, Json] | None) -> bool:
    """Whether a user has marked the resource as unhealthy. lifecycle: the column of its row."""
    return bool(lifecycle and lifecycle.get(UNHEALTHY))


def without_mark(lifecycle: Mapping[str, Json]) -> dict[str, Json] | None:
    """The column of a resource that is healthy again."""
    return {key: one for key, one in lifecycle.items() if key != UNHEALTHY} or None


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource's row, as far as a change needs it. replaced: another row has its name now.
    unhealthy: a user has marked it."""

    type: str
    action: ResourceAction
    status: Status
    physical_id: str | None
    properties: Mapping[str, Json] | None
    tainted: bool
    replaced: bool
    unhealthy: bool = False


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """operation: None if nothing is to be done. changed: names of properties that differ. fixed:
    changed properties that are immutable, so that the update is refused. cause: of a replacement
    that the lifecycle of the resource demands, or "".
    """

    operation: Operation | None
    changed: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    cause: str = ""


def forward_change(
    actual: ResourceState | None,
    type_name: str,
    schema: TypeSchema,
    properties: Mapping[str, Json],
    *,
    replaces_tainted: bool = True,
    restores: bool = False,
    repairs: bool = False,
    nests: bool = False,
) -> ResourceChange:
    """Return the operation that gives a resource these properties (resolved, with defaults).

    replaces_tainted: replace a tainted resource also after a failed update. restores: the resource
    returns to a snapshot, so it is updated even if no property differs. repairs: an update repairs
    a failed resource, which is never replaced for that. nests: the resource is a nested stack whose
    content was planned.
    """
    if nests:
        return _nest_change(actual, type_name, schema, properties)
    if actual is None or was_never_created(actual):
        return ResourceChange(Operation.CREATE, frozenset(properties))
    changed = differing_names(actual.properties or {}, properties)
    if repairs and actual.type == type_name and actual.status is not Status.COMPLETE:
        return ResourceChange(Operation.UPDATE, changed)
    if actual.type != type_name or actual.action in (ResourceAction.DELETE, ResourceAction.INIT):
        return ResourceChange(Operation.REPLACE, changed)
    if schema.renewed:
        return ResourceChange(Operation.REPLACE, changed)
    if actual.tainted:
        again = actual.action is ResourceAction.UPDATE and not replaces_tainted
        return ResourceChange(Operation.UPDATE if again else Operation.REPLACE, changed)
    if not changed:
        return ResourceChange(Operation.UPDATE if restores else None)
    if fixed := frozenset(name for name in changed if _is_fixed(schema, name)):
        return ResourceChange(Operation.UPDATE, changed, fixed)
    in_place = all(_may_change(schema, name) for name in changed)
    return ResourceChange(Operation.UPDATE if in_place else Operation.REPLACE, changed)


def _nest_change(
    actual: ResourceState | None, type_name: str, schema: TypeSchema, properties: Mapping[str, Json]
) -> ResourceChange:
    """A nested stack is updated even if no property differs, because something inside may differ
    or pause. Replacing one template by another updates the nested stack. After a failed check, the
    update repairs what has failed inside; a nested stack that a user has marked is replaced.
    """
    if actual is not None and is_template_file(actual.type) and is_template_file(type_name):
        type_name = actual.type
    repairs = actual is None or not (actual.unhealthy and actual.tainted)
    change = forward_change(actual, type_name, schema, properties, repairs=repairs)
    return change if change.operation else ResourceChange(Operation.UPDATE)


def cleanup_change(
    actual: ResourceState | None, *, only_if_replaced: bool, retained: bool = False
) -> ResourceChange:
    """Return the operation that removes a resource. only_if_replaced: keep it unless it was
    replaced. retained: keep the physical resource.
    """
    if actual is None or retained or (only_if_replaced and not actual.replaced):
        return ResourceChange(None)
    return ResourceChange(None if was_never_created(actual) else Operation.DELETE)


def differing_names(before: Mapping[str, Json], after: Mapping[str, Json]) -> frozenset[str]:
    """Return the names of entries that differ; null equals absent, as in Heat."""
    return frozenset(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


def was_never_created(actual: ResourceState) -> bool:
    """Return whether no operation has created the resource yet."""
    if actual.action is ResourceAction.INIT:
        return True
    if actual.action is ResourceAction.ADOPT:
        return actual.status is not Status.COMPLETE
    if actual.action is ResourceAction.DELETE and actual.status is Status.COMPLETE:
        return True  # deleted; only its row is left
    if actual.action is ResourceAction.UPDATE and actual.status is Status.FAILED:
        # As earlier releases recorded a create that failed again before it began.
        nothing = actual.physical_id is None and actual.properties is None
        return nothing and not actual.tainted
    return actual.action is ResourceAction.CREATE and not (
        actual.status is Status.COMPLETE or actual.tainted
    )


def _may_change(schema: TypeSchema, name: str) -> bool:
    if schema.any_property:
        return True
    known = schema.properties.get(name)
    return known is not None and known.update_allowed


def _is_fixed(schema: TypeSchema, name: str) -> bool:
    known = schema.properties.get(name)
    return known is not None and known.immutable
