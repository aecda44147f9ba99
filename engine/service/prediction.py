"""A plan told before it is carried out: what each node will do, as far as it can be known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from engine.hot.definition import DefinedResource, Definition, fill_defaults
from engine.hot.function import Wrong
from engine.hot.resolve import MASK
from engine.plan.change import Actual, Change
from engine.plan.draft import Existing, Plan, PlannedNode
from engine.plan.graph import ordered
from engine.plan.predict import (
    UNKNOWN,
    Foresight,
    Known,
    Predicted,
    Stop,
    foreseen,
    known_after,
    predicted,
    stops,
)
from engine.store.records import PlannedRecord
from engine.types.contract import ResourceType
from engine.types.registry import Registry
from engine.words import (
    GATES,
    VISITS,
    DeletionPolicy,
    Direction,
    Json,
    Operation,
    ResourceAction,
    Restriction,
    Status,
)
from engine.work.notices import masked
from engine.work.prepare import refusal, unchangeable

#: What a resource meets, in the words of the Orchestration API.
KINDS: Mapping[Operation | None, str] = {
    None: "unchanged",
    Operation.CREATE: "added",
    Operation.ADOPT: "added",
    Operation.UPDATE: "updated",
    Operation.RESUME: "updated",
    Operation.REPLACE: "replaced",
    Operation.DELETE: "deleted",
}


@dataclass(frozen=True, slots=True)
class Previewed:
    """One resource. kind: unchanged, added, updated, replaced, deleted.

    changes: by property {"from", "to"}, masked; "to" is left out where it is unknown. certain:
    False when an unknown value may still turn an update into a replacement, or into nothing.
    denied: why it will be refused when it comes to it: restricted, protected, external. inside:
    what becomes of the stack inside, where that can be known.
    """

    name: str
    type: str
    kind: str
    certain: bool
    physical_id: str | None
    changes: Mapping[str, Json]
    unknown: Sequence[str]
    requires: Sequence[str]
    denied: str | None = None
    inside: "Preview | None" = None


@dataclass(frozen=True, slots=True)
class Preview:
    """stops: in the order in which they come, those inside among them. digest: send it along to
    have just this plan. name, stack_id, path: of the stack; stack_id None: it is not there yet."""

    resources: Sequence[Previewed]
    stops: Sequence[Stop]
    stale: Sequence[str]
    digest: str
    name: str = ""
    stack_id: UUID | None = None
    path: Sequence[str] = ()


EMPTY: Final[Mapping[str, Preview]] = {}


class Prediction:
    """Walks a plan in its order, and says of each node what it will do. values: by name, what the
    properties of resources will be, UNKNOWN where that cannot be told."""

    def __init__(
        self,
        registry: Registry,
        planned: Plan,
        definition: Definition,
        restricted: Callable[[str], frozenset[Restriction]],
        existing: Sequence[Existing],
        rows: Sequence[PlannedRecord],
    ) -> None:
        self._registry = registry
        self._plan = planned
        self._definition = definition
        self._restricted = restricted
        self._existing = existing
        self._rows = {row.id: row for row in rows}
        self._known = {
            row.name: Known(row.reference or row.name, row.attributes)
            for row in rows
            if row.replaced_by is None
        }
        self._replaced: set[str] = set()
        self._said: dict[int, tuple[Operation | None, bool]] = {}
        self._shown: dict[str, Previewed] = {}
        self.values: dict[str, Mapping[str, Json]] = {}

    def walk(self) -> list[Previewed]:
        """What becomes of each resource, by name."""
        nodes = self._plan.nodes
        for index in ordered({index: node.after for index, node in enumerate(nodes)}):
            self._said[index] = self._walk(nodes[index])
        for row in self._existing:
            if row.replaced_by is None and row.name not in self._shown:
                self._shown[row.name] = self._untouched(row)
        return [self._shown[name] for name in sorted(self._shown)]

    def preview(self, inside: Mapping[str, Preview] = EMPTY) -> Preview:
        """inside: of stacks inside, by name of the resource."""
        return Preview(
            [replace(self._shown[name], inside=inside.get(name)) for name in sorted(self._shown)],
            stops(self._plan, self._said, {name: one.stops for name, one in inside.items()}),
            self._plan.stale,
            self._plan.digest,
        )

    def _untouched(self, row: Existing) -> Previewed:
        return Previewed(
            row.name, row.type, KINDS[None], True, row.physical_id, {}, (), self._requires(row.name)
        )

    def _requires(self, name: str) -> Sequence[str]:
        wanted = self._definition.resources.get(name)
        return sorted(wanted.requires) if wanted else ()

    def _walk(self, node: PlannedNode) -> tuple[Operation | None, bool]:
        if node.operation in GATES:
            return node.operation, True
        if node.direction is Direction.CLEANUP:
            return self._cleaned(node)
        if node.operation in VISITS:
            row = self._rows.get(node.resource_id)
            self._show(node, row, Predicted(Change(node.operation), True), {})
            return node.operation, True
        return self._forward(node)

    def _cleaned(self, node: PlannedNode) -> tuple[Operation | None, bool]:
        if node.only_if_replaced:
            gone = node.name in self._replaced
            certain = not gone or self._shown[node.name].certain
            return (self._goes_by(node) if gone else None), certain
        row = self._rows.get(node.resource_id)
        if row is not None and row.replaced_by is None and node.operation is Operation.DELETE:
            self._show(node, row, Predicted(Change(Operation.DELETE), True), {})
        return self._goes_by(node), True

    def _goes_by(self, node: PlannedNode) -> Operation | None:
        """What is done to a row that goes: by its policy, perhaps nothing."""
        row = self._rows.get(node.resource_id)
        policy = row.deletion_policy if row else DeletionPolicy.DELETE
        if node.retained or policy == DeletionPolicy.RETAIN:
            return None
        if node.operation is Operation.SNAPSHOT and policy != DeletionPolicy.SNAPSHOT:
            return None
        return node.operation

    def _forward(self, node: PlannedNode) -> tuple[Operation | None, bool]:
        row = self._rows.get(node.resource_id)
        wanted = self._definition.resources[node.name]
        type_ = self._registry.get(wanted.type)
        properties = self._properties(wanted, type_)
        self.values[node.name] = properties
        if node.operation is Operation.ADOPT:
            said = Predicted(Change(Operation.ADOPT, frozenset(properties)), True)
        else:
            said = predicted(
                _actual(row),
                wanted.type,
                type_.schema,
                properties,
                replaces_broken=type_.replaces_broken,
                mends=type_.mends,
                restores=False,
                nests=type_.nests,
            )
        before = self._known.get(node.name, Known())
        self._known[node.name] = known_after(before, said.change.operation)
        if said.change.operation is Operation.REPLACE:
            self._replaced.add(node.name)
        self._show(node, row, said, properties)
        return said.change.operation, said.certain

    def _properties(self, wanted: DefinedResource, type_: ResourceType) -> dict[str, Json]:
        try:
            found = foreseen(wanted.properties, Foresight(self._known))
        except Wrong:
            return {"": UNKNOWN}  # it will fail, when its values are there
        return fill_defaults(type_.schema, found)

    def _show(
        self,
        node: PlannedNode,
        row: PlannedRecord | None,
        said: Predicted,
        properties: Mapping[str, Json],
    ) -> None:
        schema = self._registry.get(node.type).schema
        wanted = self._definition.resources.get(node.name)
        secret = wanted is not None and wanted.masked_properties is not None
        before = masked((row.shown or row.properties or {}) if row else {}, schema)
        after = masked({name: MASK if secret else value for name, value in properties.items()
                        if value is not UNKNOWN}, schema)  # fmt: skip
        changes: dict[str, Json] = {}
        for name in sorted(said.change.changed):
            one = {"from": MASK if secret and name in before else before.get(name)} if row else {}
            changes[name] = one | ({"to": after.get(name)} if name not in said.unknown else {})
        self._shown[node.name] = Previewed(
            name=node.name,
            type=node.type,
            kind=KINDS[said.change.operation],
            certain=said.certain,
            physical_id=row.physical_id if row else None,
            changes=changes if said.change.operation in _CHANGING else {},
            unknown=[name for name in said.unknown if name],
            requires=self._requires(node.name),
            denied=self._denied(node, row, said),
        )

    def _denied(self, node: PlannedNode, row: PlannedRecord | None, said: Predicted) -> str | None:
        if fixed := said.change.fixed.difference(said.unknown):
            return unchangeable(node.name, node.type, fixed)
        wanted = self._definition.resources.get(node.name)
        return refusal(
            node.name,
            said.change.operation,
            restricted=self._restricted(node.name),
            protected=row is not None and row.protected,
            external_id=wanted.external_id if wanted else None,
            physical_id=row.physical_id if row else None,
        )


_CHANGING = (Operation.CREATE, Operation.UPDATE, Operation.REPLACE)


def _actual(row: PlannedRecord | None) -> Actual | None:
    if row is None:
        return None
    return Actual(
        type=row.type,
        action=ResourceAction(row.action),
        status=Status(row.status),
        physical_id=row.physical_id,
        properties=row.properties,
        broken=row.broken,
        replaced=row.replaced_by is not None,
    )
