"""A group gets another size: a traversal of its stack, as any other change is.

It goes toward the version that the stack has, and plans the group and what reads it. Events, hooks,
failure and rollback are those of an update.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.errors import NotFound
from engine.plan.draft import Options
from engine.service.goals import Goal, find
from engine.service.requests import StackRequest
from engine.service.traversals import UNDER_WAY, Traversals
from engine.store import scaling
from engine.store.accept import Locked
from engine.store.connection import Connection
from engine.store.read import read_template
from engine.store.scaling import GroupRecord
from engine.store.signals import Target
from engine.types.capacity import Adjust, Adjustable, judge
from engine.types.groups.scaled import Scaled, cooldown_end
from engine.words import Action, Json, ResourceAction, Status, TraversalState


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks. credential: what they act with in the cloud; "" for nothing."""

    name: str
    credential: str = field(default="", repr=False)


class Scaling:
    def __init__(self, traversals: Traversals) -> None:
        self._traversals = traversals

    async def adjust(
        self, conn: Connection, locked: Locked, policy: Target, asker: Asker
    ) -> str | None:
        """What a signal to a resource does to the group that this adjusts, in words; None: it is
        no such resource. The stack is locked. Raises NotFound when there is no such group."""
        type_ = self._traversals.registry.get(policy.type)
        properties = await scaling.policy_of(conn, locked.id, policy.id)
        adjust = type_.adjust(properties) if properties else None
        if adjust is None:
            return None
        group = await scaling.group_of(conn, locked.id, adjust.group)
        kind = self._traversals.registry.get(group.type) if group is not None else None
        if group is None or not isinstance(kind, Scaled):
            raise NotFound(
                f'could not find scaling group named "{adjust.group}"',
                remedy="Give auto_scaling_group_id with get_resource.",
                code="EntityNotFound",
            )
        size = judge(adjust, _adjustable(kind, group, locked), group.now)
        if isinstance(size, str):
            return f"{group.name} was not scaled: {size}"
        await self._begin(conn, locked, group.name, _asked(adjust, size), asker)
        return f"{group.name} is scaled from {group.size} to {size} ({adjust.words})"

    async def _begin(
        self, conn: Connection, locked: Locked, name: str, asked: Mapping[str, Json], asker: Asker
    ) -> None:
        stored = await read_template(conn, locked.id, locked.version)
        blueprint = await self._traversals.build(
            StackRequest(existing=True, requested_by=asker.name),
            stored,
            project=locked.project,
            stack_id=locked.id,
            name=locked.name,
        )
        goal = Goal(
            stack_id=locked.id,
            action=Action.UPDATE,
            number=locked.traversal + 1,
            version=locked.version,
            blueprint=blueprint,
            found=await find(conn, locked.id, blueprint, [name]),
            requested_by=asker.name,
            credential=asker.credential,
            stored=True,
            options=Options(adjusted={name: asked}),
        )
        await self._traversals.toward(conn, goal)


def _asked(adjust: Adjust, size: int) -> dict[str, Json]:
    """As `Call.adjusted` has it."""
    return {"size": size, "cooldown": adjust.cooldown, "by": adjust.words}


def _adjustable(kind: Scaled, group: GroupRecord, locked: Locked) -> Adjustable:
    least, most = kind.bounds(group.properties or {})
    return Adjustable(_busy(group, locked), group.size, least, most, cooldown_end(group.data or {}))


def _busy(group: GroupRecord, locked: Locked) -> str:
    if locked.state in UNDER_WAY:
        return f"{locked.action} of its stack is in progress"
    if locked.action in (Action.SUSPEND, Action.DELETE):
        return f"signals during {locked.action} are not supported"
    if locked.state != TraversalState.COMPLETE:
        return f"its stack is {locked.action}_{locked.state.upper()}"
    if group.status != Status.COMPLETE or group.action == ResourceAction.INIT:
        return f"it is {group.action}_{group.status}"
    return ""
