"""Prepares a claimed node: resolves its properties and determines its operation."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from engine.errors import Findings, without_value
from engine.hot.definition.lifecycle import Lifecycle, decode_lifecycle
from engine.hot.definition.stack import check_resolved, fill_defaults
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import decode
from engine.hot.expressions.member_attributes import REFERENCE, mask_resource
from engine.hot.functions.cost_budget import CostBudget, resolution_budget
from engine.hot.functions.function import FunctionError
from engine.hot.language.versions import VERSIONS
from engine.hot.schema.type_schema import TypeSchema, without_required
from engine.plan.lifecycle import (
    Triggers,
    ignored_names,
    keep_ignored,
    trigger_digest,
    with_replacement,
)
from engine.plan.overrides import (
    ENDED,
    OVERRIDES,
    apply_overrides,
    decode_overrides,
    without_patched,
)
from engine.plan.resource_change import (
    ResourceChange,
    ResourceState,
    cleanup_change,
    forward_change,
    is_unhealthy,
)
from engine.store.traversals.advance import Work
from engine.types.contract import Call, Confirmation, ResourceType
from engine.types.registry import TypeRegistry
from engine.types.signal_urls import SignalUrl, SignalUrls
from engine.words import (
    GATES,
    IN_PLACE_OPERATIONS,
    DeletionPolicy,
    Direction,
    Json,
    Operation,
    ResourceAction,
    ResourceId,
    StackId,
    Status,
    TraversalState,
)
from engine.work.nodes.refusals import change_refusal, check_refusal

#: For types without signals.
NO_SIGNAL_URL = SignalUrl()


class UnresolvedProperties(Exception):
    """Properties cannot be resolved from the values of other resources. The text is the reason."""


class Inputs:
    """Values of other resources that expressions read (engine.hot.evaluation.resolver.StackView).

    values: by resource name, [reference, attributes, names of secret values].
    """

    def __init__(self, values: Mapping[str, list[Json]]) -> None:
        self._values = values

    def reference(self, resource: str) -> str:
        reference = (self._values.get(resource) or (None,))[0]
        return resource if reference is None else str(reference)

    def attribute(self, resource: str, attribute: str) -> Json:
        return self.attributes(resource).get(attribute)

    def attributes(self, resource: str) -> Mapping[str, Json]:
        return (self._values.get(resource) or (None, None))[1] or {}

    @property
    def has_secrets(self) -> bool:
        return any(secrets_of(one) for one in self._values.values())

    def mask(self, secret_references: Collection[str] = ()) -> "Inputs":
        """Return a copy with secret values masked. secret_references: names of resources whose
        reference is secret as well, in addition to what their rows say.
        """
        also = dict.fromkeys(secret_references, (REFERENCE,))
        return Inputs({
            name: mask_resource(one[0], one[1], (*secrets_of(one), *also.get(name, ())))
            for name, one in self._values.items()
        })  # fmt: skip


def secrets_of(values: Sequence[Json]) -> Sequence[str]:
    """Return the names of secret values in [reference, attributes, secret]."""
    return (values[2] or ()) if len(values) > 2 else ()


@dataclass(slots=True)
class PreparedNode:
    """A node with resolved properties. change: the operation, from the current state.

    denied: why the operation is forbidden, or None. has_secrets: whether a stored value may be
    secret; None: not determined yet (`keeps_secrets`). ignored: names of the properties that keep
    their applied values, because the template ignores their differences.
    """

    work: Work
    type: ResourceType
    properties: Mapping[str, Json]
    change: ResourceChange
    denied: str | None = None
    has_secrets: bool | None = None
    ignored: frozenset[str] = frozenset()


def prepare(work: Work, registry: TypeRegistry) -> PreparedNode:
    """Resolve properties and compare them with the current state. Raises UnresolvedProperties.

    Sets `metadata_now`, `update_policy_now` and `lifecycle_now` of `work`.
    """
    type_ = registry.get(work.type)
    if work.operation in GATES:
        return PreparedNode(
            work, type_, work.definition or {}, ResourceChange(Operation(work.operation))
        )
    if work.direction == Direction.CLEANUP:
        return _prepared_cleanup(work, type_)
    if work.operation in IN_PLACE_OPERATIONS:
        change = ResourceChange(Operation(work.operation))
        return PreparedNode(work, type_, work.properties or {}, change, check_refusal(work))
    schema = type_.schema
    properties = _with_patch(work, schema, _with_adopted(work, _resolve_properties(work, schema)))
    if (lifecycle := (work.definition or {}).get("lifecycle")) is not None:
        return _prepare_with_lifecycle(work, type_, decode_lifecycle(lifecycle), properties)
    change = _forward_change(work, type_, properties)
    return PreparedNode(work, type_, properties, change, change_refusal(work, change))


def _with_adopted(work: Work, properties: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the properties with adopted values, which `lifecycle_now` of `work` keeps until they
    end, and then for a rollback. An answer `patch` ends those of the properties that it sets. A
    resource whose properties are masked has none: they would be shown."""
    definition, before = work.definition or {}, work.lifecycle or {}
    overrides = decode_overrides(definition.get(OVERRIDES, before.get(OVERRIDES)))
    if masks_properties(work) or not (overrides or before.get(ENDED)):
        return properties
    lasting = without_patched(overrides, work.patched or {})
    properties, left = apply_overrides(properties, lasting)
    ended = before.get(ENDED)
    if len(left) < len(overrides):
        ended = {"at": work.now.isoformat(), OVERRIDES: [one.encode() for one in overrides]}
    kept: dict[str, Json] = {OVERRIDES: [one.encode() for one in left]} if left else {}
    work.lifecycle_now = {**(work.lifecycle_now or {}), **kept, **({ENDED: ended} if ended else {})}
    return properties


