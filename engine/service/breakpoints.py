"""Breakpoints on a live stack: set and taken away while it runs; told where it is too late."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import Findings, NotFound, nearest
from engine.hooks.audit import Entry
from engine.hooks.matching import Breakpoints as Rules
from engine.hooks.matching import Tree, check_patterns, led_to, reaches
from engine.hooks.reading import Declaration, Reader
from engine.hooks.rule import Rule, decode_rule, decode_rules, encode_rule, line_of
from engine.hot.declared import escaped
from engine.service.beneath import names_in, there, together, told_by
from engine.service.late import Late, points_of, row_of, rules_for, too_late, with_rules
from engine.service.requests import Answer, StackRequest
from engine.service.traversals import UNDER_WAY, Traversals
from engine.store import accept, audit
from engine.store import breakpoints as store
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.kin import Kin, lock_kin, within
from engine.store.read import read_template
from engine.words import GATES, Json, Point

#: What somebody who wants to stop at a resource means, whatever will be done to it.
BEFORE_ANYTHING = tuple(point.value for point in Point if point.startswith("pre-"))


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
            locked, kin = await self._lock(conn, project, stack_id, [one.pattern for one in said])
            await self._check(conn, locked, said)
            return await self._set(conn, locked, kin, said, by)

    async def _lock(
        self, conn: Connection, project: str, stack_id: UUID, patterns: Sequence[str]
    ) -> tuple[accept.Locked, Sequence[Kin]]:
        """The stack, and where paths lead inside, the stacks there as well."""
        inside = any("/" in pattern for pattern in patterns)
        kin = within(await lock_kin(conn, stack_id)) if inside else ()
        one = await self._traversals.lock(conn, project, stack_id)
        alone = Kin(one.id, 0, one.path, one.traversal, one.state in UNDER_WAY, None)
        return one, kin or [alone]

    async def _set(
        self,
        conn: Connection,
        locked: accept.Locked,
        kin: Sequence[Kin],
        said: Sequence[Declaration],
        by: Answer,
    ) -> Set:
        ids = [self._new_id() for _ in said]
        rows = [
            {"id": one_id, "pattern": one.pattern, "rule": encode_rule(one.rule)}
            for one_id, one in zip(ids, said, strict=True)
        ]
        await store.insert_breakpoints(conn, locked.id, rows, by.by)
        await audit.record(conn, [_entry(locked, by, "breakpoint-added", row) for row in rows])
        late = await self._hold(conn, kin, said) if locked.state in UNDER_WAY else []
        return Set(ids, late)

    async def hold_here(
        self, conn: Connection, locked: accept.Locked, kin: Sequence[Kin], path: str
    ) -> list[Late]:
        """For this change only: before whatever is done to a resource. path: from the stack.
        NotFound."""
        said, top = here(path), _top(kin)
        nodes = await store.reached(conn, [(one.id, one.traversal) for one in kin])
        by_stack = {one.id: one.names[len(top.names) :] for one in kin}
        ahead = {
            "/".join((*by_stack[node.stack_id], node.name))
            for node in nodes if node.name and not node.ended
        }  # fmt: skip
        known = await self._inside(conn, locked, [path])
        head = path if path in ahead else _last_of(path, ahead)
        if head is None or not reaches(said[0].pattern, known):
            names = sorted(ahead)
            remedy = nearest(path, names) or f"Ahead are: {', '.join(names[:8]) or 'none'}."
            reason = f'nothing is ahead of "{path}" in this traversal'
            raise NotFound(reason, remedy=remedy, code="NodeNotFound")
        await store.ask_inside(conn, _for_later(kin, said))
        return await self._hold(conn, kin, said)

    async def remove(self, project: str, stack_id: UUID, ids: Sequence[UUID], by: Answer) -> None:
        """Take them away: from nodes that have not come to them, too. NotFound.

        Where one stood in the place of what template or environment say, that holds again.
        """
        async with self._database.transaction("accept") as conn:
            known = await store.read_breakpoints(conn, stack_id)
            patterns = [one.pattern for one in known if one.id in ids]
            locked, kin = await self._lock(conn, project, stack_id, patterns)
            set_now = {one.id: one for one in await store.read_breakpoints(conn, stack_id)}
            for one in ids:
                if one not in set_now:
                    remedy = "GET .../breakpoints lists those that are set."
                    raise NotFound(
                        f"there is no breakpoint {one}", remedy=remedy, code="BreakpointNotFound"
                    )
            await store.delete_breakpoints(conn, stack_id, ids)
            gone = [set_now[one] for one in ids]
            await audit.record(
                conn,
                [_entry(locked, by, "breakpoint-removed",
                        {"id": one.id, "pattern": one.pattern, "rule": one.rule})
                 for one in gone],
            )  # fmt: skip
            if locked.state in UNDER_WAY:
                await self._let_go(conn, kin, gone)

    async def _check(
        self, conn: Connection, locked: accept.Locked, said: Sequence[Declaration]
    ) -> None:
        """A pattern is to match a resource that is there, or is to be."""
        findings = Findings()
        known = await self._inside(conn, locked, [one.pattern for one in said])
        check_patterns(said, known, findings)
        findings.raise_if_any()

    async def _inside(
        self, conn: Connection, locked: accept.Locked, patterns: Sequence[str]
    ) -> Mapping[str, Tree | None]:
        """What there is, and where patterns lead inside, what templates say that there will be."""
        beneath = told_by(self._traversals.registry)
        known = there(await store.read_inside(conn, locked.id), beneath)
        if locked.path or not any("/" in pattern for pattern in patterns):
            return known
        stored = await read_template(conn, locked.id, locked.version)
        blueprint = await self._traversals.build(
            StackRequest(existing=True),
            stored,
            project=locked.project,
            stack_id=locked.id,
            name=locked.name,
        )
        return together(known, names_in(blueprint.definition, beneath))

    async def _hold(
        self, conn: Connection, kin: Sequence[Kin], said: Sequence[Declaration]
    ) -> list[Late]:
        nodes = await store.reached(conn, [(one.id, one.traversal) for one in kin])
        top, paths = _top(kin), {one.id: one.path for one in kin}
        rules = {one.id: Rules(led_to(said, one.names[len(top.names) :])) for one in kin}
        changed: list[Json] = []
        late: list[Late] = []
        for node in nodes:
            found = rules_for(rules[node.stack_id], node)
            path = "/".join(filter(None, (paths[node.stack_id], node.name)))
            late += [Late(node.name, path, rule.point, why) for rule in found
                     if (why := too_late(node, rule)) is not None]  # fmt: skip
            if found and not node.ended:
                changed.append(with_rules(node, found))
        gates = {point for node in nodes
                 if node.operation in GATES and not node.ended and node.stack_id == top.id
                 for point in points_of(node)}  # fmt: skip
        late += [Late("", top.path, rule.point,
                      "the change began without that gate, or has passed it")
                 for rule in rules[top.id].of_stack() if rule.point not in gates]  # fmt: skip
        await store.set_rules(conn, changed)
        return late

    async def _let_go(
        self, conn: Connection, kin: Sequence[Kin], gone: Sequence[store.BreakpointRecord]
    ) -> None:
        nodes = await store.reached(conn, [(one.id, one.traversal) for one in kin])
        left = await store.read_breakpoints_of_tree(conn, kin[0].id)
        said, top = _declared(gone), _top(kin)
        away = {one.id: Rules(led_to(said, one.names[len(top.names) :])) for one in kin}
        stay = {one.id: Rules(_holding(left, one)) for one in kin}
        changed = []
        for node in nodes:
            still = stay[node.stack_id]
            taken = set(map(line_of, rules_for(away[node.stack_id], node)))
            rules = {rule.point: rule for rule in decode_rules(node.rules)}
            free = {point for point, rule in rules.items() if line_of(rule) in taken}
            if free and not node.ended:
                now = {point: rule for point, rule in rules.items() if point not in free}
                lasting = rules_for(still, node, decode_rules(node.lasting))
                now |= {rule.point: rule for rule in lasting if rule.point in free}
                changed.append(row_of(node, now.values(), node.phase))
        await store.set_rules(conn, changed)


def _top(kin: Sequence[Kin]) -> Kin:
    """The stack in question; the others are inside of it."""
    return next(one for one in kin if one.level == 0)


def _last_of(path: str, ahead: Collection[str]) -> str | None:
    """The last resource on a path of which something is ahead: the rest is inside of it."""
    head = path
    while head and head not in ahead:
        head = head.rpartition("/")[0]
    return head or None


def _for_later(kin: Sequence[Kin], said: Sequence[Declaration]) -> list[Json]:
    """What the traversals are to ask of stacks inside that they have yet to begin."""
    top = _top(kin)
    return [
        {"stack_id": one.id, "traversal": one.traversal, "asked": asked}
        for one in kin
        if one.under_way
        and (asked := [{"pattern": rule.pattern, "rule": encode_rule(rule.rule), "asked": True}
                       for rule in led_to(said, one.names[len(top.names) :])
                       if "/" in rule.pattern])
    ]  # fmt: skip


def _holding(left: Sequence[store.AroundRecord], there: Kin) -> list[Declaration]:
    """Those of a tree that hold in one of its stacks."""
    found: list[Declaration] = []
    for one in left:
        above = list(filter(None, one.path.split("/")))
        if there.names[: len(above)] == above:
            said = Declaration(one.pattern, decode_rule(one.rule), "")
            found += led_to([said], there.names[len(above) :])
    return found


def _declared(said: Sequence[store.BreakpointRecord]) -> list[Declaration]:
    return [Declaration(one.pattern, decode_rule(one.rule), "") for one in said]


def _entry(locked: accept.Locked, by: Answer, kind: str, row: Json) -> Entry:
    return Entry(
        stack_id=locked.id, hook_id=None, kind=kind, by=by.by, door=by.door, at=locked.now,
        address=by.address, reason=by.reason,
        data={"id": str(row["id"]), "at": row["pattern"], "rule": row["rule"]},
    )  # fmt: skip


def here(name: str) -> list[Declaration]:
    """The breakpoints of "run to here": before whatever is done to a resource."""
    return [Declaration(escaped(name), Rule(point), "run-to") for point in BEFORE_ANYTHING]
