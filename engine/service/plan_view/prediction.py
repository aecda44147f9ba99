"""Predicts the effect of each node of a plan, as far as property values are known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from engine.hot.definition.stack import ResourceDefinition, StackDefinition, fill_defaults
from engine.hot.expressions.masking import MASK, contains_mask
from engine.hot.functions.function import FunctionError
from engine.plan.change import Actual, Change
from engine.plan.draft import Existing, Plan, PlannedNode
from engine.plan.dry_run import (
    UNKNOWN,
    ExpectedChange,
    ExpectedHook,
    KnownValues,
    KnownView,
    expected_change,
    expected_hooks,
    known_after,
    known_properties,
)
from engine.store.records import PlannedRecord
from engine.topological_order import ordered
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
from engine.work.prepare import refusal, unchangeable
from engine.work.visible_properties import masked

#: Kinds of change, in the terms of the Orchestration API.
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
class PreviewedResource:
    """The predicted change of a resource. kind: unchanged, added, updated, replaced, deleted.

    changes: by property {"from", "to"}, masked; without "to" if the value is unknown. certain:
    False if an unknown value can turn the update into a replacement or into no change. unknown:
    properties with unknown values. denied: why the operation will fail (restricted, protected,
    external); None if it will not. nested: the preview of the nested stack, if it is known.
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
    nested: "Preview | None" = None


@dataclass(frozen=True, slots=True)
class Preview:
    """A dry run of a stack. expected_hooks: the hooks that will wait, in plan order, with those of
    nested stacks. stale: resources that stay out of date. digest: a request with it is refused if
    the plan has changed. name, stack_id, path: of the stack; stack_id: None if it does not exist
    yet."""

    resources: Sequence[PreviewedResource]
    expected_hooks: Sequence[ExpectedHook]
    stale: Sequence[str]
    digest: str
    name: str = ""
    stack_id: UUID | None = None
    path: Sequence[str] = ()


EMPTY: Final[Mapping[str, Preview]] = {}


