"""From a claimed node to its operation: resolve, find out what differs, call the type.

Everything a resource type does wrong ends here, as a failure of its node.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import assert_never
from uuid import UUID

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Findings, HeadgateError
from engine.hot.definition import check_resolved, fill_defaults
from engine.hot.expression import decode
from engine.hot.function import Wrong
from engine.hot.resolve import MASK, resolve
from engine.hot.schema import TypeSchema
from engine.node.inputs import (
    Broke,
    Denied,
    Input,
    MustReplace,
    MustRetry,
    MustWait,
    Succeeded,
)
from engine.plan.change import Actual, Change, cleanup_change, differing, forward_change
from engine.store.advance import Work
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.registry import Registry
from engine.words import (
    VISITS,
    Json,
    Operation,
    Phase,
    ResourceAction,
    ResourceId,
    Restriction,
    StackId,
    Status,
)
from engine.work.retrying import Retrying
from engine.work.steps import Notice, Result

#: How JSON writes the one letter that PostgreSQL does not keep.
NUL = b"\\u0000"

log: FilteringBoundLogger = structlog.get_logger()


class Unresolved(Exception):
    """Properties cannot be worked out from what the resources gave; says why."""


class Inputs:
    """What expressions read of the stack (engine.hot.resolve.View)."""

    def __init__(self, values: Mapping[str, list[Json]]) -> None:
        self._values = values

    def reference(self, resource: str) -> str:
        reference, _ = self._values.get(resource, (None, None))
        return resource if reference is None else str(reference)

    def attribute(self, resource: str, attribute: str) -> Json:
        return self.attributes(resource).get(attribute)

    def attributes(self, resource: str) -> Mapping[str, Json]:
        _, attributes = self._values.get(resource, (None, None))
        return attributes or {}


@dataclass(slots=True)
class Prepared:
    """A node with its properties resolved. change: what is to be done, seen from what exists.

    denied: why it may not be done, or None.
    """

    work: Work
    type: ResourceType
    properties: Mapping[str, Json]
    change: Change
    denied: str | None = None


def prepare(work: Work, registry: Registry) -> Prepared:
    """Resolve and compare; sets ``work.metadata_now``. Raises Unresolved."""
    type_ = registry.get(work.type)
    if work.direction == "cleanup":
        return _prepared_cleanup(work, type_)
    if work.operation in VISITS:
        return Prepared(work, type_, work.properties or {}, Change(Operation(work.operation)))
    properties = _resolved(work, type_.schema)
    change = _forward_change(work, type_, properties)
    return Prepared(work, type_, properties, change, _denied(work, change.operation))


def _forward_change(work: Work, type_: ResourceType, properties: Mapping[str, Json]) -> Change:
    definition = work.definition or {}
    if work.operation == Operation.ADOPT:
        return Change(Operation.ADOPT, frozenset(properties))
    if definition.get("external_id") is not None and work.action is not None:
        return Change(None)
    change = forward_change(
        _actual(work),
        work.type,
        type_.schema,
        properties,
        replaces_broken=type_.replaces_broken,
        restores=bool(definition.get("kept")),
    )
    if change.operation is Operation.UPDATE:
        call = _call(work, Operation.UPDATE, properties, change.changed)
        if type_.needs_replace(call):
            return Change(Operation.REPLACE, change.changed)
    return change


def _prepared_cleanup(work: Work, type_: ResourceType) -> Prepared:
    definition = work.definition or {}
    change = cleanup_change(
        _actual(work),
        only_if_replaced=bool(definition.get("only_if_replaced")),
        retained=bool(definition.get("retained")),
    )
    if change.operation is not None and work.operation == Operation.SNAPSHOT:
        change = Change(Operation.SNAPSHOT)
    # Once begun, a delete goes on to its end: protection came too late.
    begun = work.phase != Phase.PRE
    denied = None if begun else _denied(work, change.operation)
    return Prepared(work, type_, work.properties or {}, change, denied)


def _denied(work: Work, operation: Operation | None) -> str | None:
    """Why the operation may not be done to this resource."""
    definition = work.definition or {}
    external = definition.get("external_id")
    if external is not None and work.physical_id not in (None, external):
        return f"external_id cannot be changed from {work.physical_id} to {external}"
    if operation in (Operation.REPLACE, Operation.DELETE) and work.protected:
        return f"{work.name} is protected: {operation} refused until its protection is lifted"
    if operation is not None and operation in definition.get("restricted", ()):
        return f"{Restriction(operation)} is restricted for resource."
    return None


def _actual(work: Work) -> Actual | None:
    if work.action is None or work.status is None or work.row_type is None:
        return None
    return Actual(
        type=work.row_type,
        action=ResourceAction(work.action),
        status=Status(work.status),
        physical_id=work.physical_id,
        properties=work.properties,
        broken=bool(work.broken),
        replaced=work.replaced_by is not None,
    )


def _resolved(work: Work, schema: TypeSchema) -> dict[str, Json]:
    definition = work.definition or {}
    if definition.get("static"):
        work.metadata_now = definition["metadata"]
        return dict(definition["properties"])
    try:
        expression = decode(definition["properties"], definition["version"])
        resolved = resolve(expression, Inputs(work.inputs or {})) or {}
    except Wrong as wrong:
        raise Unresolved(str(wrong)) from wrong
    metadata = decode(definition["metadata"], definition["version"])
    work.metadata_now = resolve(metadata, Inputs(work.inputs or {}))
    findings = Findings()
    properties = check_resolved(schema, resolved, f"resources.{work.name}.properties", findings)
    if findings.all:
        raise Unresolved("; ".join(str(finding) for finding in findings.all))
    return fill_defaults(schema, properties)


def _call(
    work: Work, operation: Operation, properties: Mapping[str, Json], changed: frozenset[str]
) -> Call:
    replaces = operation is Operation.REPLACE
    creates = replaces or operation is Operation.CREATE
    adopts = operation is Operation.ADOPT
    resource_id = work.replacement_id if replaces and work.replacement_id else work.resource_id
    return Call(
        project=work.project,
        stack_id=StackId(work.key.stack_id),
        stack_name=work.stack_name,
        resource_id=ResourceId(resource_id),
        resource_name=work.name,
        operation_key=work.operation_key or UUID(int=0),
        now=work.now,
        properties=properties,
        previous=None if creates or adopts else work.properties,
        changed=changed,
        physical_id=None if creates else work.physical_id,
        data={} if creates else work.data or {},
        attributes={} if creates else work.attributes or {},
        progress=work.progress,
        attempts=work.attempts,
        kept=(work.definition or {}).get("kept"),
    )


def start(prepared: Prepared) -> Outcome | Awaitable[Outcome]:
    """Call the operation the node is in. A coroutine must be awaited by the caller, bounded."""
    work = prepared.work
    operation = Operation(work.operation)
    changed = prepared.change.changed
    if operation is Operation.UPDATE and not changed:
        changed = differing(work.properties or {}, prepared.properties)
    call = _call(work, operation, prepared.properties, changed)
    run = _OPERATIONS[operation](prepared.type)
    try:
        outcome = run(call)
    except Exception as error:
        return failure(work, error)
    return _guarded(work, outcome) if isawaitable(outcome) else outcome


_OPERATIONS: Mapping[
    Operation, Callable[[ResourceType], Callable[[Call], Outcome | Awaitable[Outcome]]]
] = {
    Operation.CREATE: lambda type_: type_.create,
    Operation.REPLACE: lambda type_: type_.create,
    Operation.UPDATE: lambda type_: type_.update,
    Operation.DELETE: lambda type_: type_.delete,
    Operation.ADOPT: lambda type_: type_.adopt,
    Operation.CHECK: lambda type_: type_.check,
    Operation.SUSPEND: lambda type_: type_.suspend,
    Operation.RESUME: lambda type_: type_.resume,
    Operation.SNAPSHOT: lambda type_: type_.snapshot,
}


async def _guarded(work: Work, outcome: Awaitable[Outcome]) -> Outcome:
    try:
        return await outcome
    except Exception as error:
        return failure(work, error)


def failure(work: Work, error: Exception) -> Failed:
    """The one border at which a type's exception becomes an outcome. Bugs are logged whole."""
    if isinstance(error, HeadgateError):
        return Failed(str(error))
    log.error("operation.bug", resource=work.name, type=work.type, exc_info=error)
    return Failed(f"the type {work.type} failed unexpectedly: {type(error).__name__}")


