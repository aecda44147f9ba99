"""Builds a `Blueprint` from a request: parses and validates it, and stores nothing."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from uuid import UUID

from engine.errors import Findings, Invalid
from engine.hooks.operator import OperatorRule, always, operator_declarations
from engine.hooks.rule import Limits as HookLimits
from engine.hooks.rule_reader import Declaration, Reader
from engine.hot.definition.stack import (
    ResourceDefinition,
    StackDefinition,
    define_stack,
    fill_defaults,
)
from engine.hot.environment.environment import Environment
from engine.hot.expressions.expression import encode
from engine.hot.functions.cost_budget import DEFAULT_LIMITS, CostLimits
from engine.hot.syntax.document import DocumentLimits as SourceLimits
from engine.hot.template.template import Template
from engine.service.requests.parsing import (
    OperatorEnvironment,
    read_request,
    unmasked,
    without_hidden,
)
from engine.service.requests.quotas import Quotas
from engine.service.requests.requests import StackRequest
from engine.store.encryption import Hidden, Scope
from engine.store.records import TemplateRecord
from engine.store.traversal_start import NodeInputs
from engine.types.registry import Registry
from engine.words import DeletionPolicy, Json, Restriction

#: Pseudo parameters without a value before the stack exists.
IDS = frozenset({"OS::stack_id", "AWS::StackId"})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of requests and stacks, and the operator's rules and environment.

    resources: per stack. versions: retained template versions per stack. snapshots: per stack.
    signals: stored per resource. signal_bytes: per signal. resource_bytes: size of the evaluated
    properties of one resource. constraint_timeout: for each external validator call. operator: the
    operator's breakpoint rules. environment: the operator's, for every stack. projects: overrides,
    by project. language: the cost budget for evaluating a template.
    """

    source: SourceLimits
    hooks: HookLimits
    resources: int
    versions: int
    snapshots: int
    signals: int = 1000
    signal_bytes: int = 65_536
    resource_bytes: int = 4_194_304
    operator: Sequence[OperatorRule] = ()
    environment: OperatorEnvironment = field(default_factory=OperatorEnvironment)
    quotas: Quotas = field(default_factory=Quotas)
    projects: Mapping[str, "Limits"] = field(default_factory=dict)
    language: CostLimits = DEFAULT_LIMITS
    constraint_timeout: timedelta = timedelta(seconds=10)

    def of(self, project: str) -> "Limits":
        """The limits of a project."""
        return self.projects.get(project, self)


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A parsed and validated request: everything that a change stores.

    by_operator, asked, by_environment, by_template: breakpoint rules by source, in descending
    precedence; asked: of this request. source: the template's text as it was sent; None if it was
    sent as an object.
    """

    template: Template
    environment: Environment
    files: Mapping[str, str]
    parameters: Mapping[str, Json]
    definition: StackDefinition
    by_operator: Sequence[Declaration]
    asked: Sequence[Declaration]
    by_environment: Sequence[Declaration]
    by_template: Sequence[Declaration]
    source: str | None = None


def build(
    request: StackRequest,
    stored: TemplateRecord | None,
    *,
    project: str,
    stack_id: UUID | None,
    stack_name: str,
    registry: Registry,
    limits: Limits,
) -> Blueprint:
    """Build the blueprint of a request. stored: the stack's current template version, which updates
    with `existing` or `keep_hidden` use. stack_id: None if the stack does not exist yet.

    Raises Invalid with all errors, LimitReached.
    """
    kept = stored if request.keep_hidden else None
    stored = stored if request.existing else None
    parsed = read_request(
        request,
        stored,
        limits=limits.source,
        most_resources=limits.resources,
        operator=limits.environment,
        kept=kept,
    )
    template, environment = parsed.template, parsed.environment
    parameters = _parameters(request, stored, template)
    if kept:
        parameters = unmasked("parameters", parameters, kept)
    if stored:
        environment = _without_unknown(environment, template, request.clear_parameters)
    findings = Findings()
    definition = None
    try:
        definition = define_stack(
            template=template,
            environment=environment,
            parameters=parameters,
            files=parsed.files,
            pseudo={"OS::project_id": project, "OS::stack_name": stack_name}
            | ({"OS::stack_id": str(stack_id)} if stack_id else {}),
            types=registry.schemas(),
            check_properties=partial(registry.check_properties, within=request.timeout_mins),
            validators=registry.validators().keys(),
            nesting=parsed.nesting,
            unknown=frozenset() if stack_id else IDS,
            limits=limits.language,
        )
    except Invalid as error:
        findings.all += error.findings
    # Without a definition there are no parameter values, so that no condition can be evaluated.
    decide = definition.decide if definition else always
    reader = Reader(findings, limits.hooks, decide, registry.steps())
    asked = reader.requested(request.hooks_add)
    by_environment = reader.declarations(environment.hook_declarations)
    by_template = reader.declarations(template.hook_declarations)
    if definition is None:
        raise Invalid(findings.all)
    findings.raise_if_any()
    hidden, sources = definition.hidden, limits.source
    return Blueprint(
        template,
        environment,
        without_hidden(parsed.files, request.environment_files, hidden, sources),
        parameters,
        definition,
        operator_declarations(limits.operator, project, limits.hooks, definition.decide),
        asked,
        by_environment,
        by_template,
        parsed.source,
    )


def _parameters(
    request: StackRequest, stored: TemplateRecord | None, template: Template
) -> dict[str, Json]:
    """The parameters of a request, over the stored ones if `stored` is given. As in Heat,
    parameters that the template does not declare are dropped."""
    if stored is None:
        return dict(request.parameters)
    kept = {
        name: value
        for name, value in stored.parameters.items()
        if name in template.parameters and name not in request.clear_parameters
    }
    return {**kept, **request.parameters}


def _without_unknown(
    environment: Environment, template: Template, cleared: Sequence[str]
) -> Environment:
    parameters = {
        name: value
        for name, value in environment.parameters.items()
        if name in template.parameters and name not in cleared
    }
    if len(parameters) == len(environment.parameters):
        return environment
    kept = {**environment.document, "parameters": parameters}
    return replace(environment, parameters=parameters, document=kept)


def node_inputs(
    blueprint: Blueprint,
    registry: Registry,
    names: Collection[str],
    kept: Mapping[str, Json],
    adjusted: Mapping[str, Json],
    scope: Scope,
) -> dict[str, NodeInputs]:
    """The inputs that are stored with the nodes of these resources, by name. Defaults are filled in
    for properties that are static.

    kept: snapshot data by resource, for a restore. adjusted: `Call.adjusted` by group, for scaling.
    scope: the encryption scope of the definitions.
    """
    definition, restricted = blueprint.definition, blueprint.environment.registry.restrictions_of
    secret = {
        resource.name
        for resource in definition.resources.values()
        if registry.get(resource.type).schema.has_secrets()
    }
    return {
        resource.name: NodeInputs(
            _definition(resource, definition.version, registry, secret, scope)
            | _optional_parts(resource, restricted(resource.name), scope)
            | _change_data(resource.name, kept, adjusted, scope),
            sorted(resource.reads),
            sorted(resource.requires),
        )
        for name in names
        if (resource := definition.resources.get(name)) is not None
    }


def _optional_parts(
    resource: ResourceDefinition, restricted: frozenset[Restriction], scope: Scope
) -> dict[str, Json]:
    stored: dict[str, Json] = {}
    if resource.update_policy:
        policy = encode(resource.update_policy)
        stored["update_policy"] = Hidden(policy, scope) if resource.secret_policy else policy
        if resource.secret_policy:
            stored["secret_policy"] = True
    if resource.external_id is not None:
        stored["external_id"] = resource.external_id
    if resource.deletion_policy != DeletionPolicy.DELETE:
        stored["deletion_policy"] = resource.deletion_policy
    if restricted:
        stored["restricted"] = sorted(restricted)
    return stored


def _change_data(
    name: str, kept: Mapping[str, Json], adjusted: Mapping[str, Json], scope: Scope
) -> dict[str, Json]:
    stored: dict[str, Json] = {}
    if name in kept:
        stored["kept"] = Hidden(kept[name], scope)
    if name in adjusted:
        stored["adjusted"] = adjusted[name]
    return stored


def _definition(
    resource: ResourceDefinition, version: str, registry: Registry, secret: set[str], scope: Scope
) -> dict[str, Json]:
    masked = resource.masked_properties
    sealed: Callable[[Json], Json] = (
        partial(Hidden, scope=scope) if masked is not None or resource.secret_metadata else _plain
    )
    stored: dict[str, Json] = {
        "version": version,
        "digest": resource.digest,
        "masked": None if masked is None else encode(masked),
    }
    if resource.secret_metadata:
        stored["secret_metadata"] = True
    if resource.reads:
        stored["properties"] = sealed(encode(resource.properties))
        stored["metadata"] = sealed(encode(resource.metadata))
        stored["secret_references"] = sorted(secret & resource.reads)
    else:
        schema = registry.get(resource.type).schema
        stored["static"] = True
        stored["properties"] = sealed(fill_defaults(schema, resource.properties))
        stored["metadata"] = sealed(resource.metadata)
    return stored


def _plain(value: Json) -> Json:
    return value


def stored_outputs(definition: StackDefinition) -> Json:
    """[{key, description, value: encoded expression, secret}], in the template's order."""
    return [
        {
            "key": key,
            "description": output.description,
            "value": encode(output.value),
            "secret": output.secret,
        }
        for key, output in definition.outputs.items()
    ]