class Prediction:
    """Processes the nodes of a plan in topological order and predicts the operation of each.

    values: the predicted properties by resource name, UNKNOWN for unknown ones. secret: the names
    of the secret properties by resource name. Both are complete after `walk`.
    """

    def __init__(
        self,
        registry: Registry,
        planned: Plan,
        definition: StackDefinition,
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
            row.name: KnownValues(row.reference or row.name, row.attributes, row.secret or ())
            for row in rows
            if row.replaced_by is None
        }
        self._replaced: set[str] = set()
        self._operations: dict[int, tuple[Operation | None, bool]] = {}
        self._shown: dict[str, PreviewedResource] = {}
        self.values: dict[str, Mapping[str, Json]] = {}
        self.secret: dict[str, frozenset[str]] = {}

    def walk(self) -> list[PreviewedResource]:
        """The predicted change of each resource, in the order of their names."""
        nodes = self._plan.nodes
        for index in ordered({index: node.after for index, node in enumerate(nodes)}):
            self._operations[index] = self._predict(nodes[index])
        for row in self._existing:
            if row.replaced_by is None and row.name not in self._shown:
                self._shown[row.name] = self._unchanged(row)
        return [self._shown[name] for name in sorted(self._shown)]

    def preview(self, nested: Mapping[str, Preview] = EMPTY) -> Preview:
        """The preview; call `walk` first. nested: of nested stacks, by resource name."""
        return Preview(
            [replace(self._shown[name], nested=nested.get(name)) for name in sorted(self._shown)],
            expected_hooks(
                self._plan,
                self._operations,
                {name: one.expected_hooks for name, one in nested.items()},
            ),
            self._plan.stale,
            self._plan.digest,
        )

    def _unchanged(self, row: Existing) -> PreviewedResource:
        return PreviewedResource(
            row.name, row.type, KINDS[None], True, row.physical_id, {}, (), self._requires(row.name)
        )

    def _requires(self, name: str) -> Sequence[str]:
        wanted = self._definition.resources.get(name)
        return sorted(wanted.requires) if wanted else ()

    def _predict(self, node: PlannedNode) -> tuple[Operation | None, bool]:
        """(operation, whether it is certain); None for no operation."""
        if node.operation in GATES:
            return node.operation, True
        if node.direction is Direction.CLEANUP:
            return self._predict_cleanup(node)
        if node.operation in VISITS:
            row = self._rows.get(node.resource_id)
            self._show(node, row, ExpectedChange(Change(node.operation), True), {})
            return node.operation, True
        return self._predict_forward(node)

    def _predict_cleanup(self, node: PlannedNode) -> tuple[Operation | None, bool]:
        if node.only_if_replaced:
            replaced = node.name in self._replaced
            certain = not replaced or self._shown[node.name].certain
            return (self._cleanup_operation(node) if replaced else None), certain
        row = self._rows.get(node.resource_id)
        if row is not None and row.replaced_by is None and node.operation is Operation.DELETE:
            self._show(node, row, ExpectedChange(Change(Operation.DELETE), True), {})
        return self._cleanup_operation(node), True

    def _cleanup_operation(self, node: PlannedNode) -> Operation | None:
        """The operation by the deletion policy of the row; None for none."""
        row = self._rows.get(node.resource_id)
        policy = row.deletion_policy if row else DeletionPolicy.DELETE
        if node.retained or policy == DeletionPolicy.RETAIN:
            return None
        if node.operation is Operation.SNAPSHOT and policy != DeletionPolicy.SNAPSHOT:
            return None
        return node.operation

    def _predict_forward(self, node: PlannedNode) -> tuple[Operation | None, bool]:
        row = self._rows.get(node.resource_id)
        wanted = self._definition.resources[node.name]
        type_ = self._registry.get(wanted.type)
        properties = self._properties(wanted, type_)
        self.values[node.name] = properties
        self.secret[node.name] = self._secret(wanted, properties)
        if node.operation is Operation.ADOPT:
            prediction = ExpectedChange(Change(Operation.ADOPT, frozenset(properties)), True)
        else:
            prediction = expected_change(
                _actual(row),
                wanted.type,
                type_.schema,
                properties,
                replaces_tainted=type_.replaces_tainted,
                repairs=type_.repairs,
                restores=False,
                nests=type_.has_nested_stack,
            )
        before = self._known.get(node.name, KnownValues())
        self._known[node.name] = known_after(before, prediction.change.operation)
        if prediction.change.operation is Operation.REPLACE:
            self._replaced.add(node.name)
        self._show(node, row, prediction, properties)
        return prediction.change.operation, prediction.certain

    def _properties(self, wanted: ResourceDefinition, type_: ResourceType) -> dict[str, Json]:
        try:
            found = known_properties(wanted.properties, KnownView(self._known))
        except FunctionError:
            return {"": UNKNOWN}  # the operation will fail when its values are known
        return fill_defaults(type_.schema, found)

    def _secret(self, wanted: ResourceDefinition, properties: Mapping[str, Json]) -> frozenset[str]:
        """Names of the properties with secret values."""
        declared = wanted.secret_properties(properties)
        known = {name: self._known[name] for name in wanted.reads if name in self._known}
        if not any(one.secret for one in known.values()):
            return declared
        view = KnownView({name: one.masked() for name, one in known.items()})
        try:
            found = known_properties(wanted.properties, view, masked=True)
        except FunctionError:
            return frozenset(properties)
        hidden = frozenset(name for name, value in found.items() if contains_mask(value))
        return frozenset(properties) if "" in hidden else hidden | declared

    def _show(
        self,
        node: PlannedNode,
        row: PlannedRecord | None,
        prediction: ExpectedChange,
        properties: Mapping[str, Json],
    ) -> None:
        schema = self._registry.get(node.type).schema
        wanted = self._definition.resources.get(node.name)
        secret = self.secret.get(node.name, frozenset())
        if wanted is not None and wanted.masked_properties is not None:
            secret = frozenset(properties)
        before = masked((row.shown or row.properties or {}) if row else {}, schema)
        known = {name: value for name, value in properties.items() if value is not UNKNOWN}
        after = masked({**known, **dict.fromkeys(secret & known.keys(), MASK)}, schema)
        changes: dict[str, Json] = {}
        for name in sorted(prediction.change.changed):
            one = (
                {"from": MASK if name in secret and name in before else before.get(name)}
                if row
                else {}
            )
            changes[name] = one | (
                {"to": after.get(name)} if name not in prediction.unknown else {}
            )
        self._shown[node.name] = PreviewedResource(
            name=node.name,
            type=node.type,
            kind=KINDS[prediction.change.operation],
            certain=prediction.certain,
            physical_id=row.physical_id if row else None,
            changes=changes if prediction.change.operation in _CHANGING else {},
            unknown=[name for name in prediction.unknown if name],
            requires=self._requires(node.name),
            denied=self._denied(node, row, prediction),
        )

    def _denied(
        self, node: PlannedNode, row: PlannedRecord | None, prediction: ExpectedChange
    ) -> str | None:
        if fixed := prediction.change.fixed.difference(prediction.unknown):
            return unchangeable(node.name, node.type, fixed)
        wanted = self._definition.resources.get(node.name)
        return refusal(
            node.name,
            prediction.change.operation,
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
