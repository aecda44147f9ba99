"""Effects of the machine, in their order, as the parts of one document for the store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never
from uuid import UUID

from engine.hooks.rule import Rule
from engine.node.effects import (
    Call,
    Effect,
    Moment,
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
    """What the operation made of the resource; for a failure what it may have left behind.

    shown: the properties for people's eyes, or None when nothing in them is secret.
    reason: what the type says of it. attempts: how often it failed and is tried again.
    seen: what there is to look at before its operation goes on. awaits: the resource whose signals
    it waits for. renewed: the next update looks at it, though nothing differs. secret: names of
    what is secret of it (engine/hot/expressions/member_attributes.py).
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


class Writer:
    """Turns effects, in their order, into the parts of one document."""

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
                pass  # carried out by the worker, once this step is durable
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
            case Record(moment=moment, reason=reason):
                self._record(moment, reason)
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
            self._visited(reason)
        else:
            self._written(reason)

    def _visited(self, reason: str) -> None:
        """The definition had no part in it: it stays as it was applied."""
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

    def _written(self, reason: str) -> None:
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
            # What an answer changed is not as the template says: the next update looks at it.
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
        """The row it was planned for has gone: what it made has one of its own."""
        inserted = {"write": "insert", "id": self.work.replacement_id}
        self.resource = (self.resource or {}) | inserted

    def _policy(self) -> str:
        """What becomes of the real thing is decided by the definition applied last, as in Heat."""
        definition = self.work.definition or {}
        if "digest" not in definition:
            return self.work.deletion_policy or DeletionPolicy.DELETE
        return str(definition.get("deletion_policy", DeletionPolicy.DELETE))

    def _failed(self, reason: str, broken: bool) -> None:
        work, result, operation = self.work, self.result, self.node.operation
        # Behind its points, what there was is as it was: what was to take its place has failed.
        replaces = operation is Operation.REPLACE and self.node.phase in (Phase.ACT, Phase.CONFIRM)
        self.action = "UPDATE" if operation is Operation.REPLACE else ACTION_OF[operation]
        self.status = Status.FAILED
        made = result.physical_id if result.physical_id is not None else work.physical_id
        kept = dict(work.data or {}) | dict(result.data)
        self.resource = self._row(
            reason,
            **self._begun_with(),
            physical_id=work.physical_id if replaces else made,
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

    def _begun_with(self) -> dict[str, Json]:
        """What a create was begun with: whoever clears away what it left needs to know."""
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
                self._let_go(retained=retained or bool(definition.get("retained")))
        elif work.action is not None:
            healed = work.status == Status.FAILED
            if healed:
                self.action, self.status = "UPDATE", Status.COMPLETE
            reason = "it is as it should be"
            self.resource = self._row(
                reason if healed else None,
                **self._hidden_now(),
                metadata=work.metadata_now or {},
                digest=definition.get("digest", ""),
                deletion_policy=self._policy(),
            )
            if healed:
                kind, told = "headgate.resource.update.completed", {"operation": "update"}
                self._event(kind, "UPDATE", Status.COMPLETE, reason, told)

    def _hidden_now(self) -> dict[str, Json]:
        """What is secret of a resource that stays as it is, where its definition was read."""
        result = self.result
        if result.secret is None:
            return {}
        return {"shown": result.shown, "secret": result.secret}

    def _let_go(self, *, retained: bool) -> None:
        """Whatever was told of before is told to have gone."""
        self._removed()
        if self.work.action in (None, ResourceAction.INIT):
            return
        reason = "it goes: nothing was made of it"
        told: dict[str, Json] = {"operation": "delete"}
        if retained and self.work.physical_id is not None:
            reason = "left as it is: the resource goes, the real thing is retained"
            told["retained"] = True
        self._event("headgate.resource.delete.completed", "DELETE", "COMPLETE", reason, told)

    def _removed(self) -> None:
        if self.work.action is not None:
            self.resource = {
                "write": "remove", "id": self.work.resource_id, "replaced_by": self.work.replaced_by
            }  # fmt: skip

    def _row(self, reason: str | None, **changed: Json) -> dict[str, Json]:
        """The resource's row as it is, with what changed; only what differs need be named.

        reason: None: what it was.
        """
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
            # An action in place leaves the definition alone, and with it a newer change's mark.
            "digest": None if self.node.operation in VISITS else work.digest or "",
            "broken": bool(work.broken),
            "rules": work.rules,
            "deletion_policy": work.deletion_policy or DeletionPolicy.DELETE,
        } | changed

    def _record(self, moment: Moment, reason: str) -> None:
        operation = self.node.operation
        status = {
            Moment.STARTED: Status.IN_PROGRESS,
            Moment.COMPLETED: Status.COMPLETE,
            Moment.FAILED: Status.FAILED,
            Moment.RETRYING: Status.IN_PROGRESS,
        }[moment]
        if operation is Operation.DELETE:
            self.physical_id = self.work.physical_id  # of what has gone
        self._event(
            f"headgate.resource.{operation}.{moment}",
            ACTION_OF[operation],
            status,
            reason or "state changed",
            {"operation": operation}
            | ({"attempt": self.result.attempts} if moment is Moment.RETRYING else {}),
        )

    def _open(self, rule: Rule, hook_id: UUID, default: timedelta, notice: Notice) -> None:
        told = HookContext(
            self.work, self.node.operation, self.physical_id, notice, self.result.seen
        )
        self.hooks.append(hook_row(told, rule, hook_id, default))
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
