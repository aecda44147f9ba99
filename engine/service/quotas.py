"""Quotas of a project: what a change would use beyond them is refused, with limit and use."""

from dataclasses import dataclass

from engine.errors import LimitReached
from engine.plan.draft import Plan
from engine.store import quotas as store
from engine.store.connection import Connection
from engine.words import Mode, Operation


@dataclass(frozen=True, slots=True)
class Measure:
    """name: the field of `Quotas`, and the setting. words: what is counted, in a sentence."""

    name: str
    sql: str
    words: str
    remedy: str


STACKS = Measure("stacks_per_project", store.STACKS, "stacks", "Delete one")
RESOURCES = Measure(
    "resources_per_project", store.RESOURCES, "resources", "Delete what is not needed"
)
WAITING_HOOKS = Measure(
    "waiting_hooks_per_project", store.WAITING_HOOKS, "waiting hooks",
    "Answer some, or leave out breakpoints",
)  # fmt: skip
CHECKS = Measure(
    "checks_per_day", store.CHECKS, "checks of stacks within a day", "Check again later"
)


@dataclass(frozen=True, slots=True)
class Quotas:
    """The most of each; 0: any number."""

    stacks_per_project: int = 512
    resources_per_project: int = 0
    waiting_hooks_per_project: int = 0
    checks_per_day: int = 0
    subscriptions_per_project: int = 0

    async def look(self, conn: Connection, project: str, measure: Measure) -> tuple[int, int]:
        """Limit and use."""
        limit: int = getattr(self, measure.name)
        return limit, await store.count(conn, measure.sql, project, limit)

    async def keep(
        self, conn: Connection, project: str, measure: Measure, *, more: int = 0
    ) -> None:
        """Raises LimitReached. At the end of a transaction: what it made is counted. more: what is
        still to come of it."""
        limit: int = getattr(self, measure.name)
        if not limit:
            return
        count = await store.used(conn, measure.sql, project, limit, more=more)
        if count > limit:
            raise LimitReached(
                f"with this, the project would have {count} {measure.words}; it may have {limit}",
                place=f"[quotas] {measure.name}",
                remedy=f"{measure.remedy}; the operator sets the most.",
                code="RequestLimitExceeded",
            )

    async def keep_change(self, conn: Connection, project: str, planned: Plan) -> None:
        """Those that a change of a stack may reach. Raises LimitReached."""
        if any(one.operation is Operation.CREATE for one in planned.nodes):
            await self.keep(conn, project, RESOURCES)
        holding = sum(any(rule.mode is Mode.WAIT for rule in one.rules) for one in planned.nodes)
        if holding:
            await self.keep(conn, project, WAITING_HOOKS, more=holding)
