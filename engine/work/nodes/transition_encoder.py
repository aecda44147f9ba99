"""Encodes steps of the node machine: one JSON document per node for the store.

The SQL function ``advance`` (engine/store/routines/5_advance.sql) reads the documents and defines
their fields.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never
from uuid import UUID

from engine.hooks.rule import Rule
from engine.node.node import (
    CallOperation,
    Effect,
    EventKind,
    Node,
    NotifyType,
    OpenHook,
    Record,
    Remove,
    Step,
    WakeAt,
    WriteDone,
    WriteFailed,
    WriteUnchanged,
)
from engine.plan.draft import may_be_suspended
from engine.plan.overrides import OVERRIDES
from engine.plan.resource_change import is_unhealthy, without_mark
from engine.store.encryption.secret_values import Scope, Secret
from engine.store.traversals.added_nodes import decode_added_nodes
from engine.store.traversals.advance import Work
from engine.types.contract import short_key
from engine.words import (
    CREATING,
    GATES,
    IN_PLACE_OPERATIONS,
    DeletionPolicy,
    Json,
    Operation,
    Phase,
    ResourceAction,
    Status,
)
from engine.work.nodes.hook_opening import (
    ACTION_OF,
    CURRENT_ACTION_OF,
    HookContext,
    NotificationData,
    hook_events,
    hook_row,
)


@dataclass(slots=True)
class Result:
    """The resource after an operation; after a failure, what the operation may have created.

    masked_properties: the properties with secrets masked, or None if none is secret. reason: from
    the type. attempts: failed attempts so far. seen: the preview for a confirmation.
    signal_resource_id: the resource whose signals it waits for. renewed: the next update includes
    it even if nothing differs.
    secret_attributes: names of its secret values (engine/hot/expressions/member_attributes.py).
    """

    properties: Mapping[str, Json] | None = None
    masked_properties: Mapping[str, Json] | None = None
    secret_attributes: Sequence[str] | None = None
    physical_id: str | None = None
    reference: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)
    data: Mapping[str, Json] = field(default_factory=dict)
    progress: Json = None
    reason: str = ""
    attempts: int = 0
    seen: Mapping[str, Json] = field(default_factory=dict)
    signal_resource_id: UUID | None = None
    confirmation: Json = None
    renewed: bool = False


_STATUS_OF: Mapping[EventKind, Status] = {
    EventKind.STARTED: Status.IN_PROGRESS,
    EventKind.COMPLETED: Status.COMPLETE,
    EventKind.FAILED: Status.FAILED,
    EventKind.RETRYING: Status.IN_PROGRESS,
}


def creates_replacement(node: Node) -> bool:
    """Return whether a result of the node is of the replacement, not of the original."""
    return node.operation is Operation.REPLACE and node.phase in (Phase.EXECUTE, Phase.CONFIRM)


class TransitionEncoder:
    """Applies effects in order; its attributes are the parts of the document."""

    def __init__(self, work: Work, node: Node, result: Result) -> None:
        self.work = work
        self.node = node
        self.result = result
        self.resource: dict[str, Json] | None = None
        self.snapshot: dict[str, Json] | None = None
        self.nodes: Json = None
        self.hooks: list[Json] = []
        self.events: list[Json] = []
        self.wake_at: Json = None
        self.confirmation: Json = result.confirmation
        self.operation_key: UUID | None = None
        self.action = work.action
        self.status = work.status
        if work.operation in GATES:
            self.action, self.status = (work.definition or {}).get("action", ""), Status.IN_PROGRESS
        self.physical_id = work.physical_id

    def apply(
        self,
        effect: Effect,
        new_id: Callable[[], UUID],
        default_timeout: timedelta,
        notification: Callable[[], NotificationData],
    ) -> None:
        match effect:
            case CallOperation():
                pass  # the worker calls it once this step is durable
            case WakeAt(until=until):
                self.wake_at = until
            case WriteDone():
                self._write_done()
            case WriteUnchanged():
                self._write_unchanged()
            case WriteFailed(reason=reason, tainted=tainted):
                self._write_failed(reason, tainted)
            case Remove():
                self._write_removed()
            case Record(kind=kind, reason=reason):
                self._record(kind, reason, new_id)
            case NotifyType():
                self.confirmation = effect.as_json()
            case OpenHook(rule=rule):
                self._open(rule, new_id(), default_timeout, notification())
            case _ as never:
                assert_never(never)

    def _write_done(self) -> None:
        self.action, self.status = ACTION_OF[self.node.operation], Status.COMPLETE
        if self.node.operation is Operation.ADOPT and self._is_external():
            self.action = ResourceAction.CHECK  # the last action on it, as Heat's clients see it
        reason = self.result.reason or "state changed"
        if self.node.operation in IN_PLACE_OPERATIONS:
            self._write_done_in_place(reason)
        else:
            self._write_done_with_definition(reason)

    def _is_external(self) -> bool:
        """Return whether the resource has `external_id`: the stack does not own it."""
        definition = self.work.definition or {}
        return definition.get("external_id") is not None and not definition.get("data")

    def _write_done_in_place(self, reason: str) -> None:
        """An in-place action keeps the definition that was applied last.

        A check or a snapshot also keeps the status of a suspended resource, by which a resume
        selects it.
        """
        work, result = self.work, self.result
        if self._stays_suspended():
            self.action, self.status = work.action, work.status
        if self.node.operation is Operation.SNAPSHOT:
            self.resource = self._row(reason)
            self.snapshot = {
                "id": work.resource_id, "name": work.name, "type": work.type,
                "physical_id": work.physical_id, "properties": work.properties,
                "metadata": work.metadata or {}, "data": result.data,
                "overrides": (work.lifecycle or {}).get(OVERRIDES),
            }  # fmt: skip
            return
        healed: dict[str, Json] = {}
        if self.node.operation is Operation.CHECK:
            healed = {"tainted": False}
            if is_unhealthy(work.lifecycle):
                healed["lifecycle"] = without_mark(work.lifecycle or {})
        self.resource = self._row(
            reason,
            attributes=result.attributes,
            secret_attributes=result.secret_attributes,
            data=result.data,
            **healed,
        )

    def _stays_suspended(self) -> bool:
        """Return whether the node checks or snapshots a resource that may be suspended."""
        work = self.work
        if self.node.operation not in (Operation.CHECK, Operation.SNAPSHOT):
            return False
        if work.action is None or work.status is None:
            return False
        return may_be_suspended(ResourceAction(work.action), Status(work.status))

    def _write_done_with_definition(self, reason: str) -> None:
        work, result, operation = self.work, self.result, self.node.operation
        definition = work.definition or {}
        self.physical_id = result.physical_id
        self.resource = self._row(
            reason,
            physical_id=result.physical_id,
            reference=result.reference,
            properties=result.properties,
            masked_properties=result.masked_properties,
            secret_attributes=result.secret_attributes,
            attributes=result.attributes,
            data=result.data,
            metadata=work.metadata_now or {},
            # Properties from an answer differ from the template: the next update includes them.
            digest=""
            if work.patched or result.renewed
            else definition.get("digest", work.digest or ""),
            tainted=False,
            deletion_policy=self._policy(),
            **self._lifecycle(),
        )
        if operation is Operation.REPLACE:
            self.resource |= {
                "write": "insert", "id": work.replacement_id, "replaces": work.resource_id,
            }  # fmt: skip
            self.nodes = decode_added_nodes(work)
        elif work.action is None:
            self._insert()

    def _insert(self) -> None:
        """Insert a row of its own, because the row it was planned for was deleted."""
        inserted = {"write": "insert", "id": self.work.replacement_id}
        self.resource = (self.resource or {}) | inserted

    def _policy(self) -> str:
        """Return the deletion policy of the definition applied last, as in Heat."""
        definition = self.work.definition or {}
        if "digest" not in definition:
            return self.work.deletion_policy or DeletionPolicy.DELETE
        return str(definition.get("deletion_policy", DeletionPolicy.DELETE))

    def _lifecycle(self) -> dict[str, Json]:
        """Return the column `lifecycle` of the definition that is applied now, if it changes."""
        work = self.work
        if work.lifecycle is None and work.lifecycle_now is None:
            return {}
        return {"lifecycle": work.lifecycle_now}

    def _write_failed(self, reason: str, tainted: bool) -> None:
        work, result, operation = self.work, self.result, self.node.operation
        replaces = creates_replacement(self.node)  # the original is unchanged
        self.action = CURRENT_ACTION_OF[operation]
        if operation is Operation.SNAPSHOT and self._stays_suspended():
            self.action = work.action
        self.status = Status.FAILED
        physical_id = result.physical_id if result.physical_id is not None else work.physical_id
        kept = dict(work.data or {}) | dict(result.data)
        self.resource = self._row(
            reason,
            **self._create_properties(),
            physical_id=work.physical_id if replaces else physical_id,
            data=work.data if replaces else kept,
            tainted=work.tainted if replaces else tainted or bool(work.tainted),
            type=work.row_type if replaces else work.type,
        )
        if work.action is None and work.replacement_id is not None:
            self._insert()
        # Data without a physical ID tells the delete what the create may have made.
        if replaces and (result.physical_id is not None or result.data):
            self.resource |= {
                "write": "leave", "id": work.replacement_id, "replaces": work.resource_id,
                "replaced_by": work.resource_id, "action": "CREATE", "tainted": True,
                "physical_id": result.physical_id, "data": result.data,
                "properties": result.properties, "masked_properties": result.masked_properties,
                "secret_attributes": [],
                "attributes": {}, "type": work.type,
                "deletion_policy": DeletionPolicy.DELETE,
            }  # fmt: skip

    def _create_properties(self) -> dict[str, Json]:
        """Return the properties of a failed create, which its cleanup needs."""
        begun = self.node.operation is Operation.CREATE and self.node.phase is Phase.EXECUTE
        if not begun or self.result.properties is None:
            return {}
        return {
            "properties": self.result.properties,
            "masked_properties": self.result.masked_properties,
        }

    def _write_unchanged(self) -> None:
        work, definition = self.work, self.work.definition or {}
        if work.direction == "cleanup":
            gone = not definition.get("only_if_replaced") or work.replaced_by is not None
            if gone and work.operation == Operation.DELETE:
                retained = self.work.deletion_policy == DeletionPolicy.RETAIN
                self._remove_unoperated(retained=retained or bool(definition.get("retained")))
        elif work.action is not None:
            healed = work.status == Status.FAILED
            if healed:
                self.action, self.status = "UPDATE", Status.COMPLETE
            reason = "the resource is up to date"
            self.resource = self._row(
                reason if healed else None,
                **self._secret_columns(),
                metadata=work.metadata_now or {},
                digest=definition.get("digest", ""),
                deletion_policy=self._policy(),
                **self._lifecycle(),
            )
            if healed:
                kind, data = "headgate.resource.update.completed", {"operation": "update"}
                self._event(kind, "UPDATE", Status.COMPLETE, reason, data)

    def _secret_columns(self) -> dict[str, Json]:
        """Return the columns about secrets of an unchanged resource, if its definition was read."""
        result = self.result
        if result.secret_attributes is None:
            return {}
        return {
            "masked_properties": result.masked_properties,
            "secret_attributes": result.secret_attributes,
        }

    def _remove_unoperated(self, *, retained: bool) -> None:
        """Delete a row without an operation; record it if earlier events named the resource."""
        self._write_removed()
        if self.work.action in (None, ResourceAction.INIT):
            return
        reason = "removed: no physical resource exists"
        data: dict[str, Json] = {"operation": "delete"}
        if retained and self.work.physical_id is not None:
            reason = "removed from the stack; the physical resource is retained"
            data["retained"] = True
        self._event("headgate.resource.delete.completed", "DELETE", "COMPLETE", reason, data)

    def _write_removed(self) -> None:
        if self.work.action is not None:
            self.resource = {
                "write": "remove", "id": self.work.resource_id, "replaced_by": self.work.replaced_by
            }  # fmt: skip

    def _row(self, reason: str | None, **changed: Json) -> dict[str, Json]:
        """Return the resource's row with these changes. reason: None keeps the current one."""
        work = self.work
        lifecycle = {} if work.lifecycle is None else {"lifecycle": work.lifecycle}
        return {
            "write": "update",
            "id": work.resource_id,
            "name": work.name,
            "type": work.type,
            "action": self.action,
            "status": self.status,
            "reason": reason,
            "physical_id": work.physical_id,
            "reference": work.reference,
            "properties": work.properties,
            "masked_properties": work.masked_properties,
            "secret_attributes": work.secret_attributes,
            "attributes": work.attributes or {},
            "data": work.data or {},
            "metadata": work.metadata or {},
            # An in-place action keeps the digest, which a newer change may have set.
            "digest": None if self.node.operation in IN_PLACE_OPERATIONS else work.digest or "",
            "tainted": bool(work.tainted),
            "rules": work.rules,
            "deletion_policy": work.deletion_policy or DeletionPolicy.DELETE,
            **lifecycle,
        } | changed

    def _record(self, kind: EventKind, reason: str, new_id: Callable[[], UUID]) -> None:
        operation = self.node.operation
        if kind is EventKind.STARTED and operation in CREATING:
            self.operation_key = self._current_key() or new_id()
        unnamed = kind is EventKind.COMPLETED or self.result.physical_id is not None
        if operation is Operation.DELETE:
            self.physical_id = self.work.physical_id  # of the deleted resource
            if kind is EventKind.COMPLETED:  # its row, which would have the reason, is removed
                reason = self.result.reason
        self._event(
            f"headgate.resource.{operation}.{kind}",
            ACTION_OF[operation],
            _STATUS_OF[kind],
            reason or "state changed",
            {"operation": operation}
            | ({} if unnamed else name_key(self.operation_key or self._current_key(), operation))
            | ({"attempt": self.result.attempts} if kind is EventKind.RETRYING else {}),
        )
        if operation is Operation.ADOPT and kind is EventKind.COMPLETED and self._is_external():
            self._record_check()

    def _current_key(self) -> UUID | None:
        """Return the key of the operation, unless the step turns it into another one."""
        return self.work.operation_key if self.work.operation == self.node.operation else None

    def _record_check(self) -> None:
        """Record the check that follows the adoption of an external resource, as in Heat. The
        adoption has read the resource."""
        data: dict[str, Json] = {"operation": Operation.CHECK}
        for kind in (EventKind.STARTED, EventKind.COMPLETED):
            self._event(
                f"headgate.resource.{Operation.CHECK}.{kind}",
                ACTION_OF[Operation.CHECK],
                _STATUS_OF[kind],
                "state changed",
                data,
            )

    def _open(
        self, rule: Rule, hook_id: UUID, default: timedelta, notification: NotificationData
    ) -> None:
        context = HookContext(
            self.work, self.node.operation, self.physical_id, notification, self.result.seen
        )
        self.hooks.append(hook_row(context, rule, hook_id, default))
        for kind, reason, data in hook_events(self.node.operation, rule, hook_id):
            self._event(kind, self.action or "INIT", self.status or "COMPLETE", reason, data)

    def _event(self, kind: str, action: str, status: str, reason: str, data: Json) -> None:
        self.events.append({
            "type": kind,
            "resource_name": self.work.name or None,
            "resource_type": self.work.type if self.work.name else None,
            "physical_id": self.physical_id,
            "action": action,
            "status": status,
            "reason": reason,
            "data": data | ({"replaced": True} if self.work.replaced_by is not None else {}),
        })  # fmt: skip


