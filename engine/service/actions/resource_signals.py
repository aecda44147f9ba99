"""Signals: data sent to a resource (a wait condition, a scaling policy). Answers are in hooks/.

A signal to a scaling policy changes the size of a group by a traversal of its stack. The traversal
has the stack's current template version as its target, and its plan has nodes for the group and for
the resources that read it. Events, hooks, failure and rollback are those of an update.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from engine.errors import Finding, Invalid, LimitReached, NotFound
from engine.plan.draft import Options
from engine.plan.graph import downstream
from engine.principal import Principal
from engine.service.requests.blueprint import NestedPlace
from engine.service.requests.desired_state import DesiredState, read_current_state
from engine.service.requests.requests import StackRequest
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks.locked_hooks import record_events
from engine.store.resources import scaling
from engine.store.resources.resource_signals import SignalTarget, find_target, insert_signal
from engine.store.resources.scaling import GroupRecord
from engine.store.stacks.stack_locks import LockedStack
from engine.store.stacks.templates import read_requesters, read_template
from engine.store.traversals.nested_stacks import read_parent_rules
from engine.types.group_size import GroupSize, SizeAdjustment, decide_size
from engine.types.groups.scaling_group import ScalingGroup, cooldown_end
from engine.words import UNDER_WAY, Action, Json, ResourceAction, Status, TraversalState


@dataclass(frozen=True, slots=True)
class Requester:
    """Sender of a signal. credential: the cloud credential to use; "" for none."""

    by: Principal
    credential: str = field(default="", repr=False)


class Scaling:
    def __init__(self, traversals: Traversals) -> None:
        self._traversals = traversals

    async def adjust(
        self, conn: Connection, locked: LockedStack, policy: SignalTarget, requester: Requester
    ) -> str | None:
        """Scale the group of a policy. Returns the reason for the event, or None if the resource is
        no scaling policy. The caller has locked the stack. Raises NotFound if the group does not
        exist.
        """
        type_ = self._traversals.registry.get(policy.type)
        properties = await scaling.read_properties(conn, locked.id, policy.id)
        adjust = type_.adjust(properties) if properties else None
        if adjust is None:
            return None
        group = await scaling.find_group(conn, locked.id, adjust.group)
        kind = self._traversals.registry.get(group.type) if group is not None else None
        if group is None or not isinstance(kind, ScalingGroup):
            raise NotFound(
                f'could not find scaling group named "{adjust.group}"',
                place="auto_scaling_group_id",
                remedy="Give auto_scaling_group_id with get_resource.",
                code="EntityNotFound",
            )
        size = decide_size(adjust, _adjustable(kind, group, locked), group.now)
        if isinstance(size, str):
            return f"{group.name} was not scaled: {size}"
        await self._start(conn, locked, group.name, _adjustment_document(adjust, size), requester)
        return f"{group.name} is scaled from {group.size} to {size} ({adjust.description})"

    async def _start(
        self,
        conn: Connection,
        locked: LockedStack,
        name: str,
        adjusted: Mapping[str, Json],
        requester: Requester,
    ) -> None:
        stored = await read_template(conn, locked.id, locked.version)
        request = StackRequest(existing=True, requested_by=requester.by)
        nested = None
        if locked.path:
            nested = NestedPlace(locked.path_names, await read_parent_rules(conn, locked.id))
        blueprint = await self._traversals.blueprints.build_for(
            locked, request, stored, nested, conn=conn, known=stored.read_outputs()
        )
        wanted = blueprint.definition.resources
        selected = downstream({each: one.reads for each, one in wanted.items()}, [name])
        desired = DesiredState(
            stack_id=locked.id,
            action=Action.UPDATE,
            number=locked.traversal + 1,
            version=locked.version,
            blueprint=blueprint,
            current=await read_current_state(conn, locked.id, blueprint, [name]),
            requested_by=requester.by,
            credential=requester.credential,
            stored=True,
            options=Options(chosen=selected.__contains__, adjusted={name: adjusted}),
            excluded=await read_requesters(conn, locked.id, locked.version, scales=True),
        )
        await self._traversals.start_update(conn, desired)


def _adjustment_document(adjust: SizeAdjustment, size: int) -> dict[str, Json]:
    """The value of `Call.adjusted`."""
    return {"size": size, "cooldown": adjust.cooldown, "by": adjust.description}


def _adjustable(kind: ScalingGroup, group: GroupRecord, locked: LockedStack) -> GroupSize:
    min_size, max_size = kind.bounds(group.properties or {})
    return GroupSize(
        _blocked_reason(group, locked),
        group.size,
        min_size,
        max_size,
        cooldown_end(group.data or {}),
    )


def _blocked_reason(group: GroupRecord, locked: LockedStack) -> str:
    """Why the group cannot be scaled now; "" if it can."""
    if locked.state in UNDER_WAY:
        return f"{locked.action} of its stack is in progress"
    if locked.action in (Action.SUSPEND, Action.DELETE):
        return f"signals during {locked.action} are not supported"
    if locked.state != TraversalState.COMPLETE:
        return f"its stack is {locked.action}_{locked.state.upper()}"
    if group.status != Status.COMPLETE or group.action == ResourceAction.INIT:
        return f"it is {group.action}_{group.status}"
    return ""


class ResourceSignals:
    def __init__(
        self, database: Database, traversals: Traversals, wake: Callable[[], None]
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._scaling = Scaling(traversals)
        self._wake = wake

    async def send(
        self,
        project: str | None,
        stack_id: UUID,
        to: str | UUID,
        data: Json,
        by: Principal,
        *,
        credential: str = "",
    ) -> None:
        """Store the data for a resource, also before its operation has begun. A signal to a scaling
        policy scales its group instead.

        project: None if the resource's own token authenticated the request. to: the resource's name
        or its id. credential: the cloud credential that the scaling uses.
        Raises NotFound; Invalid if the type rejects the data, with the code
        ResourceActionNotSupported if it takes no signals; LimitReached.
        """
        limits = self._traversals.limits
        size = len(orjson.dumps(data))
        if size > limits.signal_bytes:
            raise LimitReached(
                f"the data has {size} bytes",
                remedy=f"The limit is {limits.signal_bytes}; the operator sets it in [quotas].",
                code="RequestLimitExceeded",
            )
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            found = await find_target(conn, stack_id, to)
            if found is None:
                raise NotFound(
                    f"The Resource ({to}) could not be found.",
                    place="resource",
                    remedy="GET .../resources lists the resources of the stack.",
                    code="EntityNotFound",
                )
            signal = self._validate_signal(found, data)
            scaled = await self._scaling.adjust(conn, locked, found, Requester(by, credential))
            if scaled is None:
                await insert_signal(conn, stack_id, found, signal, by.name)
            await record_events(conn, [_event(stack_id, found, scaled or f"{by} sent it a signal")])
        self._wake()

    def _validate_signal(self, found: SignalTarget, data: Json) -> Json:
        type_ = self._traversals.registry.get(found.type)
        if not type_.schema.signals:
            reason = "signal is not supported for resource."
            remedy = 'To answer a waiting hook, send its point: {"unset_hook": "pre-create"}.'
            raise Invalid([Finding("", reason, remedy, "ResourceActionNotSupported")])
        max_size = self._traversals.limits.signals
        if found.stored >= max_size:
            raise LimitReached(
                f'"{found.name}" already has {found.stored} signals',
                remedy=f"The limit is {max_size}; the operator sets it in [quotas].",
                code="RequestLimitExceeded",
            )
        return type_.accept_signal(data, found.stored + 1)


def _event(stack_id: UUID, found: SignalTarget, reason: str) -> Json:
    return {
        "stack_id": stack_id,
        "type": "headgate.resource.signal.completed",
        "resource_name": found.name,
        "resource_type": found.type,
        "physical_id": found.physical_id,
        "action": found.action,
        "status": found.status,
        "reason": reason,
        "data": {"operation": "signal"},
    }