def judge(prepared: Prepared, outcome: Outcome, retrying: Retrying) -> tuple[Input, Result]:
    """What the outcome says to the machine, and what it made of the resource."""
    work = prepared.work
    result = Result(
        properties=prepared.properties, shown=_kept_view(prepared), attempts=work.attempts
    )
    unstorable = _unstorable(outcome)
    if unstorable:
        return Broke(f"the type {prepared.work.type} {unstorable}"), result
    match outcome:
        case Done(physical_id=physical_id, attributes=attributes, data=data, reason=reason):
            result.physical_id, result.attributes, result.data = physical_id, attributes, data
            result.reference = prepared.type.reference(work.name, physical_id, data)
            result.reason = reason
            return Succeeded(), result
        case Wait(until=until, progress=progress):
            result.progress = progress
            return MustWait(until), result
        case Replace():
            denied = _denied(work, Operation.REPLACE)
            return Denied(denied) if denied else MustReplace(), result
        case Failed(retry=True, reason=reason) if work.attempts < retrying.limit:
            result.progress, result.attempts = work.progress, work.attempts + 1
            return MustRetry(work.now + retrying.pause(work.attempts), reason), result
        case Failed(reason=reason, physical_id=physical_id, data=data):
            result.physical_id, result.data = physical_id, data
            return Broke(reason), result
        case _ as never:
            assert_never(never)


