"""The desired state of a stack, and the part of its current state that a change concerns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from engine.hooks.precedence import Breakpoints
from engine.hooks.rule import decode_rule, encode_rule
from engine.hooks.rule_patterns import pattern_at
from engine.hooks.rule_reader import Declaration
from engine.plan.draft import ExistingResource, Options
from engine.plan.drift import ConvergeRound
from engine.plan.graph import downstream
from engine.principal import Principal
from engine.service.requests.blueprint import Blueprint
from engine.store.connection import Connection
from engine.store.hooks.breakpoints import (
    read_live,
    read_resource_paths,
)
from engine.store.resources.current_resources import read_concerned, read_existing, read_settled
from engine.store.stacks.stack_locks import split_path
from engine.store.stacks.stack_rows import NewStack, StackHeader
from engine.store.traversals.start import NestedContext, ParentStep
from engine.words import Action, Json, Point


@dataclass(frozen=True, slots=True)
class CurrentState:
    """The resources of a stack that a change concerns.

    settled: names of resources that need no change; `rows` does not have them. has_rules: some of
    the settled ones have stored breakpoint rules. has_labels: some have a label. live: breakpoints
    of the live stack. nested: (path, type) of resources in nested stacks, if a breakpoint pattern
    can match them.
    """

    rows: Sequence[ExistingResource] = ()
    settled: frozenset[str] = frozenset()
    has_rules: bool = False
    live: Sequence[Declaration] = ()
    nested: Sequence[tuple[str, str]] = ()
    has_labels: bool = False

    def types_by_path(self) -> list[tuple[str, str]]:
        """(path, type) of the existing resources."""
        return [*((row.name, row.type) for row in self.rows), *self.nested]


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The template version that a traversal has as its target, and the options of the change.

    number, version: of the traversal and of the template version. stored: the version is stored
    already. cleared_breakpoints: ``resource:point`` patterns of breakpoints to skip. kept: snapshot
    data by resource name, for a restore; overrides: adopted values, also for a rollback.
    wanted_plan: the digest of the plan that the requester has seen, or "". refuses: raise Invalid
    for a plan with problems; False: its forbidden nodes fail. credential: the cloud credential that
    the operations use. parent_step: the step of the parent stack that starts this traversal; None
    for a root stack. header: of the stack, if it is known. new_stack: the stack, if it does not
    exist yet. excluded: as in `Rule`. moved: earlier names by the names of resources that this
    change moves. round: of a converge with several.
    """

    stack_id: UUID
    action: Action
    number: int
    version: int
    blueprint: Blueprint
    current: CurrentState
    requested_by: Principal
    stored: bool = False
    cleared_breakpoints: Sequence[str] = ()
    options: Options = field(default_factory=Options)
    kept: Mapping[str, Json] = field(default_factory=dict)
    overrides: Mapping[str, Json] = field(default_factory=dict)
    wanted_plan: str = ""
    refuses: bool = True
    credential: str = field(default="", repr=False)
    parent_step: ParentStep | None = None
    header: StackHeader | None = None
    new_stack: NewStack | None = None
    excluded: Sequence[str] = ()
    moved: Mapping[str, str] = field(default_factory=dict)
    round: ConvergeRound | None = None

    @property
    def size(self) -> int:
        """The number of resources of the template and of existing rows to compare with it."""
        return len(self.blueprint.definition.resources) + len(self.current.rows)

    def selected_names(self) -> list[str] | None:
        """Sorted names of the resources that a partial update may change; None for all."""
        chosen = self.options.chosen
        if chosen is None:
            return None
        names = {*self.blueprint.definition.resources, *(row.name for row in self.current.rows)}
        return sorted(filter(chosen, names))

    def nested_context(self) -> NestedContext:
        """The parent's step, and the breakpoints that this change passes on to nested stacks."""
        blueprint = self.blueprint
        declared = [(one, False) for one in (*blueprint.by_template, *blueprint.by_environment)]
        declared += [(one, True) for one in blueprint.by_request]
        passed_on = [
            {"pattern": one.pattern, "rule": encode_rule(one.rule), "requested": by_request}
            for one, by_request in declared
            if "/" in one.pattern
        ]
        return NestedContext(self.parent_step, passed_on, self.cleared_breakpoints, self.excluded)


async def read_current_state(
    conn: Connection, stack_id: UUID, blueprint: Blueprint, also: Collection[str] = ()
) -> CurrentState:
    """The current state, with the rows that a change to the blueprint can concern.

    Rows that need no change, and that no changed resource reads or requires, are only counted, so
    that the cost of an update does not grow with the unchanged resources. also: names of resources
    that change in any case.
    """
    wanted = blueprint.definition.resources
    plain = await read_settled(conn, stack_id)
    changed = _changed_resources(blueprint, plain.digests, also)
    required = {one for name in changed for one in wanted[name].requires}
    gone = {name for name in plain.digests if name not in wanted}
    rows = await read_concerned(conn, stack_id, changed | required | gone, plain)
    live = await live_breakpoints(conn, stack_id)
    nested = await _read_matchable(conn, stack_id, blueprint)
    return CurrentState(
        rows,
        frozenset(wanted).difference(changed, required),
        plain.has_rules,
        live,
        nested,
        plain.has_labels,
    )


def _changed_resources(
    blueprint: Blueprint, digests: Mapping[str, str], also: Collection[str]
) -> set[str]:
    """Names of the resources that need a change, and of those that read one of them, directly or
    not. digests: of the resources that are complete. also: see `read_current_state`."""
    wanted = blueprint.definition.resources
    changed = {
        name for name, one in wanted.items() if one.reads_data or digests.get(name) != one.digest
    }
    changed.update(name for name in (*also, *_with_update_hooks(blueprint)) if name in wanted)
    return downstream({name: one.reads for name, one in wanted.items() if one.reads}, changed)


async def read_whole_state(conn: Connection, stack_id: UUID, blueprint: Blueprint) -> CurrentState:
    """The current state with all rows."""
    rows = await read_existing(conn, stack_id)
    live = await live_breakpoints(conn, stack_id)
    return CurrentState(rows, live=live, nested=await _read_matchable(conn, stack_id, blueprint))


async def _read_matchable(
    conn: Connection, stack_id: UUID, blueprint: Blueprint
) -> Sequence[tuple[str, str]]:
    """(path, type) of resources in nested stacks, if a breakpoint has a path pattern. The change
    may be about to delete them."""
    declared = (*blueprint.by_request, *blueprint.by_environment, *blueprint.by_template)
    if not any("/" in one.pattern for one in declared):
        return ()
    return await read_resource_paths(conn, stack_id)


async def live_breakpoints(conn: Connection, stack_id: UUID) -> list[Declaration]:
    """The breakpoints of the live stack, oldest first, after those of its parent stacks that match
    resources of this stack."""
    return [
        Declaration(pattern, decode_rule(one.rule), f"breakpoint {one.id}")
        for one in await read_live(conn, stack_id)
        if (pattern := pattern_at(one.pattern, split_path(one.path))) is not None
    ]


def _with_update_hooks(blueprint: Blueprint) -> list[str]:
    """Resources with a short pre-update hook, also in nested stacks: it opens even without a
    change."""
    resources = blueprint.definition.resources
    if not blueprint.has_rules:
        return [name for name, one in resources.items() if one.pauses_every_update]
    breakpoints = Breakpoints(blueprint.by_request, blueprint.by_environment, blueprint.by_template)
    return [
        name
        for name, one in resources.items()
        if one.pauses_every_update
        or any(
            rule.short and rule.point == Point.PRE_UPDATE for rule in breakpoints.find_rules(name)
        )
    ]