def _with_patch(
    work: Work, schema: TypeSchema, properties: Mapping[str, Json]
) -> Mapping[str, Json]:
    """Return the properties with those that an answer `patch` sets."""
    if not work.patched:
        return properties
    definition, patched = work.definition or {}, {**properties, **work.patched}
    if definition.get("static"):
        return patched
    external = definition.get("external_id") is not None
    return fill_defaults(without_required(schema) if external else schema, patched)


def _prepare_with_lifecycle(
    work: Work, type_: ResourceType, lifecycle: Lifecycle, properties: Mapping[str, Json]
) -> PreparedNode:
    """As `prepare`, with the applied values of ignored properties unless it is replaced."""
    actual = actual_state(work)
    kept = keep_ignored(lifecycle, actual, properties)
    change = _forward_change(work, type_, kept)
    if change.operation is Operation.REPLACE:
        kept = properties
    prepared = PreparedNode(work, type_, kept, change, change_refusal(work, change))
    if kept is not properties:
        prepared.ignored = ignored_names(lifecycle, actual, properties)
    return prepared


def _lifecycle_now(work: Work, budget: CostBudget) -> dict[str, Json] | None:
    """Return the column `lifecycle` that belongs to the definition. Raises FunctionError."""
    definition = work.definition or {}
    stored, triggers = definition.get("lifecycle") or {}, definition.get("triggers")
    found: dict[str, Json] = {}
    if stored.get("prevent_destroy"):
        found["prevent_destroy"] = True
    if triggers:
        view = Inputs(work.inputs or {})
        found["replace_when"] = {
            text: trigger_digest(resolve(decode(one, definition["version"]), view, budget=budget))
            for text, one in triggers.items()
        }
    return found or None


def _forward_change(
    work: Work, type_: ResourceType, properties: Mapping[str, Json]
) -> ResourceChange:
    definition = work.definition or {}
    if work.operation == Operation.ADOPT:
        return ResourceChange(Operation.ADOPT, frozenset(properties))
    if definition.get("external_id") is not None and work.action is not None:
        return ResourceChange(None)
    actual, lifecycle = actual_state(work), definition.get("lifecycle")
    change = forward_change(
        actual,
        work.type,
        type_.schema,
        properties,
        replaces_tainted=type_.replaces_tainted,
        restores=bool(definition.get("kept")),
        repairs=type_.repairs,
        nests=type_.has_nested_stack,
    )
    if lifecycle is not None and actual is not None:
        now = (work.lifecycle_now or {}).get("replace_when", {})
        triggers = Triggers((work.lifecycle or {}).get("replace_when", {}), now)
        change = with_replacement(decode_lifecycle(lifecycle), triggers, change)
    if change.operation is Operation.UPDATE:
        call = call_of(work, Operation.UPDATE, properties, change.changed)
        # The update required a replacement, which a hook has interrupted since.
        replacing = work.started and work.operation == Operation.REPLACE
        if replacing or type_.needs_replace(call):
            return ResourceChange(Operation.REPLACE, change.changed)
    return change


def _prepared_cleanup(work: Work, type_: ResourceType) -> PreparedNode:
    definition = work.definition or {}
    change = cleanup_change(
        actual_state(work),
        only_if_replaced=bool(definition.get("only_if_replaced")),
        retained=bool(definition.get("retained")) or work.deletion_policy == DeletionPolicy.RETAIN,
    )
    if change.operation is not None and work.operation == Operation.SNAPSHOT:
        keeps = work.deletion_policy == DeletionPolicy.SNAPSHOT
        change = ResourceChange(Operation.SNAPSHOT if keeps else None)
    refusal = change_refusal(work, change)
    return PreparedNode(work, type_, work.properties or {}, change, refusal)


def actual_state(work: Work) -> ResourceState | None:
    """Return the state of the resource's row; None if there is none yet."""
    if work.action is None or work.status is None or work.row_type is None:
        return None
    return ResourceState(
        type=work.row_type,
        action=ResourceAction(work.action),
        status=Status(work.status),
        physical_id=work.physical_id,
        properties=work.properties,
        tainted=bool(work.tainted),
        replaced=work.replaced_by is not None,
        unhealthy=is_unhealthy(work.lifecycle),
    )


