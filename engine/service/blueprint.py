"""From a request to everything that is to be stored: read, checked whole, nothing done yet."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from uuid import UUID

from engine.errors import Findings, Invalid
from engine.hooks.operator import OperatorRule, always, operator_declarations
from engine.hooks.reading import Declaration, Reader
from engine.hooks.rule import Limits as HookLimits
from engine.hot.definition import DefinedResource, Definition, define, fill_defaults
from engine.hot.effort import DEFAULT_LIMITS, EffortLimits
from engine.hot.environment import Environment
from engine.hot.expression import encode
from engine.hot.source import Limits as SourceLimits
from engine.hot.template import Template
from engine.service.quotas import Quotas
from engine.service.requests import StackRequest
from engine.service.written import OperatorEnvironment, read_request, unmasked, without_hidden
from engine.store.begin import NodeInputs
from engine.store.records import TemplateRecord
from engine.store.sealing import Hidden
from engine.types.registry import Registry
from engine.words import DeletionPolicy, Json, Restriction

#: Pseudo parameters that nobody knows before the stack is made.
IDS = frozenset({"OS::stack_id", "AWS::StackId"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What is accepted at most. versions: how many of a template are kept.

    signals, signal_bytes: how many are kept for one resource, and how large.
    constraint_timeout: how long an answer about a value under a custom constraint is waited for.
    operator: the operator's own breakpoints. environment: the operator's, for every stack.
    projects: those of projects that have their own. language: what evaluating a template may cost.
    """

    source: SourceLimits
    hooks: HookLimits
    resources: int
    versions: int
    snapshots: int
    signals: int = 1000
    signal_bytes: int = 65_536
    operator: Sequence[OperatorRule] = ()
    environment: OperatorEnvironment = field(default_factory=OperatorEnvironment)
    quotas: Quotas = field(default_factory=Quotas)
    projects: Mapping[str, "Limits"] = field(default_factory=dict)
    language: EffortLimits = DEFAULT_LIMITS
    constraint_timeout: timedelta = timedelta(seconds=10)

    def of(self, project: str) -> "Limits":
        return self.projects.get(project, self)


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A request, read. The lists of declarations are in the order of their strength. source: the
    template's text, as it was sent; None: it was no text."""

    template: Template
    environment: Environment
    files: Mapping[str, str]
    parameters: Mapping[str, Json]
    definition: Definition
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
    """Read a request. stored: the version that the stack has, which some updates start from.
    stack_id: None: nobody knows before it is made.

    Raises Invalid with all that is wrong, LimitReached.
    """
    kept = stored if request.keep_hidden else None
    stored = stored if request.existing else None
    written = read_request(
        request,
        stored,
        limits=limits.source,
        most_resources=limits.resources,
        operator=limits.environment,
        kept=kept,
    )
    template, environment = written.template, written.environment
    parameters = _parameters(request, stored, template)
    if kept:
        parameters = unmasked("parameters", parameters, kept)
    if stored:
        environment = _known_only(environment, template, request.clear_parameters)
    findings = Findings()
    definition = None
    try:
        definition = define(
            template=template,
            environment=environment,
            parameters=parameters,
            files=written.files,
            pseudo={"OS::project_id": project, "OS::stack_name": stack_name}
            | ({"OS::stack_id": str(stack_id)} if stack_id else {}),
            types=registry.schemas(),
            check_properties=partial(registry.check_properties, within=request.timeout_mins),
            judged=registry.judges().keys(),
            nesting=written.nesting,
            unknown=frozenset() if stack_id else IDS,
            limits=limits.language,
        )
    except Invalid as error:
        findings.all += error.findings
    # Whether a rule's condition is sound, nobody can say without the parameters.
    decide = definition.decide if definition else always
    reader = Reader(findings, limits.hooks, decide, registry.steps())
    asked = reader.requested(request.hooks_add)
    by_environment = reader.declarations(environment.declared)
    by_template = reader.declarations(template.declared)
    if definition is None:
        raise Invalid(findings.all)
    findings.raise_if_any()
    hidden, sources = definition.hidden, limits.source
    return Blueprint(
        template,
        environment,
        without_hidden(written.files, request.environment_files, hidden, sources),
        parameters,
        definition,
        operator_declarations(limits.operator, project, limits.hooks, definition.decide),
        asked,
        by_environment,
        by_template,
        written.source,
    )


def _parameters(
    request: StackRequest, stored: TemplateRecord | None, template: Template
) -> dict[str, Json]:
    """As Heat: an update of what exists forgets parameters the template does not know."""
    if stored is None:
        return dict(request.parameters)
    kept = {
        name: value
        for name, value in stored.parameters.items()
        if name in template.parameters and name not in request.clear_parameters
    }
    return {**kept, **request.parameters}


def _known_only(
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
) -> dict[str, NodeInputs]:
    """What is stored with the nodes of these names: see NodeInputs. Values known now are completed
    now.

    kept: by resource, what a snapshot kept of it, for a restore. adjusted: by group, how it is
    scaled.
    """
    definition, restricted = blueprint.definition, blueprint.environment.registry.restricted
    secret = {
        resource.name
        for resource in definition.resources.values()
        if registry.get(resource.type).schema.has_secrets()
    }
    return {
        resource.name: NodeInputs(
            _definition(resource, definition.version, registry, secret)
            | _rarer(resource, restricted(resource.name))
            | _of_this_change(resource.name, kept, adjusted),
            sorted(resource.reads),
            sorted(resource.requires),
        )
        for name in names
        if (resource := definition.resources.get(name)) is not None
    }


def _rarer(resource: DefinedResource, restricted: frozenset[Restriction]) -> dict[str, Json]:
    stored: dict[str, Json] = {}
    if resource.update_policy:
        stored["update_policy"] = encode(resource.update_policy)
    if resource.external_id is not None:
        stored["external_id"] = resource.external_id
    if resource.deletion_policy != DeletionPolicy.DELETE:
        stored["deletion_policy"] = resource.deletion_policy
    if restricted:
        stored["restricted"] = sorted(restricted)
    return stored


def _of_this_change(
    name: str, kept: Mapping[str, Json], adjusted: Mapping[str, Json]
) -> dict[str, Json]:
    stored: dict[str, Json] = {}
    if name in kept:
        stored["kept"] = Hidden(kept[name])
    if name in adjusted:
        stored["adjusted"] = adjusted[name]
    return stored


def _definition(
    resource: DefinedResource, version: str, registry: Registry, secret: set[str]
) -> dict[str, Json]:
    masked = resource.masked_properties
    sealed: Callable[[Json], Json] = (
        Hidden if masked is not None or resource.secret_metadata else _plain
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


def stored_outputs(definition: Definition) -> Json:
    """[{key, description, value: encoded expression}], in the template's order."""
    return [
        {"key": key, "description": output.description, "value": encode(output.value)}
        for key, output in definition.outputs.items()
    ]
