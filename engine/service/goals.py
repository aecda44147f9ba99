"""What a stack is to become, and what there is of it that this concerns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from engine.hooks.matching import Breakpoints, led
from engine.hooks.reading import Declaration
from engine.hooks.rule import decode_rule, encode_rule
from engine.plan.draft import Existing, Options
from engine.plan.graph import downstream
from engine.service.blueprint import Blueprint
from engine.store.begin import Below, Within
from engine.store.breakpoints import (
    read_breakpoints,
    read_breakpoints_around,
    read_inside,
)
from engine.store.connection import Connection
from engine.store.existing import read_concerned, read_plain
from engine.words import Action, Json, Point


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a stack. settled: names whose rows are as wanted, left out of `rows`.

    kept: breakpoints stay with some of the settled. live: breakpoints set on the live stack.
    inside: path and type of what is in stacks inside, where a breakpoint may mean it.
    """

    rows: Sequence[Existing] = ()
    settled: frozenset[str] = frozenset()
    kept: bool = False
    live: Sequence[Declaration] = ()
    inside: Sequence[tuple[str, str]] = ()

    def there(self) -> list[tuple[str, str]]:
        """Path and type of resources that exist."""
        return [*((row.name, row.type) for row in self.rows), *self.inside]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a stack is to become, and at whose request.

    stored: the version is in the store already. cleared: breakpoints left out, as
    ``resource:point`` patterns. wanted_plan: the digest of the plan that its author saw, or "".
    refuses: a plan with problems is refused; else its nodes fail where they may not go on.
    credential: what it is to act with in the cloud. within: the step of the stack around that it is
    for; None: its stack is the outermost.
    """

    stack_id: UUID
    action: Action
    number: int
    version: int
    blueprint: Blueprint
    found: Found
    requested_by: str
    stored: bool = False
    cleared: Sequence[str] = ()
    options: Options = field(default_factory=Options)
    kept: Mapping[str, Json] = field(default_factory=dict)
    wanted_plan: str = ""
    refuses: bool = True
    credential: str = field(default="", repr=False)
    within: Within | None = None

    def below(self) -> Below:
        """What this change says of stacks inside of its resources."""
        blueprint = self.blueprint
        said = [(one, False) for one in (*blueprint.by_template, *blueprint.by_environment)]
        said += [(one, True) for one in blueprint.asked]
        asked = [
            {"pattern": one.pattern, "rule": encode_rule(one.rule), "asked": asked}
            for one, asked in said
            if "/" in one.pattern
        ]
        return Below(self.within, asked, self.cleared)


async def find(
    conn: Connection, stack_id: UUID, blueprint: Blueprint, also: Collection[str] = ()
) -> Found:
    """The rows that a change toward the blueprint may concern.

    Those that are as wanted, and that nothing changed reads or requires, are only counted: what
    an update costs should not grow with what it leaves alone. also: names that change anyway.
    """
    wanted = blueprint.definition.resources
    plain = await read_plain(conn, stack_id)
    settled = {
        name
        for name, digest in plain.digests.items()
        if name in wanted and wanted[name].digest == digest
    }
    settled -= {*also, *_asked_anyway(blueprint)}
    changed = downstream({name: one.reads for name, one in wanted.items()}, wanted.keys() - settled)
    required = {one for name in changed for one in wanted[name].requires}
    gone = plain.digests.keys() - wanted.keys()
    rows = await read_concerned(conn, stack_id, changed | required | gone)
    live = await live_breakpoints(conn, stack_id)
    inside = await read_meant(conn, stack_id, blueprint)
    return Found(rows, frozenset(settled - changed - required), plain.kept, live, inside)


async def read_meant(
    conn: Connection, stack_id: UUID, blueprint: Blueprint
) -> Sequence[tuple[str, str]]:
    """What is in stacks inside, if breakpoints with paths may mean it: it may be about to go."""
    said = (*blueprint.asked, *blueprint.by_environment, *blueprint.by_template)
    if not any("/" in one.pattern for one in said):
        return ()
    return await read_inside(conn, stack_id)


async def live_breakpoints(conn: Connection, stack_id: UUID) -> list[Declaration]:
    """Those that were set on the live stack, the first set first; before them those that were set
    on a stack around it and reach into this one."""
    own = [
        Declaration(one.pattern, decode_rule(one.rule), f"breakpoint {one.id}")
        for one in await read_breakpoints(conn, stack_id)
    ]
    around = [
        Declaration(pattern, decode_rule(one.rule), f"breakpoint {one.id}")
        for one in await read_breakpoints_around(conn, stack_id)
        if (pattern := led(one.pattern, one.path.split("/"))) is not None
    ]
    return [*around, *own]


def _asked_anyway(blueprint: Blueprint) -> list[str]:
    """Resources with a short pre-update hook, perhaps inside: it asks even if nothing changes."""
    asking = Breakpoints(blueprint.asked, blueprint.by_environment, blueprint.by_template)
    return [
        name
        for name, one in blueprint.definition.resources.items()
        if one.asks
        or any(rule.short and rule.point == Point.PRE_UPDATE for rule in asking.of(name))
    ]
