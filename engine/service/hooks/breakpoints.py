"""Breakpoints on live stacks: added and removed while a traversal runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import Findings, NotFound, nearest
from engine.hooks.hash_chain import Entry
from engine.hooks.rule import Rule, decode_rule, decode_rules, encode_rule, line_of
from engine.hooks.rule_matching import Breakpoints as Rules
from engine.hooks.rule_matching import Tree, check_patterns, led_to, reaches
from engine.hooks.rule_reader import Declaration, Reader
from engine.hot.template.hook_declarations import escape_glob
from engine.service.hooks.missed_breakpoints import (
    MissedBreakpoint,
    missed_reason,
    points_of,
    row_of,
    rules_for,
    with_rules,
)
from engine.service.requests.breakpoint_targets import (
    declared_tree,
    existing_tree,
    merge_trees,
    subtree_lookup,
)
from engine.service.requests.requests import Answer, StackRequest
from engine.service.traversals.start import UNDER_WAY, Traversals
from engine.store import audit_log, stack_rows
from engine.store import breakpoints as store
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.stack_queries import read_template
from engine.store.stack_tree import StackTreeMember, lock_stack_tree, within
from engine.words import GATES, Json, Point

#: The points of "run to here": before any operation on the resource.
PRE_POINTS = tuple(point.value for point in Point if point.startswith("pre-"))


@dataclass(frozen=True, slots=True)
class AddedBreakpoints:
    """ids: in the order of the request. missed: nodes that have already passed one of them."""

    ids: Sequence[UUID]
    missed: Sequence[MissedBreakpoint]


class LiveBreakpoints:
    def __init__(
        self, database: Database, traversals: Traversals, *, new_id: Callable[[], UUID]
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._new_id = new_id

    async def read(self, stack_id: UUID) -> list[store.BreakpointRecord]:
        """The breakpoints of a live stack, oldest first."""
        async with self._database.connection() as conn:
            return await store.read_breakpoints(conn, stack_id)

    async def add(
        self, project: str, stack_id: UUID, items: Sequence[Json], by: Answer
    ) -> AddedBreakpoints:
        """Add breakpoints. items: full rules with `at`, or ``resource:point`` texts.

        Raises Invalid, NotFound.
        """
        findings = Findings()
        limits, steps = self._traversals.limits.hooks, self._traversals.registry.steps()
        added = Reader(findings, limits, steps=steps).requested(items, "breakpoints")
        if not items:
            remedy = 'Send a rule with `at`, or "resource:point".'
            findings.add("breakpoints", "is empty", remedy)
        findings.raise_if_any()
        async with self._database.transaction("accept") as conn:
            patterns = [one.pattern for one in added]
            locked, tree = await self._lock(conn, project, stack_id, patterns)
            await self._check(conn, locked, added)
            return await self._insert(conn, locked, tree, added, by)

    async def _lock(
        self, conn: Connection, project: str, stack_id: UUID, patterns: Sequence[str]
    ) -> tuple[stack_rows.Locked, Sequence[StackTreeMember]]:
        """Lock the stack; if a pattern has a path, its nested stacks too."""
        nested = any("/" in pattern for pattern in patterns)
        tree = within(await lock_stack_tree(conn, stack_id)) if nested else ()
        one = await self._traversals.lock(conn, project, stack_id)
        alone = StackTreeMember(one.id, 0, one.path, one.traversal, one.state in UNDER_WAY, None)
        return one, tree or [alone]

    async def _insert(
        self,
        conn: Connection,
        locked: stack_rows.Locked,
        tree: Sequence[StackTreeMember],
        added: Sequence[Declaration],
        by: Answer,
    ) -> AddedBreakpoints:
        ids = [self._new_id() for _ in added]
        rows = [
            {"id": one_id, "pattern": one.pattern, "rule": encode_rule(one.rule)}
            for one_id, one in zip(ids, added, strict=True)
        ]
        await store.insert_breakpoints(conn, locked.id, rows, by.by.name)
        await audit_log.record(conn, [_entry(locked, by, "breakpoint-added", row) for row in rows])
        missed = await self._apply(conn, tree, added) if locked.state in UNDER_WAY else []
        return AddedBreakpoints(ids, missed)

    async def add_run_to(
        self,
        conn: Connection,
        locked: stack_rows.Locked,
        tree: Sequence[StackTreeMember],
        path: str,
    ) -> list[MissedBreakpoint]:
        """Add breakpoints before all operations on a resource, for the traversal under way only.

        path: of the resource, from the stack. Returns the nodes that have already passed one.
        Raises NotFound if no node of the resource is pending.
        """
        added, top = run_to_declarations(path), _target(tree)
        nodes = await store.reached(conn, [(one.id, one.traversal) for one in tree])
        prefixes = {one.id: one.names[len(top.names) :] for one in tree}
        pending = {
            "/".join((*prefixes[node.stack_id], node.name))
            for node in nodes if node.name and not node.ended
        }  # fmt: skip
        known = await self._resource_tree(conn, locked, [path])
        ancestor = path if path in pending else _pending_ancestor(path, pending)
        if ancestor is None or not reaches(added[0].pattern, known):
            names = sorted(pending)
            remedy = nearest(path, names) or f"Pending are: {', '.join(names[:8]) or 'none'}."
            reason = f'"{path}" has no pending node in this traversal'
            raise NotFound(reason, remedy=remedy, code="NodeNotFound")
        await store.ask_inside(conn, _for_nested_stacks(tree, added))
        return await self._apply(conn, tree, added)

    async def remove(self, project: str, stack_id: UUID, ids: Sequence[UUID], by: Answer) -> None:
        """Remove breakpoints, also from the pending nodes of the traversal under way.

        A rule of the template or the environment that a breakpoint replaced applies again. Raises
        NotFound.
        """
        async with self._database.transaction("accept") as conn:
            known = await store.read_breakpoints(conn, stack_id)
            patterns = [one.pattern for one in known if one.id in ids]
            locked, tree = await self._lock(conn, project, stack_id, patterns)
            current = {one.id: one for one in await store.read_breakpoints(conn, stack_id)}
            for one in ids:
                if one not in current:
                    remedy = "GET .../breakpoints lists the breakpoints of the stack."
                    raise NotFound(
                        f"there is no breakpoint {one}", remedy=remedy, code="BreakpointNotFound"
                    )
            await store.delete_breakpoints(conn, stack_id, ids)
            removed = [current[one] for one in ids]
            await audit_log.record(
                conn,
                [_entry(locked, by, "breakpoint-removed",
                        {"id": one.id, "pattern": one.pattern, "rule": one.rule})
                 for one in removed],
            )  # fmt: skip
            if locked.state in UNDER_WAY:
                await self._withdraw(conn, tree, removed)

    async def _check(
        self, conn: Connection, locked: stack_rows.Locked, added: Sequence[Declaration]
    ) -> None:
        """Raises Invalid for patterns that match no existing and no planned resource."""
        findings = Findings()
        known = await self._resource_tree(conn, locked, [one.pattern for one in added])
        check_patterns(added, known, findings)
        findings.raise_if_any()

    async def _resource_tree(
        self, conn: Connection, locked: stack_rows.Locked, patterns: Sequence[str]
    ) -> Mapping[str, Tree | None]:
        """The existing resources; if a pattern has a path, those that the templates declare too."""
        lookup = subtree_lookup(self._traversals.registry)
        known = existing_tree(await store.read_inside(conn, locked.id), lookup)
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
        return merge_trees(known, declared_tree(blueprint.definition, lookup))

    async def _apply(
        self, conn: Connection, tree: Sequence[StackTreeMember], added: Sequence[Declaration]
    ) -> list[MissedBreakpoint]:
        """Add rules to the nodes of the traversals under way; returns the nodes that missed
        them."""
        nodes = await store.reached(conn, [(one.id, one.traversal) for one in tree])
        top, paths = _target(tree), {one.id: one.path for one in tree}
        rules = {one.id: Rules(led_to(added, one.names[len(top.names) :])) for one in tree}
        changed: list[Json] = []
        missed: list[MissedBreakpoint] = []
        for node in nodes:
            found = rules_for(rules[node.stack_id], node)
            path = "/".join(filter(None, (paths[node.stack_id], node.name)))
            missed += [MissedBreakpoint(node.name, path, rule.point, reason) for rule in found
                       if (reason := missed_reason(node, rule)) is not None]  # fmt: skip
            if found and not node.ended:
                changed.append(with_rules(node, found))
        gates = {point for node in nodes
                 if node.operation in GATES and not node.ended and node.stack_id == top.id
                 for point in points_of(node)}  # fmt: skip
        missed += [MissedBreakpoint("", top.path, rule.point,
                      "the change started without that gate, or has passed it")
                   for rule in rules[top.id].of_stack() if rule.point not in gates]  # fmt: skip
        await store.set_rules(conn, changed)
        return missed

    async def _withdraw(
        self,
        conn: Connection,
        tree: Sequence[StackTreeMember],
        removed: Sequence[store.BreakpointRecord],
    ) -> None:
        """Replace the removed rules at pending nodes by those that still apply there."""
        nodes = await store.reached(conn, [(one.id, one.traversal) for one in tree])
        left = await store.read_breakpoints_of_tree(conn, tree[0].id)
        withdrawn, top = _declarations(removed), _target(tree)
        old = {one.id: Rules(led_to(withdrawn, one.names[len(top.names) :])) for one in tree}
        new = {one.id: Rules(_declarations_within(left, one)) for one in tree}
        changed = []
        for node in nodes:
            lines = set(map(line_of, rules_for(old[node.stack_id], node)))
            rules = {rule.point: rule for rule in decode_rules(node.rules)}
            free = {point for point, rule in rules.items() if line_of(rule) in lines}
            if free and not node.ended:
                now = {point: rule for point, rule in rules.items() if point not in free}
                lasting = rules_for(new[node.stack_id], node, decode_rules(node.lasting))
                now |= {rule.point: rule for rule in lasting if rule.point in free}
                changed.append(row_of(node, now.values(), node.phase))
        await store.set_rules(conn, changed)


def _target(tree: Sequence[StackTreeMember]) -> StackTreeMember:
    """The stack of the request; the others are nested in it."""
    return next(one for one in tree if one.level == 0)


def _pending_ancestor(path: str, pending: Collection[str]) -> str | None:
    """The nearest resource on a path that has a pending node; None if there is none."""
    ancestor = path
    while ancestor and ancestor not in pending:
        ancestor = ancestor.rpartition("/")[0]
    return ancestor or None


def _for_nested_stacks(tree: Sequence[StackTreeMember], added: Sequence[Declaration]) -> list[Json]:
    """The breakpoints that the traversals pass on to nested traversals that start later: rows of
    `engine.store.breakpoints.ask_inside`."""
    top = _target(tree)
    return [
        {"stack_id": one.id, "traversal": one.traversal, "asked": asked}
        for one in tree
        if one.under_way
        and (asked := [{"pattern": rule.pattern, "rule": encode_rule(rule.rule), "asked": True}
                       for rule in led_to(added, one.names[len(top.names) :])
                       if "/" in rule.pattern])
    ]  # fmt: skip


def _declarations_within(
    left: Sequence[store.AroundRecord], stack: StackTreeMember
) -> list[Declaration]:
    """The breakpoints of a tree that apply to resources of one of its stacks."""
    found: list[Declaration] = []
    for one in left:
        above = list(filter(None, one.path.split("/")))
        if stack.names[: len(above)] == above:
            declared = Declaration(one.pattern, decode_rule(one.rule), "")
            found += led_to([declared], stack.names[len(above) :])
    return found


def _declarations(records: Sequence[store.BreakpointRecord]) -> list[Declaration]:
    return [Declaration(one.pattern, decode_rule(one.rule), "") for one in records]


def _entry(locked: stack_rows.Locked, by: Answer, kind: str, row: Json) -> Entry:
    return Entry(
        stack_id=locked.id, hook_id=None, kind=kind, by=by.by.name, door=by.door, at=locked.now,
        principal=by.by.id, token_id=by.by.token_id,
        address=by.address, reason=by.reason,
        data={"id": str(row["id"]), "at": row["pattern"], "rule": row["rule"]},
    )  # fmt: skip


def run_to_declarations(name: str) -> list[Declaration]:
    """The breakpoints of "run to here": before all operations on a resource."""
    return [Declaration(escape_glob(name), Rule(point), "run-to") for point in PRE_POINTS]
