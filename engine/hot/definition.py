"""What a stack should be: a template with its environment and parameters, checked and reduced to
values and to expressions over resources. Pure; called by accepting, previewing and validating."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from engine.errors import Findings
from engine.hot.conditions import Conditions
from engine.hot.declared import DeclaredHook
from engine.hot.defined import DefinedOutput, DefinedResource, Definition
from engine.hot.defining import CheckProperties, Defining
from engine.hot.effort import DEFAULT_LIMITS, Effort, EffortLimits
from engine.hot.environment import Environment
from engine.hot.facade import Facade
from engine.hot.parameters import parameter_values
from engine.hot.partial import Scope
from engine.hot.properties import check_resolved, fill_defaults
from engine.hot.pseudo import pseudo_values
from engine.hot.questions import check_names
from engine.hot.resolve import evaluate_output
from engine.hot.schema import TypeSchema
from engine.hot.template import Template
from engine.hot.versions import VERSIONS
from engine.words import Json

__all__ = [
    "DeclaredHook",
    "DefinedOutput",
    "DefinedResource",
    "Definition",
    "check_resolved",
    "define",
    "evaluate_output",
    "fill_defaults",
]


def define(
    *,
    template: Template,
    environment: Environment,
    parameters: Mapping[str, Json],
    files: Mapping[str, str],
    pseudo: Mapping[str, str],
    types: Mapping[str, TypeSchema],
    check_properties: CheckProperties,
    judged: Collection[str] = (),
    facade: Facade | None = None,
    limits: EffortLimits = DEFAULT_LIMITS,
) -> Definition:
    """Return the definition. Raises Invalid with everything that is wrong, in document order.

    parameters: of the request; they win over the environment's. pseudo: values of the pseudo
    parameters by HOT's names. check_properties(type, properties known now, place, findings):
    the rules of a type across its properties. judged: names of custom constraints that somebody is
    asked about. facade: what a nested stack stands for. limits: what evaluating it all may cost.
    """
    findings, effort = Findings(), Effort(limits)
    check_names(template.parameters, judged, findings)
    given = {**environment.parameters, **parameters}
    values = parameter_values(
        template.parameters, given, environment.parameter_defaults, findings, effort
    )
    complete = len(values) == len(template.parameters)
    version = VERSIONS[template.version]
    shown = pseudo_values(template, pseudo, environment.parameter_defaults, findings)
    known = {**shown, **values}
    conditions = Conditions(
        template.conditions, version, known, findings, template.mappings, effort
    )
    if not complete and template.conditions:
        findings.raise_if_any()  # what a condition would say is not known
    conditions.decide_all()
    if conditions.failed:
        findings.raise_if_any()
    hidden = frozenset(name for name, one in template.parameters.items() if one.hidden)
    work = Defining(template, environment, types, check_properties, findings, conditions)
    work.choose()
    scope = Scope(
        version=version,
        parameters=known,
        hidden=hidden,
        files=files,
        types=work.schemas,
        disabled=work.disabled,
        findings=findings,
        decide=conditions.decide,
        parameter_names=frozenset(template.parameters),
        mappings=template.mappings,
        facade=facade,
        effort=effort,
    )
    resources = work.define_resources(scope)
    outputs = work.define_outputs(scope)
    findings.raise_if_any()
    return Definition(
        version=template.version,
        description=template.description,
        resources=resources,
        outputs=outputs,
        parameters=values,
        pseudo=shown,
        hidden=hidden,
        declared=template.declared + environment.declared,
        schemas=template.parameters,
        # Breakpoints may be conditional in templates of any version.
        decide=replace(conditions, version=VERSIONS[max(VERSIONS)]).decide,
    )
