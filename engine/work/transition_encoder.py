"""Encodes the effects of a step as the parts of one document for the store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never
from uuid import UUID

from engine.hooks.rule import Rule
from engine.node.effects import (
    Call,
    Effect,
    EventKind,
    NotifyType,
    OpenHook,
    Record,
    Remove,
    WakeAt,
    WriteDone,
    WriteFailed,
    WriteUnchanged,
)
from engine.node.node import Node
from engine.store.advance import Work
from engine.words import (
    GATES,
    VISITS,
    DeletionPolicy,
    Json,
    Operation,
    Phase,
    ResourceAction,
    Status,
)
from engine.work.hook_opening import ACTION_OF, HookContext, Notice, hook_events, hook_row


@dataclass(slots=True)
class Result:
    """The resource after an operation; after a failure, what the operation may have created.

    shown: the properties with secrets masked, or None if none is secret. reason: from the type.
    attempts: failed attempts so far. seen: the preview for a confirmation. awaits: the resource
    whose signals it waits for. renewed: the next update includes it even if nothing differs.
    secret: names of its secret values (engine/hot/expressions/member_attributes.py).
    """

    properties: Mapping[str, Json] | None = None
    shown: Mapping[str, Json] | None = None
    secret: Sequence[str] | None = None
    physical_id: str | None = None
    reference: str | None = None
    attributes: Mapping[str, Json] = field(default_factory=dict)
    data: Mapping[str, Json] = field(default_factory=dict)
    progress: Json = None
    reason: str = ""
    attempts: int = 0
    seen: Mapping[str, Json] = field(default_factory=dict)
    awaits: UUID | None = None
    renewed: bool = False


class TransitionEncoder:
    """Applies effects in order; its attributes are the parts of the document."""

    def __init__(self, work: Work, node: Node, result: Result) -> None:
        self.work = work
        self.node = node
        self.result = result
        self.resource: dict[str, Json] | None = None
        self.kept: dict[str, Json] | None = None
        self.hooks: list[Json] = []
        self.events: list[Json] = []
        self.wake_at: Json = None
        self.confirmed: Json = None
        self.action = work.action
        self.status = work.status
        if work.operation in GATES:
            self.action, self.status = (work.definition or {})["action"], Status.IN_PROGRESS
        self.physical_id = work.physical_id

    def apply(
        self,
        effect: Effect,
        new_id: Callable[[], UUID],
        default_timeout: timedelta,
        notice: Callable[[], Notice],
    ) -> None:
        match effect:
            case Call():
                pass  # the worker calls it once this step is durable
            case WakeAt(until=until):
                self.wake_at = until
            case WriteDone():
                self._done()
            case WriteUnchanged():
                self._unchanged()
            case WriteFailed(reason=reason, broken=broken):
                self._failed(reason, broken)
            case Remove():
                self._removed()
            case Record(kind=kind, reason=reason):
                self._record(kind, reason)
            case NotifyType():
                self.confirmed = effect.as_json()
            case OpenHook(rule=rule):
                self._open(rule, new_id(), default_timeout, notice())
            case _ as never:
                assert_never(never)

    def _done(self) -> None:
        self.action, self.status = ACTION_OF[self.node.operation], Status.COMPLETE
        reason = self.result.reason or "state changed"
        if self.node.operation in VISITS:
            self._done_in_place(reason)
        else:
            self._done_with_definition(reason)

    def _done_in_place(self, reason: str) -> None:
        """An in-place action keeps the definition that was applied last."""
        work, result = self.work, self.result
        if self.node.operation is Operation.SNAPSHOT:
            self.resource = self._row(reason)
            self.kept = {
                "id": work.resource_id, "name": work.name, "type": work.type,
                "physical_id": work.physical_id, "properties": work.properties,
                "metadata": work.metadata or {}, "data": result.data,
            }  # fmt: skip
            return
        healed = {"broken": False} if self.node.operation is Operation.CHECK else {}
        self.resource = self._row(
            reason,
            attributes=result.attributes,
            secret=result.secret,
            data=result.data,
            **healed,
        )

    def _done_with_definition(self, reason: str) -> None:
        work, result, operation = self.work, self.result, self.node.operation
        definition = work.definition or {}
        self.physical_id = result.physical_id
        self.resource = self._row(
            reason,
            physical_id=result.physical_id,
            reference=result.reference,
            properties=result.properties,
            shown=result.shown,
            secret=result.secret,
            attributes=result.attributes,
            data=result.data,
            metadata=work.metadata_now or {},
            # Properties from an answer differ from the template: the next update includes them.
            digest=""
            if work.patched or result.renewed
            else definition.get("digest", work.digest or ""),
            broken=False,
            deletion_policy=self._policy(),
        )
        if operation is Operation.REPLACE:
            self.resource |= {
                "write": "insert", "id": work.replacement_id, "replaces": work.resource_id,
            }  # fmt: skip
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

    def _failed(self, reason: str, broken: bool) -> None:
        work, result, operation = self.work, self.result, self.node.operation
        # In these phases the replacement has failed, and the original is unchanged.
        replaces = operation is Operation.REPLACE and self.node.phase in (Phase.ACT, Phase.CONFIRM)
        self.action = "UPDATE" if operation is Operation.REPLACE else ACTION_OF[operation]
        self.status = Status.FAILED
        physical_id = result.physical_id if result.physical_id is not None else work.physical_id
        kept = dict(work.data or {}) | dict(result.data)
        self.resource = self._row(
            reason,
            **self._create_properties(),
            physical_id=work.physical_id if replaces else physical_id,
            data=work.data if replaces else kept,
            broken=work.broken if replaces else broken or bool(work.broken),
            type=work.row_type if replaces else work.type,
        )
        if work.action is None and work.replacement_id is not None:
            self._insert()
        if replaces and result.physical_id is not None:
            self.resource |= {
                "write": "leave", "id": work.replacement_id, "replaces": work.resource_id,
                "replaced_by": work.resource_id, "action": "CREATE", "broken": True,
                "physical_id": result.physical_id, "data": result.data,
                "properties": result.properties, "shown": result.shown, "secret": [],
                "attributes": {}, "type": work.type,
                "deletion_policy": DeletionPolicy.DELETE,
            }  # fmt: skip

    def _create_properties(self) -> dict[str, Json]:
        """Return the properties of a failed create, which its cleanup needs."""
        begun = self.node.operation is Operation.CREATE and self.node.phase is Phase.ACT
        if not begun or self.result.properties is None:
            return {}
        return {"properties": self.result.properties, "shown": self.result.shown}

    def _unchanged(self) -> None:
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
            )
            if healed:
                kind, data = "headgate.resource.update.completed", {"operation": "update"}
                self._event(kind, "UPDATE", Status.COMPLETE, reason, data)

    def _secret_columns(self) -> dict[str, Json]:
        """Return what is secret of an unchanged resource, if its definition was read."""
        result = self.result
        if result.secret is None:
            return {}
        return {"shown": result.shown, "secret": result.secret}

    def _remove_unoperated(self, *, retained: bool) -> None:
        """Delete a row without an operation; record it if earlier events named the resource."""
        self._removed()
        if self.work.action in (None, ResourceAction.INIT):
            return
        reason = "removed: no physical resource exists"
        data: dict[str, Json] = {"operation": "delete"}
        if retained and self.work.physical_id is not None:
            reason = "removed from the stack; the physical resource is retained"
            data["retained"] = True
        self._event("headgate.resource.delete.completed", "DELETE", "COMPLETE", reason, data)

    def _removed(self) -> None:
        if self.work.action is not None:
            self.resource = {
                "write": "remove", "id": self.work.resource_id, "replaced_by": self.work.replaced_by
            }  # fmt: skip

    def _row(self, reason: str | None, **changed: Json) -> dict[str, Json]:
        """Return the resource's row with the given changes. reason: None keeps the current one."""
        work = self.work
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
            "shown": work.shown,
            "secret": work.secret,
            "attributes": work.attributes or {},
            "data": work.data or {},
            "metadata": work.metadata or {},
            # An in-place action keeps the digest, which a newer change may have set.
            "digest": None if self.node.operation in VISITS else work.digest or "",
            "broken": bool(work.broken),
            "rules": work.rules,
            "deletion_policy": work.deletion_policy or DeletionPolicy.DELETE,
        } | changed

    def _record(self, kind: EventKind, reason: str) -> None:
        operation = self.node.operation
        status = {
            EventKind.STARTED: Status.IN_PROGRESS,
            EventKind.COMPLETED: Status.COMPLETE,
            EventKind.FAILED: Status.FAILED,
            EventKind.RETRYING: Status.IN_PROGRESS,
        }[kind]
        if operation is Operation.DELETE:
            self.physical_id = self.work.physical_id  # of the deleted resource
        self._event(
            f"headgate.resource.{operation}.{kind}",
            ACTION_OF[operation],
            status,
            reason or "state changed",
            {"operation": operation}
            | ({"attempt": self.result.attempts} if kind is EventKind.RETRYING else {}),
        )

    def _open(self, rule: Rule, hook_id: UUID, default: timedelta, notice: Notice) -> None:
        context = HookContext(
            self.work, self.node.operation, self.physical_id, notice, self.result.seen
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