def _resolve_properties(work: Work, schema: TypeSchema) -> dict[str, Json]:
    """Return the properties of the template, without those of an answer `patch`."""
    definition = work.definition or {}
    work.lifecycle_now = None
    if definition.get("static"):
        work.metadata_now = definition["metadata"]
        work.update_policy_now = definition.get("update_policy")
        if "lifecycle" in definition:
            work.lifecycle_now = _lifecycle_now(work, resolution_budget())
        return {**definition["properties"]}
    try:
        expression = decode(definition["properties"], definition["version"])
        metadata = decode(definition["metadata"], definition["version"])
        view, budget = Inputs(work.inputs or {}), resolution_budget()
        resolved = resolve(expression, view, budget=budget) or {}
        work.metadata_now = resolve(metadata, view, budget=budget)
        policy = decode(definition.get("update_policy"), definition["version"])
        work.update_policy_now = resolve(policy, view, budget=budget)
        work.lifecycle_now = _lifecycle_now(work, budget)
    except FunctionError as error:
        shown = without_value(error.reason, HIDDEN_REASON) if has_secrets(work) else str(error)
        raise UnresolvedProperties(shown) from error
    findings = Findings()
    dialect = VERSIONS[definition["version"]].dialect
    place = f"{dialect.resources}.{work.name}.{dialect.properties}"
    if definition.get("external_id") is not None:
        schema = without_required(schema)
    if definition.get("data"):
        place = f"{work.name}.{dialect.properties}"
    properties = check_resolved(schema, resolved, place, findings)
    if findings.all:
        raise UnresolvedProperties("; ".join(_reasons(findings, secret=has_secrets(work))))
    return fill_defaults(schema, properties)


#: Replaces a reason that may contain a part of a secret.
HIDDEN_REASON = "a value is not valid; the reason is hidden because the values contain secrets"


#: Flags of a definition: parts with a secret, besides the properties.
_SECRET_PARTS = ("secret_metadata", "secret_policy", "secret_triggers", "secret_conditions")


def masks_properties(work: Work) -> bool:
    """Return whether the resource's row gets masked properties, for its definition."""
    definition = work.definition or {}
    return (
        definition.get("masked") is not None
        or bool(definition.get("secret_references"))
        or bool(definition.get("secret_metadata"))
        or Inputs(work.inputs or {}).has_secrets
    )


def has_secrets(work: Work) -> bool:
    """Return whether an error about the definition or the inputs may quote a secret."""
    definition = work.definition or {}
    return (
        definition.get("masked") is not None
        or any(map(definition.get, _SECRET_PARTS))
        or Inputs(work.inputs or {}).has_secrets
    )


def _reasons(findings: Findings, *, secret: bool) -> Iterator[str]:
    for one in findings.all:
        yield f"{one.place}: {HIDDEN_REASON}" if secret else str(one)


def call_of(
    work: Work,
    operation: Operation,
    properties: Mapping[str, Json],
    changed: frozenset[str],
    credential: str = "",
    signal_urls: SignalUrls | None = None,
) -> Call:
    replaces = operation is Operation.REPLACE
    creates = replaces or operation is Operation.CREATE
    adopts = operation is Operation.ADOPT
    definition = work.definition or {}
    physical_id = work.physical_id
    if adopts and definition.get("data"):
        physical_id = definition["external_id"]
    resource_id = work.replacement_id if replaces and work.replacement_id else work.resource_id
    return Call(
        project=work.project,
        stack_id=StackId(work.key.stack_id),
        stack_name=work.stack_name,
        resource_id=ResourceId(resource_id),
        resource_name=work.name,
        operation_key=work.operation_key or UUID(int=0),
        now=work.now,
        properties=properties,
        previous=None if creates or adopts else work.properties,
        changed=changed,
        failed=work.status == Status.FAILED and not creates,
        physical_id=None if creates else physical_id,
        replaced=work.physical_id if replaces else None,
        data={} if creates else work.data or {},
        replaced_data=(work.data or {}) if replaces else {},
        attributes={} if creates else work.attributes or {},
        progress=work.progress,
        attempts=work.attempts,
        repeated=work.attempts > 0 or work.restarts > 0,
        kept=definition.get("kept"),
        adjusted=definition.get("adjusted"),
        confirmation=Confirmation(**work.confirmation) if work.confirmation else None,
        answers=work.answers or {},
        credential=credential,
        signals=work.signals or (),
        update_policy=work.update_policy_now or {},
        superseded=work.traversal_state != TraversalState.RUNNING,
        cancelled=work.cancelled,
        signal_url=signal_urls.make_url(
            work.project, (work.stack_name, work.key.stack_id), resource_id
        )
        if signal_urls
        else NO_SIGNAL_URL,
        signal_resource_type=work.signal_resource_type,
        metadata=work.metadata_now or {},
        region=work.region or "",
    )