def name_key(operation_key: UUID | None, operation: str) -> dict[str, Json]:
    """Return what an event has before there is a physical ID: the name derives from this key."""
    if operation not in CREATING or operation_key is None:
        return {}
    return {"key": short_key(operation_key)}


def started_event(work: Work) -> Json:
    """Return the event of a node whose operation begins, as `claim_due` records it."""
    return {
        "type": f"headgate.resource.{work.operation}.started",
        "resource_name": work.name,
        "resource_type": work.type,
        "physical_id": None,
        "action": ACTION_OF[work.operation],
        "status": Status.IN_PROGRESS,
        "reason": "state changed",
        "data": {"operation": work.operation} | name_key(work.operation_key, work.operation),
    }


#: Columns of a resource or of its snapshot that may contain a secret.
_SECRET_COLUMNS = frozenset({"reference", "properties", "attributes", "data", "metadata"})


def write_step(
    work: Work,
    step: Step,
    result: Result,
    *,
    new_id: Callable[[], UUID],
    default_timeout: timedelta,
    notification: Callable[[], NotificationData],
    encrypt: bool = True,
) -> Json:
    """Return the document for `advance`. notification: called only if a hook opens. encrypt:
    encrypt the resource's values; False only if none of them is secret.
    """
    node = step.node
    encoder = TransitionEncoder(work, node, result)
    for effect in step.effects:
        encoder.apply(effect, new_id, default_timeout, notification)
    resource = _with_secret_digests(work, encoder.resource)
    return {
        "stack_id": work.key.stack_id,
        "traversal": work.key.traversal,
        "node": work.key.node,
        "claim": work.key.claim,
        "state": node.state,
        "phase": node.phase,
        "operation": node.operation,
        "operation_key": encoder.operation_key,
        "breakpoints_hit": node.breakpoints_hit,
        "wake_at": encoder.wake_at,
        "progress": _progress(work, result.progress, encrypt),
        "attempts": result.attempts,
        "reason": node.reason,
        "step_mode": work.step_mode,
        "confirmation": encoder.confirmation,
        "signal_resource_id": result.signal_resource_id,
        "resource": _with_secrets(work, "resource", resource) if encrypt else resource,
        "snapshot": _with_secrets(work, "resource_snapshot", encoder.snapshot)
        if encrypt
        else encoder.snapshot,
        "hook": encoder.hooks or None,
        "events": encoder.events,
        "nodes": encoder.nodes,
    }


def _progress(work: Work, progress: Json, encrypt: bool) -> Json:
    return Secret(progress, _scope(work, "node.progress")) if encrypt and progress else progress


def _with_secrets(work: Work, table: str, row: Mapping[str, Json] | None) -> Json:
    if row is None:
        return None
    return {name: Secret(value, _scope(work, f"{table}.{name}"))
            if value and name in _SECRET_COLUMNS else value
            for name, value in row.items()}  # fmt: skip


def _with_secret_digests(work: Work, row: Mapping[str, Json] | None) -> Json:
    """Encrypt the digests of `replace_when`: one of a short secret could be guessed."""
    lifecycle = row and row.get("lifecycle")
    if not row or not lifecycle or "replace_when" not in lifecycle:
        return row
    digests = Secret(lifecycle["replace_when"], _scope(work, "resource.lifecycle"))
    return {**row, "lifecycle": lifecycle | {"replace_when": digests}}


def _scope(work: Work, column: str) -> Scope:
    return Scope(work.project, work.key.stack_id, column)
