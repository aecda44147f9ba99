"""Breakpoints on a live stack: set and taken away while it runs; told where it is too late."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import Findings, NotFound, nearest
from engine.hooks.audit import Entry
from engine.hooks.matching import Breakpoints as Rules
from engine.hooks.reading import Declaration, Reader
from engine.hooks.rule import Rule, decode_rule, decode_rules, encode_rule, encode_rules, line_of
from engine.hot.declared import escaped
from engine.hot.globs import matches
from engine.node.points import POINTS
from engine.service.requests import Answer
from engine.service.traversals import UNDER_WAY, Traversals
from engine.store import accept, audit
from engine.store import breakpoints as store
from engine.store.database import Connection, Database
from engine.store.read import read_resource_names
from engine.words import GATES, Json, Operation, Phase, Point

#: What somebody who wants to stop at a resource means, whatever will be done to it.
BEFORE_ANYTHING = tuple(point.value for point in Point if point.startswith("pre-"))


@dataclass(frozen=True, slots=True)
class Late:
    """A node that a breakpoint came too late for, and why."""

    resource_name: str
    point: str
    why: str


@dataclass(frozen=True, slots=True)
class Set:
    """ids: of the breakpoints, in the order of the request. late: nodes they came too late for."""

    ids: Sequence[UUID]
    late: Sequence[Late]


class LiveBreakpoints:
    def __init__(
        self, database: Database, traversals: Traversals, *, new_id: Callable[[], UUID]
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._new_id = new_id

    async def listed(self, stack_id: UUID) -> list[store.BreakpointRecord]:
        async with self._database.connection() as conn:
            return await store.read_breakpoints(conn, stack_id)

    async def add(self, project: str, stack_id: UUID, items: Sequence[Json], by: Answer) -> Set:
        """Set breakpoints: full rules with `at`, or ``resource:point``. Invalid, NotFound."""
        findings = Findings()
        limits, steps = self._traversals.limits.hooks, self._traversals.registry.steps()
        said = Reader(findings, limits, steps=steps).requested(items, "breakpoints")
        if not items:
            remedy = 'Send a rule with `at`, or "resource:point".'
            findings.add("breakpoints", "names none", remedy)
        findings.raise_if_any()
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            return await self.set(conn, locked, said, by)

    async def set(
        self,
        conn: Connection,
        locked: accept.Locked,
        said: Sequence[Declaration],
        by: Answer,
    ) -> Set:
        """In a transaction that holds the stack."""
        await self._check(conn, locked.id, said)
        ids = [self._new_id() for _ in said]
        rows = [
            {"id": one_id, "pattern": one.pattern, "rule": encode_rule(one.rule)}
            for one_id, one in zip(ids, said, strict=True)
        ]
        await store.insert_breakpoints(conn, locked.id, rows, by.by)
        await audit.record(conn, [_entry(locked, by, "breakpoint-added", row) for row in rows])
        late = await self._hold(conn, locked, said) if locked.state in UNDER_WAY else []
        return Set(ids, late)

    async def hold_here(self, conn: Connection, locked: accept.Locked, resource: str) -> list[Late]:
        """For this traversal only: before whatever is done to a resource. NotFound."""
        nodes = await store.reached(conn, locked.id, locked.traversal)
        names = sorted({node.name for node in nodes if node.name and not node.ended})
        if resource not in names:
            remedy = nearest(resource, names) or f"Ahead are: {', '.join(names[:8]) or 'none'}."
            reason = f'nothing is ahead of "{resource}" in this traversal'
            raise NotFound(reason, remedy=remedy, code="NodeNotFound")
        return await self._hold(conn, locked, here(resource))

    async def remove(self, project: str, stack_id: UUID, ids: Sequence[UUID], by: Answer) -> None:
        """Take them away: from nodes that have not come to them, too. NotFound.

        Where one stood in the place of what template or environment say, that holds again.
        """
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            there = {one.id: one for one in await store.read_breakpoints(conn, stack_id)}
            for one in ids:
                if one not in there:
                    remedy = "GET .../breakpoints lists those that are set."
                    raise NotFound(
                        f"there is no breakpoint {one}", remedy=remedy, code="BreakpointNotFound"
                    )
            await store.delete_breakpoints(conn, stack_id, ids)
            gone = [there[one] for one in ids]
            await audit.record(
                conn,
                [_entry(locked, by, "breakpoint-removed",
                        {"id": one.id, "pattern": one.pattern, "rule": one.rule})
                 for one in gone],
            )  # fmt: skip
            if locked.state in UNDER_WAY:
                await self._let_go(conn, locked, gone)

    async def _check(self, conn: Connection, stack_id: UUID, said: Sequence[Declaration]) -> None:
        """A pattern is to match a resource that is there, or is to be."""
        names, findings = await read_resource_names(conn, stack_id), Findings()
        for one in said:
            if one.pattern and not any(matches(name, one.pattern) for name in names):
                remedy = nearest(one.pattern, names) or f"Resources are: {', '.join(names[:8])}."
                reason = f'the breakpoint pattern "{one.pattern}" matches no resource'
                findings.add(one.place, reason, remedy, "InvalidBreakPointHook")
        findings.raise_if_any()

    async def _hold(
        self, conn: Connection, locked: accept.Locked, said: Sequence[Declaration]
    ) -> list[Late]:
        nodes = await store.reached(conn, locked.id, locked.traversal)
        asking = Rules(said)
        changed: list[Json] = []
        late: list[Late] = []
        for node in nodes:
            found = _for(asking, node)
            late += [Late(node.name, rule.point, why) for rule in found
                     if (why := _too_late(node, rule)) is not None]  # fmt: skip
            if found and not node.ended:
                changed.append(_with(node, found))
        gates = {point for node in nodes if node.operation in GATES and not node.ended
                 for point in _points_of(node)}  # fmt: skip
        late += [Late("", rule.point, "the change began without that gate, or has passed it")
                 for rule in asking.of_stack() if rule.point not in gates]  # fmt: skip
        await store.set_rules(conn, locked.id, locked.traversal, changed)
        return late

    async def _let_go(
        self, conn: Connection, locked: accept.Locked, gone: Sequence[store.BreakpointRecord]
    ) -> None:
        nodes = await store.reached(conn, locked.id, locked.traversal)
        left = await store.read_breakpoints(conn, locked.id)
        asking, still = Rules(_declared(gone)), Rules(_declared(left))
        changed = []
        for node in nodes:
            taken = set(map(line_of, _for(asking, node)))
            rules = {rule.point: rule for rule in decode_rules(node.rules)}
            free = {point for point, rule in rules.items() if line_of(rule) in taken}
            if free and not node.ended:
                now = {point: rule for point, rule in rules.items() if point not in free}
                now |= {rule.point: rule for rule in _for(still, node, decode_rules(node.lasting))
                        if rule.point in free}  # fmt: skip
                rules_now = encode_rules(now.values())
                changed.append({"id": node.id, "rules": rules_now, "phase": node.phase})
        await store.set_rules(conn, locked.id, locked.traversal, changed)


def _declared(said: Sequence[store.BreakpointRecord]) -> list[Declaration]:
    return [Declaration(one.pattern, decode_rule(one.rule), "") for one in said]


def _for(asking: Rules, node: store.Reached, stored: Sequence[Rule] = ()) -> tuple[Rule, ...]:
    if node.operation in GATES:
        return asking.of_stack(stored)
    return asking.of(node.name, stored)


def _points_of(node: store.Reached) -> Sequence[str]:
    """Of the stack's points those that the gate asks at: its own action's are in its rules."""
    return [rule.point for rule in decode_rules(node.rules)]


def _with(node: store.Reached, found: Sequence[Rule]) -> Json:
    """The node's rules with those that were found; one that was to begin at once asks first."""
    rules = {rule.point: rule for rule in decode_rules(node.rules)}
    rules |= {rule.point: rule for rule in found if _may_stand(rules, rule, node)}
    asks = node.phase == Phase.ACT and not node.started
    phase = Phase.PRE if asks else node.phase
    return {"id": node.id, "rules": encode_rules(rules.values()), "phase": phase}


