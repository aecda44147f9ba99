"""All that a person wants to see of one resource, hidden values masked. Nothing is changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import HeadgateError, NotFound
from engine.hooks.rule import Rule, decode_rule, decode_rules
from engine.hot.globs import matches
from engine.store.database import Database
from engine.store.inspecting import (
    InspectedNode,
    Live,
    read_inspected_nodes,
    read_latest_hooks,
    read_live,
    read_more,
)
from engine.store.records import HookRecord, NodeRecord, ResourceRecord, StackRecord
from engine.store.resources import read_resources
from engine.types.registry import Registry
from engine.words import Direction, Json, State
from engine.work.notices import masked, notice
from engine.work.opening import Notice
from engine.work.prepare import Unresolved, prepare

#: Hooks of the resource that are shown, the newest.
HOOKS = 10
_ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED, State.DROPPED})


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the current traversal. wanted: what its operation is to make of the resource, and
    what differs; None: that is not known yet, or any more. waiting_for: names."""

    node: NodeRecord
    wanted: Notice | None
    waiting_for: Sequence[str]


@dataclass(frozen=True, slots=True)
class SetBreakpoint:
    """source: ``operator``, ``live``, ``step`` (somebody steps), ``request`` (of this change), or
    ``written`` in template or environment. live: where somebody set it, which."""

    rule: Rule
    source: str
    live: Live | None = None


@dataclass(frozen=True, slots=True)
class Inspected:
    """row: None: it is yet to be, or is no more. properties: as applied last, masked."""

    name: str
    type: str
    row: ResourceRecord | None
    properties: Mapping[str, Json]
    required_by: Sequence[str]
    steps: Sequence[Step]
    breakpoints: Sequence[SetBreakpoint]
    hooks: Sequence[HookRecord]


class Inspecting:
    def __init__(self, database: Database, registry: Registry) -> None:
        self._database = database
        self._registry = registry

    async def resource(self, stack: StackRecord, name: str) -> Inspected:
        """NotFound (code ResourceNotFound): nothing has this name, and nothing is done to it."""
        async with self._database.snapshot() as conn:
            rows = await read_resources(conn, stack.id, name)
            nodes = await read_inspected_nodes(conn, stack.id, name)
            more = await read_more(conn, stack.id, name)
            hooks = await read_latest_hooks(conn, stack.id, name, HOOKS)
            live = await read_live(conn, stack.id)
        row = rows[0] if rows else None
        if row is None and not nodes:
            raise NotFound(
                f"The Resource ({name}) could not be found in Stack {stack.name}.",
                remedy="GET .../graph has those of the current change, too.",
                code="ResourceNotFound",
            )
        path = "/".join(filter(None, (stack.path, name)))
        here = [one for one in live if _leads(one.pattern, path)]
        return Inspected(
            name=name,
            type=row.type if row else nodes[0].node.type,
            row=row,
            properties=self._masked(row) if row else {},
            required_by=more.required_by,
            steps=[Step(one.node, self._wanted(one), one.waiting_for) for one in nodes],
            breakpoints=list(_breakpoints(nodes, decode_rules(more.rules), here)),
            hooks=hooks,
        )

    def _masked(self, row: ResourceRecord) -> Mapping[str, Json]:
        said = row.shown if row.shown is not None else row.properties
        try:
            return masked(said or {}, self._registry.get(row.type).schema)
        except NotFound:  # a type that this server has no more: who knows what it hides
            return dict(row.shown or {})

    def _wanted(self, one: InspectedNode) -> Notice | None:
        """As the notice of a hook would say it; nobody knows before what it reads is there."""
        static = (one.work.definition or {}).get("static")
        ended = one.node.state in _ENDED
        early = one.node.state == State.WAITING and not static
        if ended or (early and one.node.direction == Direction.FORWARD):
            return None
        try:
            return notice(prepare(one.work, self._registry))
        except (Unresolved, HeadgateError):
            return None


def _breakpoints(
    nodes: Sequence[InspectedNode], lasting: Sequence[Rule], live: Sequence[Live]
) -> Iterator[SetBreakpoint]:
    """By point, each once: those of the change under way, then what only later ones will meet."""
    by_rule = {decode_rule(one.rule): one for one in live}
    ahead = [rule for one in nodes for rule in decode_rules(one.node.rules)]
    seen: set[str] = set()
    for rule in (*ahead, *by_rule, *lasting):
        if rule.point in seen:
            continue
        seen.add(rule.point)
        yield SetBreakpoint(rule, _source(rule, by_rule, lasting), by_rule.get(rule))


def _source(rule: Rule, live: Mapping[Rule, Live], lasting: Sequence[Rule]) -> str:
    if rule.by_operator:
        return "operator"
    if rule.stepped:
        return "step"
    if rule in live:
        return "live"
    return "written" if rule in lasting else "request"


def _leads(pattern: str, path: str) -> bool:
    """Whether a path of globs, one for each level, names a resource."""
    globs, names = pattern.split("/"), path.split("/")
    return len(globs) == len(names) and all(map(matches, names, globs))
