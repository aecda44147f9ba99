"""Repairs of drift that a convergence policy or an answer to a drift hook starts: updates of the
drifted resources and of those that depend on them, with the credential that the owner of the
project has handed over for repairs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from engine.errors import Conflict, HeadgateError, LimitReached, NotFound, Unavailable
from engine.hot.definition.stack import StackDefinition
from engine.plan.convergence import ConvergencePolicy
from engine.plan.drift import REPAIRED_AS
from engine.plan.graph import downstream
from engine.principal import Principal
from engine.service.repair_credentials import RepairCredentials
from engine.service.requests.quotas import REPAIRS, Quotas
from engine.service.requests.requests import StackRequest
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks.drift_hooks import ApprovedRepair, mark_approved
from engine.store.observer import converge_requests, drift_rows
from engine.store.observer.drift_rows import RepairableStack
from engine.store.observer.observation_schedule import read_section
from engine.store.stacks.stack_locks import LockedStack, lock_stack, lock_stacks
from engine.words import UNDER_WAY, Action, Json, TraversalState
from engine.work.observer.drift_hooks import OBSERVER

#: After these actions, a complete stack is as its template says. A suspended one is not repaired.
REPAIRABLE_ACTIONS = frozenset({*Action} - {Action.DELETE, Action.SUSPEND})
#: Characters of a reason.
MAX_REASON = 1_000


class RepairNotNeeded(Exception):
    """The stack is failed or suspended, or its drift is gone. Nothing is recorded."""


class ChangeUnderWay(RepairNotNeeded):
    """The repair can start when the change has ended."""


@dataclass(frozen=True, slots=True)
class RepairUpdate:
    """names: of resources of the stack with drift, or with nested stacks that have it. resources:
    with drift, also in nested stacks. limit: maximum number of repairs within a day; None: answers
    to `hooks` have approved this one. tolerate: how long the drift must last. section: the policy
    of the stack that asks for this one."""

    names: Sequence[str]
    resources: Sequence[UUID]
    limit: int | None = None
    tolerate: timedelta = timedelta(0)
    hooks: Sequence[UUID] = ()
    section: Json = None

    def make_filter(self, definition: StackDefinition) -> Callable[[str], bool]:
        """Whether the update may change a resource: those with drift, and dependent ones."""
        requires = {name: one.requires for name, one in definition.resources.items()}
        return downstream(requires, self.names).__contains__

    async def mark(self, conn: Connection, stack_id: UUID) -> int:
        """Make the update of this transaction repair the resources whose drift is still the one to
        repair; return their number. The caller has locked the stack and its nested stacks."""
        if self.limit is None:
            return await mark_approved(conn, stack_id, REPAIRED_AS, self.resources, self.hooks)
        return await drift_rows.mark_reported(
            conn, stack_id, REPAIRED_AS, self.resources, self.tolerate
        )


async def check_repair(conn: Connection, locked: LockedStack, repair: RepairUpdate) -> None:
    """Raises RepairNotNeeded; ChangeUnderWay, also while a converge with several rounds has not
    ended; LimitReached, Conflict."""
    if locked.state in UNDER_WAY or await converge_requests.is_pending(conn, locked.id):
        raise ChangeUnderWay
    if repair.limit is None and locked.state in (TraversalState.FAILED, TraversalState.STOPPED):
        raise Conflict(
            f"the last action of the stack, {locked.action}, is not complete",
            place="stack",
            remedy="Update the stack. An approved repair starts after the next observation.",
            code="ActionInProgress",
        )
    if locked.state != TraversalState.COMPLETE or locked.action not in REPAIRABLE_ACTIONS:
        raise RepairNotNeeded
    if repair.limit is None:
        return
    if await read_section(conn, locked.id) != repair.section:
        raise RepairNotNeeded  # the stack was updated since; the next observation judges anew
    count = await drift_rows.count_repairs(conn, locked.id, OBSERVER)
    if count >= repair.limit:
        raise LimitReached(
            f"the stack was repaired {repair.limit} times within a day, which is the limit",
            remedy="Find out what changes it, or raise repairs_per_day of its convergence policy.",
        )


class Update(Protocol):
    """`Stacks.update`."""

    def __call__(
        self, project: str, stack_id: UUID, request: StackRequest, *, repair: RepairUpdate
    ) -> Awaitable[None]: ...


class Repairs:
    def __init__(
        self,
        database: Database,
        update: Update,
        quotas: Callable[[str], Quotas],
        credentials: RepairCredentials,
    ) -> None:
        """quotas: of a project."""
        self._database = database
        self._credentials = credentials
        self._update = update
        self._quotas = quotas

    async def start(
        self, project: str, repairable: RepairableStack, policy: ConvergencePolicy, section: Json
    ) -> bool:
        """Repair the drift of a root stack. section: of its template and environment, from which
        the policy was made; if it has changed since, nothing starts. If the repair is refused,
        events say why. Returns whether a change is under way, so that no repair can start now.
        Raises Unavailable."""
        repair = RepairUpdate(
            repairable.names, repairable.resources, policy.repairs, policy.tolerate, section=section
        )
        return await self._start(project, repairable.root_id, repair, OBSERVER)

    async def start_approved(self, project: str, stack_id: UUID, approved: ApprovedRepair) -> bool:
        """As `start`, for the drift whose repair answers to drift hooks have approved."""
        repair = RepairUpdate(approved.names, approved.resources, hooks=approved.hooks)
        return await self._start(project, stack_id, repair, approved.by)

    async def _start(
        self, project: str, stack_id: UUID, repair: RepairUpdate, by: Principal
    ) -> bool:
        try:
            await self._check(project, stack_id, repair)
            credential = await self._credentials.find(project, stack_id, repair.names)
            request = StackRequest(
                existing=True, converge=True, requested_by=by, credential=credential
            )
            await self._update(project, stack_id, request, repair=repair)
        except ChangeUnderWay:
            return True
        except (RepairNotNeeded, NotFound):
            pass
        except Unavailable:
            raise
        except HeadgateError as error:
            await self._record_unrepaired(stack_id, str(error), repair.resources)
        return False

    async def _check(self, project: str, stack_id: UUID, repair: RepairUpdate) -> None:
        """As `check_repair`, before the template is read; the update checks again."""
        async with self._database.transaction() as conn:
            locked = await lock_stack(conn, project, stack_id)
            if locked is None or locked.deleted:
                raise RepairNotNeeded
            await check_repair(conn, locked, repair)
            if repair.limit is not None:
                await self._quotas(project).check(conn, project, REPAIRS, more=1)

    async def _record_unrepaired(
        self, stack_id: UUID, reason: str, resources: Sequence[UUID]
    ) -> None:
        async with self._database.transaction("unrepaired") as conn:
            stacks = await drift_rows.read_tree(conn, stack_id)
            await lock_stacks(conn, stacks)
            await drift_rows.record_unrepaired(conn, stacks, reason[:MAX_REASON], resources)
