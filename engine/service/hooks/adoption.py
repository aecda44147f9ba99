"""Decides what an answer `adopt` to a drift hook writes: the desired state takes over the observed
values."""

from collections.abc import Mapping

from engine.errors import Conflict, Finding, Findings, Invalid
from engine.hooks.drift_hooks import adoption_refusal
from engine.hot.expressions.masking import contains_mask
from engine.hot.schema.properties import check_resolved
from engine.plan.overrides import Override, add_overrides, value_at, with_adopted
from engine.principal import Principal
from engine.store.hooks.adoptions import AdoptableResource, Adoption
from engine.types.observation import MAX_VALUE, is_shortened
from engine.types.registry import TypeRegistry
from engine.words import UNDER_WAY, Json, ObservedState

#: What an approver can do if the observed values cannot be adopted.
REMEDY = "Change the template, answer repair, or ignore the drift for a time."


def adopt(found: AdoptableResource | None, by: Principal, registry: TypeRegistry) -> Adoption:
    """Raises Invalid if a value cannot be adopted; Conflict if the drift is not the current one, or
    a change of the stack or an operation of the resource is under way."""
    if found is None:
        raise Conflict(
            "the resource of the hook no longer exists",
            place="decision",
            remedy="Show the drift of the stack.",
            code="HookChanged",
        )
    refusal = adoption_refusal(ObservedState(found.state), found.differences)
    if refusal is not None:
        raise _refusal_error("decision", *refusal)
    if found.external:
        raise _refusal_error("decision", "the stack does not own the physical resource", REMEDY)
    if found.has_secrets:
        raise _refusal_error(
            "decision",
            "the resource has secret properties or metadata, so its values are not shown",
            REMEDY,
        )
    if found.undecryptable:
        raise _refusal_error("decision", found.undecryptable, REMEDY)
    if found.traversal_state in UNDER_WAY:
        raise Conflict(
            "a change of the stack is under way",
            place="decision",
            remedy="Adopt the observed values after it has ended.",
            code="ActionInProgress",
        )
    if found.operating:
        raise Conflict(
            "an operation on the resource has not ended",
            place="decision",
            remedy="Try again when it has ended.",
            code="ActionInProgress",
        )
    if not found.current:
        raise Conflict(
            "the resource has changed since the drift was observed",
            place="decision",
            remedy="Observe the stack, then answer its hook again.",
            code="HookChanged",
        )
    if found.out_of_date:
        raise _refusal_error(
            "decision",
            "the last change of the stack has not been applied to the resource, or a hook's answer "
            "has changed its properties",
            "Update the stack, then answer the hook that opens if the resource still differs.",
        )
    return _adoption(found, by, registry)


def _adoption(found: AdoptableResource, by: Principal, registry: TypeRegistry) -> Adoption:
    type_, findings = registry.get(found.type), Findings()
    new = [
        override
        for one in found.differences
        if (override := _override(found, one, by, registry, findings)) is not None
    ]
    findings.raise_if_any()
    properties = with_adopted(found.properties, new)
    set_now = {name: value for name, value in properties.items() if value is not None}
    check_resolved(type_.schema, set_now, "properties", findings)
    registry.check_properties(found.type, set_now, "properties", findings)
    if findings.all:
        raise Invalid([
            Finding(one.place, f"cannot be adopted: {one.reason}", REMEDY, "AnswerInvalid")
            for one in findings.all
        ])  # fmt: skip
    data = found.data
    for one in new:
        data = type_.adopted_data(data, one.path, one.value)
    return Adoption(found, properties, data, add_overrides(found.properties, found.overrides, new))


def _override(
    found: AdoptableResource,
    difference: Mapping[str, Json],
    by: Principal,
    registry: TypeRegistry,
    findings: Findings,
) -> Override | None:
    """None: it cannot be adopted, and findings say why."""
    path, value = difference["path"], difference["observed"]
    type_ = registry.get(found.type)
    places = type_.adopted_places(found.properties, path)
    reason = _refusal(value, difference["desired"]) or (
        "" if places else f"{found.type} cannot take it over in place"
    )
    if reason:
        findings.add(f"differences.{path}", f"cannot be adopted: {reason}", REMEDY, "AnswerInvalid")
        return None
    templates = [value_at(found.properties, place) for place in places]
    values = [type_.adopted_value(place, value) for place in places]
    same = all(one == value for one in values) and all(one == templates[0] for one in templates)
    written = () if same else tuple(zip(templates, values, strict=True))
    return Override(path, tuple(places), templates[0], value, by.name, by.id, found.now, written)


def _refusal(value: Json, desired: Json) -> str:
    if contains_mask(value) or contains_mask(desired):
        return "its value is secret"
    if is_shortened(value):
        return f"its value is longer than {MAX_VALUE:,} characters"
    return ""


def _refusal_error(place: str, reason: str, remedy: str) -> Invalid:
    return Invalid([Finding(place, f"cannot adopt: {reason}", remedy, "AnswerInvalid")])
