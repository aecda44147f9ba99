"""The details of one resource, with secret values masked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import HeadgateError, NotFound
from engine.hooks.rule import Rule, decode_rule, decode_rules
from engine.hot.syntax.globs import matches_glob
from engine.store.database import Database
from engine.store.records import HookRecord, NodeRecord, ResourceRecord, StackRecord
from engine.store.resources import (
    InspectedNode,
    Live,
    read_inspected_nodes,
    read_latest_hooks,
    read_live,
    read_more,
    read_resources,
)
from engine.types.registry import Registry
from engine.words import Direction, Json, State
from engine.work.hook_opening import Notice
from engine.work.prepare import Unresolved, prepare
from engine.work.visible_properties import masked, notice

#: The most hooks of a resource that are returned, newest first.
HOOKS = 10
_ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED, State.DROPPED})


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the current traversal. wanted: the desired properties and their differences; None
    before they are known and after the node has ended. waiting_for: names of resources. restarts:
    how often the operation was called again after the loss of its process."""

    node: NodeRecord
    wanted: Notice | None
    waiting_for: Sequence[str]
    operation_key: UUID | None
    restarts: int


@dataclass(frozen=True, slots=True)
class SetBreakpoint:
    """A breakpoint that applies to a resource. source: ``operator``, ``live``, ``step`` (step
    mode), ``request`` (of this change), or ``written`` (template or environment). live: the record,
    if a user set it on the live stack."""

    rule: Rule
    source: str
    live: Live | None = None


@dataclass(frozen=True, slots=True)
class ResourceDetails:
    """row: None if the resource does not exist yet or was deleted. properties: as applied last,
    masked."""

    name: str
    type: str
    row: ResourceRecord | None
    properties: Mapping[str, Json]
    required_by: Sequence[str]
    steps: Sequence[Step]
    breakpoints: Sequence[SetBreakpoint]
    hooks: Sequence[HookRecord]


class ResourceInspection:
    def __init__(self, database: Database, registry: Registry) -> None:
        self._database = database
        self._registry = registry

    async def resource(self, stack: StackRecord, name: str) -> ResourceDetails:
        """Raises NotFound (ResourceNotFound) if neither a resource nor a current node has the
        name."""
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
                remedy="GET .../graph also lists the resources of the current change.",
                code="ResourceNotFound",
            )
        path = "/".join(filter(None, (stack.path, name)))
        matching = [one for one in live if _matches(one.pattern, path)]
        return ResourceDetails(
            name=name,
            type=row.type if row else nodes[0].node.type,
            row=row,
            properties=self._masked(row) if row else {},
            required_by=more.required_by,
            steps=[self._step(one) for one in nodes],
            breakpoints=list(_breakpoints(nodes, decode_rules(more.rules), matching)),
            hooks=hooks,
        )

    def _masked(self, row: ResourceRecord) -> Mapping[str, Json]:
        properties = row.shown if row.shown is not None else row.properties
        try:
            return masked(properties or {}, self._registry.get(row.type).schema)
        except NotFound:  # the type is no longer installed: which properties are secret is unknown
            return dict(row.shown or {})

    def _step(self, one: InspectedNode) -> Step:
        work = one.work
        wanted = self._wanted(one)
        return Step(one.node, wanted, one.waiting_for, work.operation_key, work.restarts)

    def _wanted(self, one: InspectedNode) -> Notice | None:
        """The desired properties as in a hook notification; None while their inputs are unknown."""
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
    """One breakpoint for each point: of the current change first, then those of later changes."""
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


def _matches(pattern: str, path: str) -> bool:
    """Whether a path of globs, one for each level, matches the path of a resource."""
    globs, names = pattern.split("/"), path.split("/")
    return len(globs) == len(names) and all(map(matches_glob, names, globs))
