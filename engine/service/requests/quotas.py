"""Quotas of a project. A change that would exceed one is refused; the error has limit and use."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import LimitReached
from engine.plan.draft import Plan
from engine.store.connection import Connection
from engine.store.projects import quotas as store
from engine.store.projects import usage
from engine.store.traversals.start import ANY_OUTBOX, OutboxRange
from engine.ttl_cache import TtlCache
from engine.words import Mode, Operation


@dataclass(frozen=True, slots=True)
class QuotaKind:
    """What a quota counts. name: the field of `Quotas` and the setting in [quotas]. words: the noun
    for the error."""

    name: str
    sql: str
    words: str
    remedy: str


STACKS = QuotaKind("stacks_per_project", store.STACKS, "stacks", "Delete one")
RESOURCES = QuotaKind(
    "resources_per_project", store.RESOURCES, "resources", "Delete resources that are not needed"
)
WAITING_HOOKS = QuotaKind(
    "waiting_hooks_per_project", store.WAITING_HOOKS, "waiting hooks",
    "Answer some, or remove breakpoints",
)  # fmt: skip
CHECKS = QuotaKind(
    "checks_per_day", store.CHECKS, "checks of stacks within a day", "Check again later"
)
OBSERVATIONS = QuotaKind(
    "observations_per_day", usage.OBSERVATIONS, "observations of resources today",
    "Observe again tomorrow (UTC), or less often",
)  # fmt: skip
REPAIRS = QuotaKind(
    "repairs_per_day", usage.REPAIRS, "repairs within a day",
    "Find out what changes the stacks of the project",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limit of each quota; 0 for none."""

    stacks_per_project: int = 512
    resources_per_project: int = 0
    waiting_hooks_per_project: int = 0
    checks_per_day: int = 0
    observations_per_day: int = 0
    repairs_per_day: int = 0
    subscriptions_per_project: int = 0

    async def read_usage(self, conn: Connection, project: str, kind: QuotaKind) -> tuple[int, int]:
        """(limit, use)."""
        limit: int = getattr(self, kind.name)
        return limit, await store.count(conn, kind.sql, project, limit)

    async def check(self, conn: Connection, project: str, kind: QuotaKind, *, more: int = 0) -> int:
        """Raise LimitReached if the quota is exceeded; return the use, or 0 without a limit.

        Call it at the end of the transaction, after its inserts. more: the number of items that are
        not inserted yet.
        """
        limit: int = getattr(self, kind.name)
        if not limit:
            return 0
        count = await store.usage(conn, kind.sql, project, limit, more=more)
        if count > limit:
            raise LimitReached(
                f"with this, the project would have {count} {kind.words}; it may have {limit}",
                place=f"[quotas] {kind.name}",
                remedy=f"{kind.remedy}; the operator sets the limit.",
                code="RequestLimitExceeded",
            )
        return count

    async def check_change(self, conn: Connection, project: str, planned: Plan) -> None:
        """Check the quotas that a change of a stack can exceed. Raises LimitReached."""
        if _creates(planned):
            await self.check(conn, project, RESOURCES)
        if waiting := _waiting_nodes(planned):
            await self.check(conn, project, WAITING_HOOKS, more=waiting)

    def limits_change(self, planned: Plan) -> bool:
        """Whether `check_change` counts anything."""
        return bool(
            (self.resources_per_project and _creates(planned))
            or (self.waiting_hooks_per_project and _waiting_nodes(planned))
        )


def _creates(planned: Plan) -> bool:
    return any(one.operation is Operation.CREATE for one in planned.nodes)


def _waiting_nodes(planned: Plan) -> int:
    return sum(any(rule.mode is Mode.WAIT for rule in one.rules) for one in planned.nodes)


#: Seconds after which stacks are counted again, and projects whose number of stacks is known.
COUNTED_FOR, COUNTED_PROJECTS = 60.0, 1000


@dataclass(frozen=True, slots=True)
class _Count:
    stacks: int
    outbox: int


class StackCounts:
    """The numbers of stacks of projects, as they were counted last.

    A create far below the quota does not count the stacks, which takes longer the more there are.
    Each create takes an ID of the outbox, so the project has at most as many more stacks as IDs
    were taken since the count. The margin is for transactions that run at the same time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: TtlCache[str, _Count] = TtlCache(max_entries=COUNTED_PROJECTS)

    def range_below(self, project: str, quotas: Quotas) -> OutboxRange | None:
        """The last IDs of the outbox with which a create is far below the quota; None: count the
        stacks."""
        if not quotas.stacks_per_project:
            return ANY_OUTBOX
        known = self._counts.get(project, self._clock())
        if known is None:
            return None
        more = quotas.stacks_per_project - known.stacks - 2 * store.MARGIN
        return OutboxRange(known.outbox, known.outbox + more) if more >= 0 else None

    async def check(self, conn: Connection, project: str, quotas: Quotas, outbox: int) -> None:
        """Check the quota of stacks at the end of a create. outbox: the last ID of the outbox, read
        before. Raises LimitReached."""
        allowed = self.range_below(project, quotas)
        if allowed is not None and allowed.first <= outbox <= allowed.last:
            return
        expires_at = self._clock() + COUNTED_FOR
        count = await quotas.check(conn, project, STACKS)
        self._counts.keep(project, _Count(count, outbox), expires_at)