def _may_stand(rules: Mapping[str, Rule], rule: Rule, node: store.Reached) -> bool:
    """What is behind the node is behind it; and nothing takes the operator's place."""
    there = rules.get(rule.point)
    return _too_late(node, rule) is None and not (there is not None and there.by_operator)


def _too_late(node: store.Reached, rule: Rule) -> str | None:
    """Why the node will not stop there; None: it will, if it comes there."""
    if rule.point in node.passed:
        return "it has asked there already"
    operation = Operation(node.operation)
    points = (*POINTS[operation, Phase.PRE], *POINTS[operation, Phase.POST])
    if node.ended and rule.point in points and node.operation not in GATES:
        return f"it is {node.state}"
    if rule.point not in POINTS[operation, Phase.PRE]:
        return None
    if node.started or node.phase == Phase.POST:
        return "its operation has begun"
    return None


def _entry(locked: accept.Locked, by: Answer, kind: str, row: Json) -> Entry:
    return Entry(
        stack_id=locked.id, hook_id=None, kind=kind, by=by.by, door=by.door, at=locked.now,
        address=by.address, reason=by.reason,
        data={"id": str(row["id"]), "at": row["pattern"], "rule": row["rule"]},
    )  # fmt: skip


def here(name: str) -> list[Declaration]:
    """The breakpoints of "run to here": before whatever is done to a resource."""
    return [Declaration(escaped(name), Rule(point), "run-to") for point in BEFORE_ANYTHING]