def _unstorable(outcome: Outcome) -> str | None:
    """Why what a type gave cannot be kept: one bad value must fail its resource and no more."""
    kept = {
        name: getattr(outcome, name)
        for name in ("physical_id", "attributes", "data", "progress", "reason")
        if hasattr(outcome, name)
    }
    try:
        written = orjson.dumps(kept)
    except TypeError as error:
        return f"gave what cannot be kept: {error}"
    if NUL in written and _has_nul(kept):
        return "gave a text with a NUL in it, which cannot be kept"
    return None


def _has_nul(value: Json) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list | tuple) and any(_has_nul(item) for item in value)


def notice(prepared: Prepared) -> Notice:
    """Properties and changes as people may see them."""
    work = prepared.work
    shown = _shown(prepared)
    if prepared.change.operation not in (Operation.UPDATE, Operation.REPLACE):
        return Notice(shown, {})
    before = masked(work.shown or work.properties or {}, prepared.type.schema)
    hidden = {name for name, value in shown.items() if MASK in str(value)}
    return Notice(
        shown,
        {
            name: {
                "from": MASK if name in hidden else before.get(name),
                "to": shown.get(name),
            }
            for name in sorted(prepared.change.changed)
        },
    )


def _kept_view(prepared: Prepared) -> Mapping[str, Json] | None:
    """What is kept beside the properties, so that later notices tell no secret either."""
    work, definition = prepared.work, prepared.work.definition or {}
    if work.direction == "cleanup":
        return work.shown
    return _shown(prepared) if _has_secrets(definition) else None


def _has_secrets(definition: Mapping[str, Json]) -> bool:
    return definition.get("masked") is not None or bool(definition.get("secret_references"))


def _shown(prepared: Prepared) -> dict[str, Json]:
    work, definition = prepared.work, prepared.work.definition or {}
    schema = prepared.type.schema
    secret = definition.get("secret_references") or []
    if work.direction == "cleanup":
        return masked(work.shown or prepared.properties, schema)
    if not _has_secrets(definition):
        return masked(prepared.properties, schema)
    stored = definition["properties"] if definition["masked"] is None else definition["masked"]
    values = {
        name: [MASK if name in secret else reference, attributes]
        for name, (reference, attributes) in (work.inputs or {}).items()
    }
    expression = decode(stored, definition["version"])
    return masked(resolve(expression, Inputs(values), masked=True) or {}, schema)


def masked(properties: Mapping[str, Json], schema: TypeSchema) -> dict[str, Json]:
    """`properties` with those that the type hides replaced by ``******``."""
    return {
        name: MASK if value is not None and _hides(schema, name) else value
        for name, value in properties.items()
    }


def _hides(schema: TypeSchema, name: str) -> bool:
    known = schema.properties.get(name)
    return known is not None and known.hidden
