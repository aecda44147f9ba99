"""Reads the keys of a resource beside its properties: `depends_on`, `external_id`,
`deletion_policy` and `update_policy`.

Faults are added to the findings of the evaluator's scope. place: of the resource.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from engine.errors import Findings, one_of
from engine.hot.definition.condition_filter import SWITCHED_OFF
from engine.hot.definition.resource_properties import evaluate_map
from engine.hot.definition.selected_resources import SelectedResources
from engine.hot.evaluation.evaluator import Evaluator
from engine.hot.expressions.expression import REFUSED, Expression, is_static, iterate_calls
from engine.hot.schema.properties import check_update_policy
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.keyed_names import base_name, meant_name
from engine.hot.template.template import ResourceBody, wrong_kind

MUST_BE_KNOWN: Final = "This must be known when the stack is defined, but it reads a resource."
PHYSICAL_ID_REMEDY: Final = "Write the physical ID of the resource."
PUBLIC_SOURCE: Final = "Use a parameter that is not hidden, or an output that is not secret."
POLICIES: Final = ("Delete", "Retain", "Snapshot")
#: The policies as versions of a template may write them.
WRITTEN: Final = {name: name for name in POLICIES}
WRITTEN_IN_LOWER_CASE: Final = WRITTEN | {name.lower(): name for name in POLICIES}
#: Calls for which a finding exists already, or whose value cannot be checked yet.
REPORTED_CALLS: Final = frozenset({REFUSED, "resource_facade"})


def is_reported(value: Expression) -> bool:
    """Return whether a finding exists for the value already, or it cannot be checked yet."""
    return any(call.name in REPORTED_CALLS for call in iterate_calls(value))


def read_depends_on(
    body: ResourceBody,
    place: str,
    evaluator: Evaluator,
    selected: SelectedResources,
    declared: Mapping[str, ResourceBody],
) -> frozenset[str]:
    """Return the resources of `depends_on` that are enabled. declared: those of the template."""
    if body.computed_depends_on is not None:
        outer, evaluator.secret = evaluator.secret, False
        body = _with_names(body, place, evaluator)
        evaluator.secret = outer
    if not body.depends_on:
        return frozenset()
    findings, key = evaluator.scope.findings, evaluator.scope.version.dialect.depends_on
    return find_required(body, f"{place}.{key}", selected, declared, findings)


def find_required(
    body: ResourceBody,
    place: str,
    selected: SelectedResources,
    declared: Mapping[str, ResourceBody],
    findings: Findings,
) -> frozenset[str]:
    """Return the resources whose names are in `depends_on` and that are enabled; references to
    disabled ones are ignored. place: of `depends_on`."""
    keyed = selected.expansion.names
    known = {**declared, **selected.expansion.bodies} if keyed else declared
    for name in body.depends_on:
        if name not in known and not selected.unreadable & {name, base_name(name)}:
            meant = meant_name(name, keyed)
            names = [*known, *sorted(selected.unreadable - known.keys())]
            findings.add(
                place,
                f'The specified reference "{name}" (in {body.name}) is incorrect.',
                f"Did you mean '{meant}'?" if meant else one_of(name, names, "Resources"),
                "InvalidTemplateReference",
            )
    found = (one for name in body.depends_on for one in keyed.get(name, {name: name}).values())
    return frozenset(name for name in found if name in selected.enabled)


def _with_names(body: ResourceBody, place: str, evaluator: Evaluator) -> ResourceBody:
    """Return the body with the names that the functions of its `depends_on` give."""
    findings = evaluator.scope.findings
    at = f"{place}.{evaluator.scope.version.dialect.depends_on}"
    found = evaluator.evaluate(body.computed_depends_on, at)
    items = found if isinstance(found, list) else [found]
    names = [
        name
        for item in items
        if item is not None
        for name in (item if isinstance(item, list) else [item])
    ]
    if not all(isinstance(name, str) for name in names):
        if not is_reported(names):
            reason = "The functions must give names that are known when the stack is defined."
            findings.add(at, reason, "Use functions of parameters only.")
        names = []
    elif evaluator.secret:
        reason = (
            "must not come from a hidden parameter or a secret output: readers can see dependencies"
        )
        findings.add(at, reason, PUBLIC_SOURCE)
        names = []
    return replace(body, depends_on=tuple(names), computed_depends_on=None)


def read_external_id(body: ResourceBody, place: str, evaluator: Evaluator) -> str | None:
    """Return the physical ID of a resource that the stack does not make; None for others."""
    if body.external_id is None:
        return None
    outer, evaluator.secret = evaluator.secret, False
    key = "id" if body.is_data else "external_id"
    at, findings = f"{place}.{key}", evaluator.scope.findings
    given = evaluator.evaluate(body.external_id, at)
    secret, evaluator.secret = evaluator.secret, outer
    if secret:
        reason = (
            "must not come from a hidden parameter or a secret output: readers can see physical IDs"
        )
        findings.add(at, reason, f"{PHYSICAL_ID_REMEDY} {PUBLIC_SOURCE}")
        return None
    if isinstance(given, str) and given:
        return given
    if given not in (None, "") and not is_reported(given):
        kind = wrong_kind(body.name, key, "string")
        findings.add(at, kind if is_static(given) else MUST_BE_KNOWN, PHYSICAL_ID_REMEDY)
    elif body.is_data and given in (None, ""):
        findings.add(at, "must not be empty", PHYSICAL_ID_REMEDY)
    return None


def refuse_rules(body: ResourceBody, place: str, findings: Findings) -> None:
    """Report rules of a resource with `external_id`: the stack does not operate on it."""
    for key in ("lifecycle", "preconditions", "postconditions"):
        if getattr(body, key) is not None:
            reason = f"A resource with external_id has no {key}: the stack does not change it."
            findings.add(f"{place}.{key}", reason, "Remove one of both.")


def read_deletion_policy(
    body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
) -> str:
    """Return `Delete`, `Retain` or `Snapshot`."""
    if not body.deletion_policy:
        return "Delete"
    scope = evaluator.scope
    key, findings = scope.version.dialect.deletion_policy, scope.findings
    here = f"{place}.{key}"
    evaluator.secret = False
    policy = evaluator.evaluate(body.deletion_policy, here)
    written = WRITTEN_IN_LOWER_CASE if scope.version.lower_case_policies else WRITTEN
    if isinstance(policy, str) and (known := written.get(policy)) is not None:
        if known == "Snapshot" and schema is not None and not schema.snapshots:
            reason = '"Snapshot" deletion policy not supported'
            remedy = f"{schema.name} does not support snapshots; use Retain."
            findings.add(here, reason, remedy)
        elif known == "Snapshot" and schema is not None and schema.name == SWITCHED_OFF:
            reason = f"{SWITCHED_OFF} creates nothing: there is nothing to take a snapshot of."
            findings.warn(here, reason, "Remove the policy.", "NoEffect")
        return known
    if is_reported(policy):
        return "Delete"
    if not is_static(policy):
        findings.add(here, MUST_BE_KNOWN, "Write the policy, or take it from a parameter.")
    elif evaluator.secret:
        findings.add(here, "Invalid deletion policy", one_of("", POLICIES, "Policies"))
    elif isinstance(body.deletion_policy, list):
        reason = wrong_kind(body.name, key, "string")
        findings.add(here, reason, one_of("", POLICIES, "Policies"))
    else:
        near = one_of(str(policy), POLICIES, "Policies")
        findings.add(here, f'Invalid deletion policy "{policy}"', near)
    return "Delete"


def read_update_policy(
    body: ResourceBody, schema: TypeSchema | None, place: str, evaluator: Evaluator
) -> Expression:
    """Return how a group changes its members. Sets `secret` of the evaluator if that contains a
    secret."""
    evaluator.secret = False
    if body.update_policy is None:
        return {}
    scope = evaluator.scope
    key = scope.version.dialect.update_policy
    value = evaluate_map(body.update_policy, key, place, evaluator)
    if schema is None or not schema.update_policy or type(value) is not dict:
        return value
    found = Findings()
    checked = check_update_policy(schema, value, f"{place}.{key}", found, scope.budget)
    if evaluator.secret:
        found.all = [one.without_values() for one in found.all]
    scope.findings.extend(found)
    return checked
