"""Previews one plan from stored rows: the effect of each node, as far as values are known.

engine/service/dry_run.py previews a request, with the plans of nested stacks;
engine/plan/expected_changes.py has the rules.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from engine.errors import Finding, Findings
from engine.hot.definition.lifecycle import NO_LIFECYCLE, Lifecycle
from engine.hot.definition.stack import ResourceDefinition, StackDefinition, fill_defaults
from engine.hot.evaluation.assertions import failed_assertion
from engine.hot.expressions.expression import REFUSED, Expression, iterate_calls
from engine.hot.expressions.masking import MASK, contains_mask
from engine.hot.functions.cost_budget import resolution_budget
from engine.hot.functions.function import FunctionError
from engine.hot.schema.properties import check_parts
from engine.plan.draft import ExistingResource, Plan, PlannedNode
from engine.plan.expected_changes import (
    UNKNOWN,
    ExpectedChange,
    ExpectedHook,
    KnownValues,
    KnownView,
    NamesView,
    UnknownValue,
    contains_unknown,
    expected_change,
    expected_hooks,
    expected_replacement,
    known_after,
    known_parts,
    known_properties,
)
from engine.plan.lifecycle import Triggers, ignored_names, keep_ignored, trigger_digest
from engine.plan.overrides import Override, apply_overrides, decode_overrides
from engine.plan.protection import refuse_prevented
from engine.plan.resource_change import (
    ResourceChange,
    ResourceState,
    cleanup_change,
    is_unhealthy,
)
from engine.service.requests.desired_state import DesiredState
from engine.store.connection import Connection
from engine.store.observer.drift_rows import UnobservedResource
from engine.store.records import PlannedRecord
from engine.store.resources.overrides import read_overrides
from engine.store.resources.resource_reads import read_planned
from engine.topological_order import sort_topologically
from engine.types.contract import Call, ResourceType
from engine.types.registry import TypeRegistry
from engine.words import (
    GATES,
    IN_PLACE_OPERATIONS,
    DeletionPolicy,
    Direction,
    Json,
    Operation,
    ResourceAction,
    ResourceId,
    Restriction,
    StackId,
    Status,
)
from engine.work.nodes.refusals import refusal_reason, unchangeable_reason
from engine.work.nodes.visible_properties import mask_properties

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
    """The expected change of a resource. kind: unchanged, added, updated, replaced, deleted.

    changes: by property {"from", "to"}, masked; without "to" if the value is unknown. certain:
    False if an unknown value can turn the update into a replacement or into no change. unknown:
    properties with unknown values. denied: why the operation will fail (restricted, protected,
    external); None if it will not. replace_reason: the values of `replace_when` that changed; None
    if these do not replace it. moved_from: the earlier name of a moved resource. imported_id: the
    physical resource that it adopts. nested: the preview of the nested stack, if it is known.
    replaced: the preview of the nested stack of the resource that is replaced. written_type: the
    type in the template. attributes: names. adopted: the adopted values that it has afterwards.
    label: of the workers that execute the change; None: those without a label.
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
    replace_reason: str | None = None
    moved_from: str | None = None
    imported_id: str | None = None
    nested: "Preview | None" = None
    replaced: "Preview | None" = None
    written_type: str = ""
    attributes: Sequence[str] = ()
    adopted: Sequence[Override] = ()
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """A dry run of a stack. leftovers: resources that an earlier change has replaced, and that are
    deleted now. expected_hooks: the hooks that will wait, in plan order, with those of
    nested stacks. out_of_date: resources that stay out of date. digest: a request with
    it is refused if the plan has changed. name, stack_id, path: of the stack; stack_id: None if it
    does not exist yet. warnings: about the request. unobserved: of a converge: resources that it
    cannot repair, because their state is unknown."""

    resources: Sequence[PreviewedResource]
    expected_hooks: Sequence[ExpectedHook]
    out_of_date: Sequence[str]
    digest: str
    name: str = ""
    stack_id: UUID | None = None
    path: Sequence[str] = ()
    warnings: Sequence[Finding] = ()
    leftovers: Sequence[PreviewedResource] = ()
    unobserved: Sequence[UnobservedResource] = ()


EMPTY: Final[Mapping[str, Preview]] = {}


