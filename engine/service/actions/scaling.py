"""Scaling: a signal to a policy changes the size of a group by a traversal of its stack.

The traversal has the stack's current template version as its target, and its plan has nodes for the
group and for the resources that read it. Events, hooks, failure and rollback are those of an
update.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.errors import NotFound
from engine.plan.draft import Options
from engine.principal import Principal
from engine.service.requests.change import DesiredState, read_current_state
from engine.service.requests.requests import StackRequest
from engine.service.traversals.start import UNDER_WAY, Traversals
from engine.store import scaling
from engine.store.connection import Connection
from engine.store.resource_signals import Target
from engine.store.scaling import GroupRecord
from engine.store.stack_queries import read_template
from engine.store.stack_rows import Locked
from engine.types.group_size import GroupSize, SizeAdjustment, decide_size
from engine.types.groups.scaling_group import ScalingGroup, cooldown_end
from engine.words import Action, Json, ResourceAction, Status, TraversalState


@dataclass(frozen=True, slots=True)
class Requester:
    """Sender of a signal. credential: the cloud credential to use; "" for none."""

    by: Principal
    credential: str = field(default="", repr=False)


class Scaling:
    def __init__(self, traversals: Traversals) -> None:
        self._traversals = traversals

    async def adjust(
        self, conn: Connection, locked: Locked, policy: Target, requester: Requester
    ) -> str | None:
        """Scale the group of a policy. Returns the reason for the event, or None if the resource is
        no scaling policy. The caller has locked the stack. Raises NotFound if the group does not
        exist.
        """
        type_ = self._traversals.registry.get(policy.type)
        properties = await scaling.policy_of(conn, locked.id, policy.id)
        adjust = type_.adjust(properties) if properties else None
        if adjust is None:
            return None
        group = await scaling.group_of(conn, locked.id, adjust.group)
        kind = self._traversals.registry.get(group.type) if group is not None else None
        if group is None or not isinstance(kind, ScalingGroup):
            raise NotFound(
                f'could not find scaling group named "{adjust.group}"',
                remedy="Give auto_scaling_group_id with get_resource.",
                code="EntityNotFound",
            )
        size = decide_size(adjust, _adjustable(kind, group, locked), group.now)
        if isinstance(size, str):
            return f"{group.name} was not scaled: {size}"
        await self._start(conn, locked, group.name, _adjusted(adjust, size), requester)
        return f"{group.name} is scaled from {group.size} to {size} ({adjust.words})"

    async def _start(
        self,
        conn: Connection,
        locked: Locked,
        name: str,
        adjusted: Mapping[str, Json],
        requester: Requester,
    ) -> None:
        stored = await read_template(conn, locked.id, locked.version)
        blueprint = await self._traversals.build(
            StackRequest(existing=True, requested_by=requester.by),
            stored,
            project=locked.project,
            stack_id=locked.id,
            name=locked.name,
        )
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
            options=Options(adjusted={name: adjusted}),
        )
        await self._traversals.start_update(conn, desired)


def _adjusted(adjust: SizeAdjustment, size: int) -> dict[str, Json]:
    """The value of `Call.adjusted`."""
    return {"size": size, "cooldown": adjust.cooldown, "by": adjust.words}


def _adjustable(kind: ScalingGroup, group: GroupRecord, locked: Locked) -> GroupSize:
    least, most = kind.bounds(group.properties or {})
    return GroupSize(
        _blocked_reason(group, locked), group.size, least, most, cooldown_end(group.data or {})
    )


def _blocked_reason(group: GroupRecord, locked: Locked) -> str:
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
