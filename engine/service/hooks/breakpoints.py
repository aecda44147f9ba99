"""Adds and removes breakpoints of live stacks, also while a traversal runs, and reports the nodes
that have already passed them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from uuid import UUID

from engine.errors import Findings, LimitReached, NotFound, nearest
from engine.hooks.answers import Answer
from engine.hooks.hash_chain import Entry
from engine.hooks.precedence import Breakpoints as Rules
from engine.hooks.rule import Rule, decode_rule, decode_rules, encode_rule, encode_rules, line_of
from engine.hooks.rule_patterns import Tree, check_patterns, declarations_at, reaches
from engine.hooks.rule_reader import Declaration, Reader
from engine.hot.syntax.globs import MAX_GLOBS, is_glob
from engine.hot.syntax.keyed_names import plain_path
from engine.hot.template.hook_declarations import escape_glob
from engine.missing_objects import no_breakpoint
from engine.node.machine import decide
from engine.node.node import BreakpointAdded, InvalidInput, Node
from engine.node.pending_breakpoints import POINTS
from engine.service.requests.breakpoint_targets import (
    declared_tree,
    existing_tree,
    merge_trees,
    subtree_lookup,
)
from engine.service.requests.requests import StackRequest
from engine.service.traversals.start import Traversals
from engine.store.audit import audit_log
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.hooks import breakpoints as store
from engine.store.stacks import stack_locks
from engine.store.stacks.stack_tree import StackTreeMember, lock_stack_tree, self_and_nested
from engine.store.stacks.templates import read_template
from engine.words import GATES, UNDER_WAY, Json, Operation, Phase, Point, State

#: Maximum number of breakpoints of a live stack.
MAX_BREAKPOINTS = 1_000

WAITS: Final = "it waits there now"
CONTINUED: Final = "it was waiting there and was continued"


@dataclass(frozen=True, slots=True)
class MissedBreakpoint:
    """A node that has already passed a breakpoint. path: of the resource, from the root stack."""

    resource_name: str
    path: str
    point: str
    reason: str


def rules_for(
    rules: Rules, node: store.BreakpointNode, stored: Sequence[Rule] = ()
) -> tuple[Rule, ...]:
    """The rules for a node: those of its resource, or of the stack for a stack's own gate."""
    if node.operation in GATES:
        return rules.find_stack_rules(stored)
    return rules.find_rules(node.name, stored)


def points_of(node: store.BreakpointNode) -> Sequence[str]:
    """The points at which a stack's gate node has rules."""
    return [rule.point for rule in decode_rules(node.rules)]


def with_rules(node: store.BreakpointNode, found: Sequence[Rule]) -> Json:
    """The row of a node with the found rules added."""
    rules = {rule.point: rule for rule in decode_rules(node.rules)}
    added = {rule.point: rule for rule in found if _can_add(rules, rule, node)}
    if not added:
        return row_of(node, rules.values())
    rules |= added
    with_found = Node(
        Operation(node.operation), State(node.state), Phase(node.phase), tuple(rules.values()),
        tuple(node.breakpoints_hit),
    )  # fmt: skip
    step = decide(with_found, BreakpointAdded())
    return row_of(node, rules.values(), None if isinstance(step, InvalidInput) else step.node)


def row_of(node: store.BreakpointNode, rules: Collection[Rule], after: Node | None = None) -> Json:
    """A row for `engine.store.hooks.breakpoints.set_node_rules`. after: a decision of the
    machine."""
    state, phase = (node.state, node.phase) if after is None else (after.state, after.phase)
    return {
        "stack_id": node.stack_id, "traversal": node.traversal, "id": node.id,
        "rules": encode_rules(rules), "state": state, "phase": phase,
        "given_back": state != node.state,
    }  # fmt: skip


def _can_add(rules: Mapping[str, Rule], rule: Rule, node: store.BreakpointNode) -> bool:
    """False if the node has passed the point, or has an operator rule there that is no dry run."""
    existing = rules.get(rule.point)
    by_operator = existing is not None and existing.by_operator and not existing.dry
    return missed_reason(node, rule) is None and not by_operator