async def read_rows(
    conn: Connection, stack_id: UUID, planned: Plan, definition: StackDefinition
) -> list[PlannedRecord]:
    """The rows of the plan's resources, and of the resources that these read."""
    names = {node.name for node in planned.nodes}
    wanted = names & definition.resources.keys()
    reads = {read for name in wanted for read in definition.resources[name].reads}
    ids = [node.resource_id for node in planned.nodes]
    return await read_planned(conn, stack_id, ids, sorted(names | reads))


async def overrides_of(conn: Connection, desired: DesiredState) -> Mapping[str, Sequence[Override]]:
    """The adopted values of a change, by resource name."""
    restored = {name: decode_overrides(one) for name, one in desired.overrides.items()}
    return await read_overrides(conn, desired.stack_id) | restored


async def refuse_known_replacements(
    conn: Connection, desired: DesiredState, planned: Plan, registry: TypeRegistry
) -> None:
    """Raise Invalid (PlanRefused) if the plan certainly replaces a resource with `prevent_destroy`.
    A replacement that depends on values of other resources is refused when its node executes.
    """
    definition = desired.blueprint.definition
    kept = {
        node.name
        for node in planned.nodes
        if node.operation is Operation.UPDATE
        and (wanted := definition.resources.get(node.name)) is not None
        and wanted.lifecycle is not None
        and wanted.lifecycle.prevent_destroy
    }
    if not kept:
        return
    rows = await read_rows(conn, desired.stack_id, planned, definition)
    restricted = desired.blueprint.environment.registry.restrictions_of
    overrides = await overrides_of(conn, desired)
    shown = PlanPreviewer(registry, planned, definition, restricted, (), rows, overrides).walk()
    findings = Findings()
    for one in shown:
        if one.name in kept and one.kind == KINDS[Operation.REPLACE] and one.certain and one.denied:
            causes = one.replace_reason or f"{', '.join(sorted(one.changes)) or 'its type'} changed"
            place = f"resources.{one.name}.lifecycle.prevent_destroy"
            refusal = refuse_prevented(one.name, Operation.REPLACE)
            findings.add(place, f"{refusal.reason} ({causes})", refusal.remedy, "PlanRefused")
    findings.raise_if_any()


