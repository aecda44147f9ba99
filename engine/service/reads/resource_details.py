"""The details of one resource, with secret values masked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import HeadgateError, NotFound
from engine.hooks.rule import Rule, decode_rule, decode_rules
from engine.hot.syntax.globs import matches_glob
from engine.node.node import ENDED
from engine.service.reads.observed_resource import ObservedResourceState, read_observed_state
from engine.store.database import Database
from engine.store.hooks.hook_lists import read_latest_hooks
from engine.store.records import HookRecord, NodeRecord, ResourceRecord, StackRecord
from engine.store.resources.resource_reads import (
    LiveBreakpoint,
    NodeDetails,
    read_live_breakpoints,
    read_node_details,
    read_resource_rules,
    read_resources,
)
from engine.types.registry import TypeRegistry
from engine.words import Direction, Json, State
from engine.work.nodes.hook_opening import NotificationData
from engine.work.nodes.prepare import UnresolvedProperties, prepare
from engine.work.nodes.visible_properties import mask_properties, notification_data

#: Maximum number of hooks of a resource to return, newest first.
HOOKS = 10


@dataclass(frozen=True, slots=True)
class CurrentNode:
    """A node of the current traversal. wanted: the desired properties and their differences; None
    before they are known and after the node has ended. waiting_for: names of resources. restarts:
    how often the operation was called again after the loss of its process."""

    node: NodeRecord
    wanted: NotificationData | None
    waiting_for: Sequence[str]
    operation_key: UUID | None
    restarts: int


@dataclass(frozen=True, slots=True)
class EffectiveBreakpoint:
    """A breakpoint that applies to a resource. source: ``operator``, ``live``, ``step`` (step
    mode), ``request`` (of this change), or ``definition`` (template or environment). live: the
    record, if a user set it on the live stack."""

    rule: Rule
    source: str
    live: LiveBreakpoint | None = None


@dataclass(frozen=True, slots=True)
class ResourceDetails:
    """row: None if the resource does not exist yet or was deleted. properties: as applied last,
    masked. observed: None: it has no physical resource, or cannot be observed."""

    name: str
    type: str
    row: ResourceRecord | None
    properties: Mapping[str, Json]
    required_by: Sequence[str]
    steps: Sequence[CurrentNode]
    breakpoints: Sequence[EffectiveBreakpoint]
    hooks: Sequence[HookRecord]
    observed: ObservedResourceState | None = None


class ResourceInspection:
    def __init__(self, database: Database, registry: TypeRegistry) -> None:
        self._database = database
        self._registry = registry

    async def resource(self, stack: StackRecord, name: str) -> ResourceDetails:
        """Raises NotFound (ResourceNotFound) if neither a resource nor a current node has the name.
        A deleted stack has no current nodes, although its last graph may not be archived yet."""
        async with self._database.snapshot() as conn:
            rows = await read_resources(conn, stack.id, name)
            nodes = await read_node_details(conn, stack.id, name)
            more = await read_resource_rules(conn, stack.id, name)
            hooks = await read_latest_hooks(conn, stack.id, name, HOOKS)
            live = await read_live_breakpoints(conn, stack.id)
            row = rows[0] if rows else None
            observed = (
                None if row is None
                else await read_observed_state(conn, stack, row, self._registry)
            )  # fmt: skip
        if row is None and (not nodes or stack.deleted_at is not None):
            raise NotFound(
                f"The Resource ({name}) could not be found in Stack {stack.name}.",
                place="resource",
                remedy="GET .../graph also lists the resources of the current change.",
                code="ResourceNotFound",
            )
        path = "/".join(filter(None, (stack.path, name)))
        matching = [one for one in live if _matches(one.pattern, path)]
        return ResourceDetails(
            name=name,
            type=row.type if row else nodes[0].node.type,
            row=row,
            properties=self._mask_row(row) if row else {},
            required_by=more.required_by,
            steps=[self._step(one) for one in nodes],
            breakpoints=list(_breakpoints(nodes, decode_rules(more.rules), matching)),
            hooks=hooks,
            observed=observed,
        )

    def _mask_row(self, row: ResourceRecord) -> Mapping[str, Json]:
        properties = row.masked_properties if row.masked_properties is not None else row.properties
        try:
            return mask_properties(properties or {}, self._registry.get(row.type).schema)
        except NotFound:  # the type is no longer installed: which properties are secret is unknown
            return dict(row.masked_properties or {})

    def _step(self, node: NodeDetails) -> CurrentNode:
        work = node.work
        wanted = self._desired_properties(node)
        return CurrentNode(node.node, wanted, node.waiting_for, work.operation_key, work.restarts)

    def _desired_properties(self, node: NodeDetails) -> NotificationData | None:
        """The desired properties as in a hook notification; None while their inputs are unknown."""
        static = (node.work.definition or {}).get("static")
        ended = node.node.state in ENDED
        early = node.node.state == State.WAITING and not static
        if ended or (early and node.node.direction == Direction.FORWARD):
            return None
        try:
            return notification_data(prepare(node.work, self._registry))
        except (UnresolvedProperties, HeadgateError):
            return None


def _breakpoints(
    nodes: Sequence[NodeDetails], lasting: Sequence[Rule], live: Sequence[LiveBreakpoint]
) -> Iterator[EffectiveBreakpoint]:
    """One breakpoint for each point: of the current change first, then those of later changes."""
    by_rule = {decode_rule(one.rule): one for one in live}
    ahead = [rule for one in nodes for rule in decode_rules(one.node.rules)]
    seen: set[str] = set()
    for rule in (*ahead, *by_rule, *lasting):
        if rule.point in seen:
            continue
        seen.add(rule.point)
        yield EffectiveBreakpoint(rule, _source(rule, by_rule, lasting), by_rule.get(rule))


def _source(rule: Rule, live: Mapping[Rule, LiveBreakpoint], lasting: Sequence[Rule]) -> str:
    if rule.by_operator:
        return "operator"
    if rule.stepped:
        return "step"
    if rule in live:
        return "live"
    return "definition" if rule in lasting else "request"


def _matches(pattern: str, path: str) -> bool:
    """Whether a path of globs, one for each level, matches the path of a resource."""
    globs, names = pattern.split("/"), path.split("/")
    return len(globs) == len(names) and all(map(matches_glob, names, globs))