def _waits_at(node: store.BreakpointNode, point: str) -> bool:
    """Whether a hook of the node is open at the point, which is then the last in `passed`."""
    at_a_hook = node.state == State.PARKED and node.phase != Phase.EXECUTE
    return at_a_hook and bool(node.breakpoints_hit) and node.breakpoints_hit[-1] == point


def with_continued(
    missed: Sequence[MissedBreakpoint], continued: Collection[tuple[str, str]]
) -> list[MissedBreakpoint]:
    """The breakpoints with the reason of those whose hooks the same request has continued.

    continued: path, from the root stack, and point of each of these hooks.
    """
    return [
        replace(one, reason=CONTINUED)
        if one.reason == WAITS and (one.path, one.point) in continued
        else one
        for one in missed
    ]


def missed_reason(node: store.BreakpointNode, rule: Rule) -> str | None:
    """Why the node can no longer stop at the rule's point; None if it can."""
    if _waits_at(node, rule.point):
        return WAITS
    if rule.point in node.breakpoints_hit:
        return "it has already passed this point"
    operation = Operation(node.operation)
    points = (*POINTS[operation, Phase.PRE], *POINTS[operation, Phase.POST])
    if node.ended and rule.point in points and node.operation not in GATES:
        return f"it is {node.state}"
    if rule.point not in POINTS[operation, Phase.PRE]:
        return None
    if node.started or node.phase == Phase.POST:
        return "its operation has begun"
    return None


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
        added = Reader(findings, limits, steps=steps).read_requested(items, "breakpoints")
        if not items:
            remedy = 'Send a rule with `at`, or "resource:point".'
            findings.add("breakpoints", "is empty", remedy)
        findings.raise_if_any()
        async with self._database.transaction("accept") as conn:
            patterns = [one.pattern for one in added]
            locked, tree = await self._lock(conn, project, stack_id, patterns)
            _check_number(await store.read_breakpoints(conn, stack_id), added)
            await self._check(conn, locked, added)
            return await self._insert(conn, locked, tree, added, by)

    async def _lock(
        self, conn: Connection, project: str, stack_id: UUID, patterns: Sequence[str]
    ) -> tuple[stack_locks.LockedStack, Sequence[StackTreeMember]]:
        """Lock the stack; if a pattern has a path, its nested stacks too."""
        nested = any("/" in pattern for pattern in patterns)
        tree = self_and_nested(await lock_stack_tree(conn, stack_id)) if nested else ()
        one = await self._traversals.lock(conn, project, stack_id)
        alone = StackTreeMember(one.id, 0, one.path, one.traversal, one.state in UNDER_WAY, None)
        return one, tree or [alone]

    async def _insert(
        self,
        conn: Connection,
        locked: stack_locks.LockedStack,
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
        missed: list[MissedBreakpoint] = []
        if locked.state in UNDER_WAY:
            missed = await self._apply(conn, locked, tree, added)
        return AddedBreakpoints(ids, missed)

    async def add_run_to(
        self,
        conn: Connection,
        locked: stack_locks.LockedStack,
        tree: Sequence[StackTreeMember],
        path: str,
    ) -> list[MissedBreakpoint]:
        """Add breakpoints before all operations on a resource, for the traversal under way only.

        path: of the resource, from the stack. Returns the nodes that have already passed one.
        Raises NotFound if no node of the resource is pending.
        """
        added, top = run_to_declarations(path), _target(tree)
        nodes = await store.read_breakpoint_nodes(conn, [(one.id, one.traversal) for one in tree])
        prefixes = {one.id: one.path_names[len(top.path_names) :] for one in tree}
        pending = {
            "/".join((*prefixes[node.stack_id], node.name))
            for node in nodes if node.name and not node.ended
        }  # fmt: skip
        known = await self._resource_tree(conn, locked, [path])
        ancestor = _pending_ancestor(path, pending.union(map(plain_path, pending)))
        if ancestor is None or not reaches(added[0].pattern, known):
            names = sorted(pending)
            remedy = nearest(path, names) or f"Pending are: {', '.join(names[:8]) or 'none'}."
            reason = f'"{path}" has no pending node in this traversal'
            raise NotFound(reason, place="resource", remedy=remedy, code="NodeNotFound")
        await store.add_for_nested_stacks(conn, _for_nested_stacks(tree, added))
        return await self._apply(conn, locked, tree, added)

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
                    raise no_breakpoint(one)
            await store.delete_breakpoints(conn, stack_id, ids)
            removed = [current[one] for one in ids]
            await audit_log.record(
                conn,
                [_entry(locked, by, "breakpoint-removed",
                        {"id": one.id, "pattern": one.pattern, "rule": one.rule})
                 for one in removed],
            )  # fmt: skip
            if locked.state in UNDER_WAY:
                await self._withdraw(conn, locked, tree, removed)

    async def _check(
        self, conn: Connection, locked: stack_locks.LockedStack, added: Sequence[Declaration]
    ) -> None:
        """Raises Invalid for patterns that match no existing and no planned resource."""
        findings = Findings()
        known = await self._resource_tree(conn, locked, [one.pattern for one in added])
        check = partial(check_patterns, added, known, findings)
        await self._traversals.thread_pool(check, locked.project)
        findings.raise_if_any()

    async def _resource_tree(
        self, conn: Connection, locked: stack_locks.LockedStack, patterns: Sequence[str]
    ) -> Mapping[str, Tree | None]:
        """The existing resources; if a pattern has a path, those that the templates declare too."""
        lookup = subtree_lookup(self._traversals.registry)
        known = existing_tree(await store.read_resource_paths(conn, locked.id), lookup)
        if locked.path or not any("/" in pattern for pattern in patterns):
            return known
        stored = await read_template(conn, locked.id, locked.version)
        blueprint = await self._traversals.blueprints.build_for(
            locked, StackRequest(existing=True), stored, conn=conn, known=stored.read_outputs()
        )
        return merge_trees(known, declared_tree(blueprint.definition, lookup))

    async def _apply(
        self,
        conn: Connection,
        locked: stack_locks.LockedStack,
        tree: Sequence[StackTreeMember],
        added: Sequence[Declaration],
    ) -> list[MissedBreakpoint]:
        """Add rules to the nodes of the traversals under way; returns the nodes that missed
        them."""
        nodes = await store.read_breakpoint_nodes(conn, [(one.id, one.traversal) for one in tree])
        top, paths = _target(tree), {one.id: one.path for one in tree}
        rules = {
            one.id: Rules(
                declarations_at(added, one.path_names[len(top.path_names) :]),
                excluded=locked.excluded,
            )
            for one in tree
        }
        changed: list[Json] = []
        missed: list[MissedBreakpoint] = []
        matching = partial(_rules_of_nodes, rules, nodes)
        for node, found in await self._traversals.thread_pool(matching, locked.project):
            path = "/".join(filter(None, (paths[node.stack_id], node.name)))
            missed += [MissedBreakpoint(node.name, path, rule.point, reason) for rule in found
                       if (reason := missed_reason(node, rule)) is not None]  # fmt: skip
            if found and not node.ended:
                changed.append(with_rules(node, found))
        gates = {point for node in nodes
                 if node.operation in GATES and not node.ended and node.stack_id == top.id
                 for point in points_of(node)}  # fmt: skip
        reason = "the change started without that gate, or has passed it"
        missed += [
            MissedBreakpoint("", top.path, rule.point, reason)
            for rule in rules[top.id].find_stack_rules()
            if rule.point not in gates
        ]
        await store.set_node_rules(conn, changed)
        return missed

    async def _withdraw(
        self,
        conn: Connection,
        locked: stack_locks.LockedStack,
        tree: Sequence[StackTreeMember],
        removed: Sequence[store.BreakpointRecord],
    ) -> None:
        """Replace the removed rules at pending nodes by those that still apply there."""
        nodes = await store.read_breakpoint_nodes(conn, [(one.id, one.traversal) for one in tree])
        left = await store.read_breakpoints_of_tree(conn, tree[0].id)
        withdrawn, top = _declarations(removed), _target(tree)
        excluded = locked.excluded
        old = {
            one.id: Rules(
                declarations_at(withdrawn, one.path_names[len(top.path_names) :]), excluded=excluded
            )
            for one in tree
        }
        new = {one.id: Rules(_declarations_within(left, one), excluded=excluded) for one in tree}
        changed = []
        for node in nodes:
            lines = set(map(line_of, rules_for(old[node.stack_id], node)))
            rules = {rule.point: rule for rule in decode_rules(node.rules)}
            free = {point for point, rule in rules.items() if line_of(rule) in lines}
            if free and not node.ended:
                now = {point: rule for point, rule in rules.items() if point not in free}
                lasting = rules_for(new[node.stack_id], node, decode_rules(node.template_rules))
                now |= {rule.point: rule for rule in lasting if rule.point in free}
                changed.append(row_of(node, now.values()))
        await store.set_node_rules(conn, changed)


def _check_number(existing: Sequence[store.BreakpointRecord], added: Sequence[Declaration]) -> None:
    """Raises LimitReached: every change matches its resources against all breakpoints of the
    stack."""
    patterns = [*(one.pattern for one in existing), *(one.pattern for one in added)]
    globs = sum(map(is_glob, patterns))
    if len(patterns) > MAX_BREAKPOINTS or globs > MAX_GLOBS:
        raise LimitReached(
            f"the stack would have {len(patterns)} breakpoints, {globs} of them with patterns; the"
            f" maximum is {MAX_BREAKPOINTS}, and {MAX_GLOBS} with patterns",
            place="breakpoints",
            remedy="Remove breakpoints that you no longer need.",
        )


def _rules_of_nodes(
    rules: Mapping[UUID, Rules], nodes: Iterable[store.BreakpointNode]
) -> list[tuple[store.BreakpointNode, tuple[Rule, ...]]]:
    """The nodes, each with its rules. rules: by stack."""
    return [(node, rules_for(rules[node.stack_id], node)) for node in nodes]


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
    """The breakpoints that the traversals pass on to nested traversals that start later: rows for
    `engine.store.hooks.breakpoints.add_for_nested_stacks`."""
    depth = len(_target(tree).path_names)
    rows = [
        {
            "stack_id": one.id,
            "traversal": one.traversal,
            "nested_breakpoints": [
                {"pattern": rule.pattern, "rule": encode_rule(rule.rule), "requested": True}
                for rule in declarations_at(added, one.path_names[depth:])
                if "/" in rule.pattern
            ],
        }
        for one in tree
        if one.under_way
    ]
    return [row for row in rows if row["nested_breakpoints"]]


def _declarations_within(
    left: Sequence[store.TreeBreakpoint], stack: StackTreeMember
) -> list[Declaration]:
    """The breakpoints of a tree that apply to resources of one of its stacks."""
    found: list[Declaration] = []
    for one in left:
        above = stack_locks.split_path(one.path)
        if stack.path_names[: len(above)] == above:
            declared = Declaration(one.pattern, decode_rule(one.rule), "")
            found += declarations_at([declared], stack.path_names[len(above) :])
    return found


def _declarations(records: Sequence[store.BreakpointRecord]) -> list[Declaration]:
    return [Declaration(one.pattern, decode_rule(one.rule), "") for one in records]


def _entry(locked: stack_locks.LockedStack, by: Answer, kind: str, row: Json) -> Entry:
    return Entry(
        stack_id=locked.id, hook_id=None, kind=kind, by=by.by.name, channel=by.channel,
        at=locked.now, principal=by.by.id, token_id=by.by.token_id,
        address=by.address, reason=by.reason,
        data={"id": str(row["id"]), "at": row["pattern"], "rule": row["rule"]},
    )  # fmt: skip


def run_to_declarations(name: str) -> list[Declaration]:
    """The breakpoints of "run to here": before all operations on a resource."""
    return [Declaration(escape_glob(name), Rule(point), "run-to") for point in PRE_POINTS]