class PlanPreviewer:
    """Processes the nodes of a plan in topological order and derives the operation of each.

    overrides: adopted values by resource name. possible: nodes of the resources whose condition is
    not known yet. gone: names of resources whose nested stack does not exist any more: an update
    creates another one. values: the expected properties by resource name, UNKNOWN for unknown ones.
    secret: the names of the secret properties by resource name. leftovers: see `Preview`. deleted:
    the names of resources whose current physical resource the change deletes. All are complete
    after `walk`.
    """

    def __init__(
        self,
        registry: TypeRegistry,
        planned: Plan,
        definition: StackDefinition,
        restricted: Callable[[str], frozenset[Restriction]],
        existing: Sequence[ExistingResource],
        rows: Sequence[PlannedRecord],
        overrides: Mapping[str, Sequence[Override]],
        possible: Sequence[PlannedNode] = (),
        gone: Collection[str] = (),
    ) -> None:
        self._registry = registry
        self._gone = gone
        self._plan = planned
        self._definition = definition
        self._restricted = restricted
        self._existing = existing
        self._rows = {row.id: row for row in rows}
        self._overrides = overrides
        self._possible = possible
        self._known = {
            row.name: KnownValues(
                row.reference or row.name, row.attributes, row.secret_attributes or ()
            )
            for row in rows
            if row.replaced_by is None
        }
        self._replaced: set[str] = set()
        self._resumed: set[str] = set()
        self._operations: dict[int, tuple[Operation | None, bool]] = {}
        self._shown: dict[str, PreviewedResource] = {}
        self._adopted: dict[str, Sequence[Override]] = {}
        self.values: dict[str, Mapping[str, Json]] = {}
        self.secret: dict[str, frozenset[str]] = {}
        self.leftovers: list[PreviewedResource] = []
        self.deleted: set[str] = set()

    def walk(self) -> list[PreviewedResource]:
        """The expected change of each resource, in the order of their names."""
        nodes = self._plan.nodes
        for index in sort_topologically({index: node.after for index, node in enumerate(nodes)}):
            self._operations[index] = self._predict(nodes[index])
        for row in self._existing:
            if row.replaced_by is None and row.name not in self._shown:
                self._shown[row.name] = self._preview_unchanged(row)
        for node in self._possible:
            if node.name not in self._shown:
                self._shown[node.name] = self._preview_undecided(node)
        return [self._shown[name] for name in sorted(self._shown)]

    def preview(
        self,
        nested: Mapping[str, Preview] = EMPTY,
        replaced: Mapping[str, Preview] = EMPTY,
        possible: Mapping[str, Preview] = EMPTY,
    ) -> Preview:
        """The preview; call `walk` first. nested: of nested stacks, by resource name. replaced: of
        those of the resources that are replaced. possible: of those of the resources whose
        condition is not known yet, if it holds."""
        uncertain = {name for name, one in self._shown.items() if not one.certain}
        nested, replaced = (
            {
                name: uncertain_preview(one) if name in uncertain else one
                for name, one in each.items()
            }
            for each in (nested, replaced)
        )
        inside_possible = {
            name: uncertain_preview(one).expected_hooks for name, one in possible.items()
        }
        return Preview(
            [
                replace(self._shown[name], nested=nested.get(name), replaced=replaced.get(name))
                for name in sorted(self._shown)
            ],
            expected_hooks(
                self._plan,
                self._operations,
                {name: one.expected_hooks for name, one in nested.items()},
                self._possible,
                inside_possible,
            ),
            self._plan.out_of_date,
            self._plan.digest,
            leftovers=sorted(self.leftovers, key=lambda one: (one.name, one.physical_id or "")),
        )

    def known_parts(self, name: str) -> dict[str, Json] | None:
        """The expected properties of a resource, with UNKNOWN in place of single parts; None: its
        operation will fail. Call `walk` first."""
        type_name, properties = self._type_and_properties(name)
        try:
            parts = known_parts(properties, KnownView(self._known))
        except FunctionError:
            return None
        schema, findings = self._registry.get(type_name).schema, Findings()
        known = {key: value for key, value in parts.items() if not contains_unknown(value)}
        checked = check_parts(schema, known, name, findings)
        return None if findings.all else fill_defaults(schema, {**parts, **checked})

    def _type_and_properties(self, name: str) -> tuple[str, Expression]:
        """The type and the properties of a resource, or of a group whose condition is not known
        yet."""
        wanted = self._definition.resources.get(name)
        if wanted is not None:
            return wanted.type, wanted.properties
        return self._definition.undecided[name], self._definition.undecided_groups[name]

    def referenced_parts(self, name: str) -> dict[str, Json] | None:
        """The expected properties of the resource that `referenced_resource` of a resource names;
        None: there is none."""
        found = self._find_referenced(name)
        return None if found is None else self.known_parts(found)

    def has_secrets(self, name: str) -> bool:
        """Whether a property of a resource, or of the one that it names, is secret. Those of a
        group whose condition is not known yet may be."""
        if name not in self._definition.resources:
            return True
        found = self._find_referenced(name)
        if found is not None and found not in self.secret:
            wanted = self._definition.resources[found]
            properties = self._properties(wanted, self._registry.get(wanted.type))
            self.secret[found] = self._secret(wanted, properties)
        return bool(self.secret.get(name) or (found and self.secret[found]))

    def _find_referenced(self, name: str) -> str | None:
        """The name of the resource that `referenced_resource` of a resource names."""
        type_name, properties = self._type_and_properties(name)
        try:
            named = known_properties(properties, NamesView())
            reference = self._registry.get(type_name).referenced_resource(named)
        except FunctionError:
            return None
        if reference is None:
            return None
        by_reference = {one.reference: name for name, one in self._known.items()}
        found = by_reference.get(reference, reference)
        return found if found in self._definition.resources else None

    def _preview_unchanged(self, row: ExistingResource) -> PreviewedResource:
        found = self._registry.schemas().get(row.type)
        return PreviewedResource(
            name=row.name,
            type=row.type,
            kind=KINDS[None],
            certain=True,
            physical_id=row.physical_id,
            changes={},
            unknown=(),
            requires=self._requires(row.name),
            attributes=sorted(found.attributes) if found else (),
            adopted=self._overrides.get(row.name, ()),
        )

    def _preview_undecided(self, node: PlannedNode) -> PreviewedResource:
        """A new resource, if its condition holds. Nothing denies it: rules cannot deny a create."""
        found = self._registry.schemas().get(node.type)
        return PreviewedResource(
            name=node.name,
            type=node.type,
            kind=KINDS[Operation.CREATE],
            certain=False,
            physical_id=None,
            changes={},
            unknown=(),
            requires=(),
            attributes=sorted(found.attributes) if found else (),
            label=node.label,
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
        if node.operation in IN_PLACE_OPERATIONS:
            row = self._rows.get(node.resource_id)
            self._adopted[node.name] = self._overrides.get(node.name, ())
            if node.operation is Operation.RESUME:
                self._resumed.add(node.name)
            if (wanted := self._definition.resources.get(node.name)) is not None:
                properties = self._properties(wanted, self._registry.get(wanted.type))
                self.secret[node.name] = self._secret(wanted, properties)
                self.values[node.name] = properties
            self._show(node, row, ExpectedChange(ResourceChange(node.operation), True), {})
            return node.operation, True
        return self._predict_forward(node)

    def _predict_cleanup(self, node: PlannedNode) -> tuple[Operation | None, bool]:
        if node.only_if_replaced:
            replaced = node.name in self._replaced
            certain = not replaced or self._shown[node.name].certain
            operation = self._cleanup_operation(node) if replaced else None
            if operation is Operation.DELETE:
                self.deleted.add(node.name)
            return operation, certain
        row = self._rows.get(node.resource_id)
        operation = self._cleanup_operation(node)
        if row is not None and node.operation is Operation.DELETE:
            if row.replaced_by is None:
                if operation is not None:
                    self.deleted.add(node.name)
                certain = node.name not in self._definition.undecided
                expected = ExpectedChange(ResourceChange(Operation.DELETE), certain)
                self._show(node, row, expected, {})
                return operation, certain
            elif operation is not None and _is_deleted_by_operation(row):
                self.leftovers.append(self._leftover(node, row))
        return operation, True

    def _leftover(self, node: PlannedNode, row: PlannedRecord) -> PreviewedResource:
        return PreviewedResource(
            name=node.name,
            type=node.type,
            kind=KINDS[Operation.DELETE],
            certain=True,
            physical_id=row.physical_id,
            changes={},
            unknown=(),
            requires=(),
            label=node.label,
        )

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
        properties: Mapping[str, Json] = self._properties(wanted, type_)
        self.secret[node.name] = self._secret(wanted, properties)
        left: Sequence[Override] = ()
        if row is not None and not self.secret[node.name] and "" not in properties:
            overrides = self._overrides.get(node.name, ())
            properties, left = apply_overrides(properties, overrides)
        self._adopted[node.name] = left
        self.values[node.name] = properties
        moved = row is not None and row.physical_id != wanted.external_id
        if wanted.is_data and row is not None and row.physical_id and not moved:
            # It is read again; the values of the last time are shown.
            expected = ExpectedChange(ResourceChange(None), True)
        elif node.operation is Operation.ADOPT:
            expected = ExpectedChange(ResourceChange(Operation.ADOPT, frozenset(properties)), True)
        else:
            expected = self._expected_change(wanted, row, properties)
            kept = self._with_ignored(wanted, row, properties)
            expected = _with_replacement(expected, type_, node, row, kept)
            if expected.change.operation is not Operation.REPLACE:
                properties = self.values[node.name] = kept
        before = self._known.get(node.name, KnownValues())
        is_new = node.name in self._gone and expected.change.operation is not None
        self._known[node.name] = (
            KnownValues()
            if (wanted.is_data and moved) or is_new
            else known_after(
                before, Operation.REPLACE if expected.may_replace else expected.change.operation
            )
        )
        if expected.change.operation is Operation.REPLACE:
            self._replaced.add(node.name)
        self._show(node, row, expected, properties)
        return expected.change.operation, expected.certain

    def _expected_change(
        self, wanted: ResourceDefinition, row: PlannedRecord | None, properties: Mapping[str, Json]
    ) -> ExpectedChange:
        type_, actual = self._registry.get(wanted.type), _actual(row)
        expected = expected_change(
            actual,
            wanted.type,
            type_.schema,
            keep_ignored(wanted.lifecycle or NO_LIFECYCLE, actual, properties),
            replaces_tainted=type_.replaces_tainted,
            repairs=type_.repairs,
            nests=type_.has_nested_stack,
        )
        if type_.has_nested_stack and row is not None and _waits_for_parent(wanted, row, expected):
            expected = replace(expected, certain=False)
        if wanted.lifecycle is None or row is None:
            return expected
        before = (row.lifecycle or {}).get("replace_when", {})
        return expected_replacement(
            wanted.lifecycle, Triggers(before, self._triggers(wanted.lifecycle)), expected
        )

    def _triggers(self, lifecycle: Lifecycle) -> dict[str, str | None]:
        """The digests of the values of `replace_when`; None for unknown values."""
        try:
            values = known_properties(dict(lifecycle.triggers), KnownView(self._known))
        except FunctionError:  # the operation will fail when the values are known
            return dict.fromkeys(lifecycle.triggers)
        return {
            text: None if value is UNKNOWN else trigger_digest(value)
            for text, value in values.items()
        }

    def _with_ignored(
        self, wanted: ResourceDefinition, row: PlannedRecord | None, properties: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """The properties with the applied values of ignored ones, of which the secret ones are
        added to `secret`."""
        actual = _actual(row)
        if wanted.lifecycle is None or actual is None or row is None:
            return properties
        ignored = ignored_names(wanted.lifecycle, actual, properties)
        masked = row.masked_properties or {}
        hidden = frozenset(name for name in ignored if contains_mask(masked.get(name)))
        self.secret[wanted.name] |= hidden
        return keep_ignored(wanted.lifecycle, actual, properties)

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
        view = KnownView({name: one.mask() for name, one in known.items()})
        try:
            found = known_properties(wanted.properties, view, masked=True)
            plain = known_properties(wanted.properties, KnownView(self._known))
        except FunctionError:
            return frozenset(properties)
        # A part of a value that is chosen by a secret has no mask, but it differs.
        hidden = frozenset(
            name
            for name, value in found.items()
            if contains_mask(value) or name not in plain or value != plain[name]
        )
        return frozenset(properties) if "" in hidden else hidden | declared

    def _show(
        self,
        node: PlannedNode,
        row: PlannedRecord | None,
        expected: ExpectedChange,
        properties: Mapping[str, Json],
    ) -> None:
        schema = self._registry.get(node.type).schema
        secret = self.secret.get(node.name, frozenset())
        before = mask_properties(
            (row.masked_properties or row.properties or {}) if row else {}, schema
        )
        known = {name: value for name, value in properties.items() if value is not UNKNOWN}
        after = mask_properties({**known, **dict.fromkeys(secret & known.keys(), MASK)}, schema)
        changes: dict[str, Json] = {}
        for name in sorted(expected.change.changed):
            one = (
                {"from": MASK if name in secret and name in before else before.get(name)}
                if row
                else {}
            )
            changes[name] = one | ({"to": after.get(name)} if name not in expected.unknown else {})
        self._shown[node.name] = PreviewedResource(
            name=node.name,
            type=node.type,
            kind=self._kind(node.name, row, expected.change.operation),
            certain=expected.certain,
            physical_id=row.physical_id if row else None,
            changes=changes if expected.change.operation in _CHANGING else {},
            unknown=[name for name in expected.unknown if name],
            requires=self._requires(node.name),
            denied=self._refusal_reason(node, row, expected),
            replace_reason=expected.change.cause or None,
            attributes=sorted(schema.attributes),
            imported_id=self._definition.imported.get(node.name)
            if row is None and node.operation is Operation.ADOPT
            else None,
            adopted=self._adopted.get(node.name, ()),
            label=node.label,
        )

    def _kind(self, name: str, row: PlannedRecord | None, operation: Operation | None) -> str:
        """The kind of change. A resource that the change resumes is updated, also if nothing else
        is done with it."""
        resumed = operation is None and name in self._resumed
        adopted = operation is Operation.ADOPT and row is not None
        return KINDS[Operation.UPDATE if resumed or adopted else operation]

    def _refusal_reason(
        self, node: PlannedNode, row: PlannedRecord | None, expected: ExpectedChange
    ) -> str | None:
        if fixed := expected.change.fixed.difference(expected.unknown):
            return unchangeable_reason(node.name, node.type, fixed)
        wanted = self._definition.resources.get(node.name)
        if wanted is not None and (failed := self._failed_precondition(wanted, expected)):
            return failed
        lifecycle = wanted.lifecycle if wanted else None
        stored = row.lifecycle or {} if row is not None else {}
        return refusal_reason(
            node.name,
            expected.change.operation,
            restricted=self._restricted(node.name),
            protected=row is not None and row.protected,
            prevented=bool(stored.get("prevent_destroy"))
            if wanted is None
            else lifecycle is not None and lifecycle.prevent_destroy,
            external_id=wanted.external_id if wanted and not wanted.is_data else None,
            physical_id=row.physical_id if row else None,
        )

    def _failed_precondition(
        self, wanted: ResourceDefinition, expected: ExpectedChange
    ) -> str | None:
        """Why a precondition fails, as far as its values are known."""
        assertions = wanted.assertions
        if assertions is None or expected.change.operation not in _CHANGING:
            return None
        view = KnownView(self._known)
        for one in assertions.preconditions:
            with suppress(UnknownValue):
                failed = failed_assertion(
                    "precondition", [one], view, resolution_budget(), lambda wrong: "its values"
                )
                if failed is not None:
                    return failed
        return None


def _waits_for_parent(
    wanted: ResourceDefinition, row: PlannedRecord, expected: ExpectedChange
) -> bool:
    """Return whether a nested stack in a nested stack has its node only if a value that the parent
    stack gives, and that is not known yet, differs."""
    differs = row.status != Status.COMPLETE or expected.change.changed.difference(expected.unknown)
    return not differs and any(call.name == REFUSED for call in iterate_calls(wanted.properties))


def uncertain_preview(preview: Preview) -> Preview:
    """Return the preview of a nested stack that may be replaced, or stay as it is."""
    inside = [
        replace(
            one,
            certain=False,
            nested=one.nested and uncertain_preview(one.nested),
            replaced=one.replaced and uncertain_preview(one.replaced),
        )
        for one in preview.resources
    ]
    hooks = [replace(one, certain=False) for one in preview.expected_hooks]
    leftovers = [replace(one, certain=False) for one in preview.leftovers]
    return replace(preview, resources=inside, expected_hooks=hooks, leftovers=leftovers)


def _with_replacement(
    expected: ExpectedChange,
    type_: ResourceType,
    node: PlannedNode,
    row: PlannedRecord | None,
    properties: Mapping[str, Json],
) -> ExpectedChange:
    """The expected change, as a replacement if the type requires it for these properties. Unknown
    values count as unchanged; if the type decides with them, the change stays uncertain."""
    if row is None or expected.change.operation is not Operation.UPDATE:
        return expected
    previous = row.properties or {}
    known = {
        name: previous.get(name) if contains_unknown(value) else value
        for name, value in properties.items()
    }
    call = Call(
        project="",
        stack_id=StackId(UUID(int=0)),
        stack_name="",
        resource_id=ResourceId(row.id),
        resource_name=node.name,
        operation_key=UUID(int=0),
        now=datetime.min.replace(tzinfo=UTC),
        properties=known,
        previous=previous,
        changed=expected.change.changed.difference(expected.unknown),
        physical_id=row.physical_id,
        data=row.data or {},
        attributes=row.attributes or {},
    )
    if not type_.needs_replace(call):
        whole = replace(call, changed=expected.change.changed)
        may_replace = bool(expected.unknown) and type_.needs_replace(whole)
        return replace(expected, may_replace=True) if may_replace else expected
    return replace(
        expected, change=replace(expected.change, operation=Operation.REPLACE), certain=True
    )


def _is_deleted_by_operation(row: PlannedRecord) -> bool:
    """Whether a physical resource may exist, also one whose ID is not known."""
    return cleanup_change(_actual(row), only_if_replaced=False).operation is not None


_CHANGING = (Operation.CREATE, Operation.UPDATE, Operation.REPLACE)


def _actual(row: PlannedRecord | None) -> ResourceState | None:
    if row is None:
        return None
    return ResourceState(
        type=row.type,
        action=ResourceAction(row.action),
        status=Status(row.status),
        physical_id=row.physical_id,
        properties=row.properties,
        tainted=row.tainted,
        replaced=row.replaced_by is not None,
        unhealthy=is_unhealthy(row.lifecycle),
    )
