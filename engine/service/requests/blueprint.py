"""Builds a `Blueprint` from a request: parses and validates it, and stores nothing."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from engine.errors import (
    BODY,
    Finding,
    Findings,
    Invalid,
    MissingTemplates,
    as_errors,
    one_of,
)
from engine.hooks.operator import OperatorRule, always, operator_declarations
from engine.hooks.rule import HookLimits
from engine.hooks.rule_patterns import declarations_of_parent
from engine.hooks.rule_reader import Declaration, Reader
from engine.hot.definition.lifecycle import Lifecycle
from engine.hot.definition.model import ResourceAssertions
from engine.hot.definition.reuse import ReusableResources
from engine.hot.definition.stack import (
    ResourceDefinition,
    StackDefinition,
    define_stack,
    fill_defaults,
)
from engine.hot.environment.environment import Environment
from engine.hot.evaluation.assertions import encode_assertions
from engine.hot.evaluation.stack_outputs import OutputName, StackOutput, StackOutputs
from engine.hot.expressions.expression import encode
from engine.hot.functions.cost_budget import DEFAULT_LIMITS, CostLimits
from engine.hot.nested.nested_templates import NESTING_DEPTH
from engine.hot.syntax.document import DocumentLimits as SourceLimits
from engine.hot.template.template import Template
from engine.plan.convergence import SECTION, PolicyRules, merge_sections
from engine.plan.labels import LabelRules
from engine.plan.overrides import OVERRIDES
from engine.service.requests.parsing import (
    EMPTY,
    OperatorEnvironment,
    ParsedRequest,
    read_request,
    unmask,
    without_hidden,
)
from engine.service.requests.quotas import Quotas
from engine.service.requests.requests import StackRequest
from engine.store.encryption.secret_values import Scope, Secret
from engine.store.records import TemplateRecord
from engine.store.traversals.start import NodeInputs
from engine.types.registry import TypeRegistry
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
    by project. language: the cost budget for evaluating a template. nesting_depth: maximum
    levels of nested stacks. strict: warnings are errors. convergence: of the observer.
    deletes_nested: whether users may delete a nested stack by itself. labels: the operator's rules
    for labels of workers. region: of stacks whose environment names none; "": the first one of the
    service catalog.
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
    nesting_depth: int = NESTING_DEPTH
    constraint_timeout: timedelta = timedelta(seconds=10)
    strict: bool = False
    convergence: PolicyRules = field(default_factory=PolicyRules)
    deletes_nested: bool = False
    labels: LabelRules = field(default_factory=LabelRules)
    region: str = ""

    def for_project(self, project: str) -> "Limits":
        """The limits of a project."""
        return self.projects.get(project, self)

    def read(
        self,
        request: StackRequest,
        stored: TemplateRecord | None,
        *,
        fetched: Mapping[str, str] = EMPTY,
        kept: TemplateRecord | None = None,
    ) -> ParsedRequest:
        """`read_request` within these limits, with the operator's environment."""
        return read_request(
            request,
            stored,
            limits=self.source,
            most_resources=self.resources,
            nesting_depth=self.nesting_depth,
            operator=self.environment,
            fetched=fetched,
            kept=kept,
        )


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A parsed and validated request: everything that a change stores.

    by_operator, by_request, by_environment, by_template: breakpoint rules by source, in descending
    precedence. source: the template's text as it was sent; None if it was sent as an object.
    hidden: see `hidden_names`. warnings: about the request; strict: further ones are errors.
    template_order: of the keys of a stored template; None: that of `template`. stack_outputs: the
    outputs of other stacks that it reads. by_parent: it is of a nested stack, which its parent
    changes. has_members: the resources of that stack are the members of a group.
    """

    template: Template
    environment: Environment
    files: Mapping[str, str]
    parameters: Mapping[str, Json]
    definition: StackDefinition
    by_operator: Sequence[Declaration]
    by_request: Sequence[Declaration]
    by_environment: Sequence[Declaration]
    by_template: Sequence[Declaration]
    source: str | None = None
    hidden: frozenset[str] = frozenset()
    warnings: Sequence[Finding] = ()
    strict: bool = False
    template_order: Json = None
    stack_outputs: Mapping[OutputName, StackOutput] = field(default_factory=dict)
    by_parent: bool = False
    has_members: bool = False

    @property
    def convergence(self) -> Json:
        """See `section_of`."""
        return section_of(self.template, self.environment)

    @property
    def region(self) -> str:
        """The region that the environment names; "": the configured one."""
        return self.environment.region

    @property
    def has_rules(self) -> bool:
        """Whether the request, the environment or the template has breakpoint rules."""
        return bool(self.by_request or self.by_environment or self.by_template)


@dataclass(frozen=True, slots=True)
class NestedPlace:
    """Where a nested stack is that a change of its own concerns. path: names of the resources from
    the root stack. parent_rules: the rules that its parent stack passed on, as rows of
    `NestedContext.nested_breakpoints`."""

    path: Sequence[str]
    parent_rules: Sequence[Json]


def build(
    request: StackRequest,
    stored: TemplateRecord | None,
    *,
    project: str,
    stack_id: UUID | None,
    stack_name: str,
    registry: TypeRegistry,
    limits: Limits,
    nested: NestedPlace | None = None,
    previous: ReusableResources | None = None,
    stack_outputs: StackOutputs | None = None,
) -> Blueprint:
    """Build the blueprint of a request. stored: the stack's current template version, which updates
    with `existing` or `keep_hidden` use. stack_id: None if the stack does not exist yet. nested:
    None for a root stack. previous: of an earlier blueprint of the stack, with the same registry
    and timeout. stack_outputs: see `define_stack`.

    Raises Invalid with all errors, LimitReached.
    """
    kept = stored if request.keep_hidden else None
    existing = stored if request.existing else None
    parsed = limits.read(request, existing, kept=kept)
    template = parsed.template
    environment, parameters, kept_hidden = _merge_stored(request, parsed, existing, kept)
    findings = Findings()
    definition, early = None, Findings()
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
            secret=kept_hidden,
            limits=limits.language,
            previous=previous,
            stack_outputs=stack_outputs,
        )
    except Invalid as error:
        findings.all += error.findings
        early.warn_all(error.warnings)
    # Without a definition there are no parameter values, so that no condition can be evaluated.
    decide = definition.decide if definition else always
    reader = Reader(findings, limits.hooks, decide, registry.steps())
    rules = _read_rules(reader, request, template, environment, nested)
    strict = request.strict or limits.strict
    warnings = warnings_of(request, parsed, definition, early.warnings)
    if strict:
        findings.all += as_errors(warnings)
    if definition is None or findings.all:
        shown = () if strict else warnings
        if missing := parsed.nesting.missing:
            raise MissingTemplates(findings.all, missing, shown)
        raise Invalid(findings.all, shown)
    hidden = hidden_names(definition, environment, kept_hidden)
    sources = limits.source
    return Blueprint(
        template,
        environment,
        without_hidden(parsed.files, request.environment_files, hidden, sources),
        parameters,
        definition,
        operator_declarations(
            limits.operator,
            project,
            limits.hooks,
            definition.decide,
            nested.path if nested else (),
        ),
        *rules,
        parsed.source,
        hidden,
        warnings,
        strict,
        parsed.template_order,
        stack_outputs.find_used() if stack_outputs else {},
    )


class _Inputs(NamedTuple):
    """What a definition is built from, with what the change keeps of the stored version.

    kept_hidden: names of hidden parameters whose stored values it keeps.
    """

    environment: Environment
    parameters: Mapping[str, Json]
    kept_hidden: frozenset[str]


def _merge_stored(
    request: StackRequest,
    parsed: ParsedRequest,
    existing: TemplateRecord | None,
    kept: TemplateRecord | None,
) -> _Inputs:
    """existing: the version that the request changes; None: it states everything. kept: the version
    whose hidden values replace masks in the request."""
    template, environment = parsed.template, parsed.environment
    parameters = _parameters(request, existing, template)
    if kept:
        parameters = unmask("parameters", parameters, kept)
    if existing:
        environment = _without_unknown(environment, template, request.clear_parameters)
    kept_hidden = _retained_hidden_names(existing or kept, environment, parameters)
    return _Inputs(environment, parameters, kept_hidden)


class _Rules(NamedTuple):
    """The breakpoint rules of a `Blueprint` that users wrote."""

    by_request: Sequence[Declaration]
    by_environment: Sequence[Declaration]
    by_template: Sequence[Declaration]


def _read_rules(
    reader: Reader,
    request: StackRequest,
    template: Template,
    environment: Environment,
    nested: NestedPlace | None,
) -> _Rules:
    by_request = reader.read_requested(request.hooks_add)
    reader.check_cleared(request.hooks_clear)
    # The rules in a nested stack's environment are of its parent, which evaluates their conditions.
    by_environment = (
        reader.declarations(environment.hook_declarations)
        if nested is None
        else [one for one, _ in declarations_of_parent(nested.parent_rules, nested.path[-1])]
    )
    return _Rules(by_request, by_environment, reader.declarations(template.hook_declarations))


def section_of(template: Template, environment: Environment) -> Json:
    """The section `convergence` of the template and the environment; None: there is none."""
    return merge_sections(template.document.get(SECTION), environment.document.get(SECTION))


def warnings_of(
    request: StackRequest,
    parsed: ParsedRequest,
    definition: StackDefinition | None,
    early: Sequence[Finding],
) -> tuple[Finding, ...]:
    """The warnings about a request. definition: None if it is not valid. early: those that were
    found before."""
    found = Findings()
    found.warn_all(request.warnings)
    declared = parsed.template.parameters
    for name in request.clear_parameters:
        if name not in declared:
            reason = f'"{name}" is not a parameter of the template'
            remedy = one_of(name, [*declared], "Parameters")
            found.warn_all([Finding("clear_parameters", reason, remedy, "NoEffect", BODY)])
    if definition is None:
        found.warn_all((*parsed.template.warnings, *parsed.environment.warnings, *early))
    else:
        found.warn_all(definition.warnings)
    return found.warnings


def hidden_names(
    definition: StackDefinition, environment: Environment, inherited: Collection[str]
) -> frozenset[str]:
    """Names of the parameters whose values are masked in this stack's documents and encrypted at
    rest: its hidden parameters, and those that it does not declare itself, has in its
    `parameter_defaults`, and another stack of the tree hides.

    inherited: hidden parameters of the parent stack or of the stored version.
    """
    elsewhere = environment.parameter_defaults.keys() - definition.schemas.keys()
    if not elsewhere:
        return definition.hidden
    return definition.hidden | (elsewhere & _hidden_in_nested_stacks(definition).union(inherited))


def _hidden_in_nested_stacks(definition: StackDefinition) -> frozenset[str]:
    """The hidden parameters of the nested stacks and of members, on every level."""
    each = (one.definition for one in definition.contained)
    return frozenset(name for one in each for name in one.hidden | _hidden_in_nested_stacks(one))


def _parameters(
    request: StackRequest, stored: TemplateRecord | None, template: Template
) -> dict[str, Json]:
    """The parameters of a request, over those of `stored`. As in Heat,
    parameters that the template does not declare are dropped."""
    if stored is None:
        return dict(request.parameters)
    kept = {
        name: value
        for name, value in stored.ordered_parameters().items()
        if name in template.parameters and name not in request.clear_parameters
    }
    return {**kept, **request.parameters}


def _retained_hidden_names(
    before: TemplateRecord | None, environment: Environment, parameters: Mapping[str, Json]
) -> frozenset[str]:
    """Names of the hidden parameters whose stored values this change keeps.

    They stay hidden even if neither the template nor the environment hides them, because a parent
    stack or an earlier version did. before: the version that the request starts from, or None.
    """
    if before is None:
        return frozenset()
    stored = before.environment
    old = _effective(stored.get("parameter_defaults"), stored.get("parameters"), before.parameters)
    new = _effective(environment.parameter_defaults, environment.parameters, parameters)
    return frozenset(
        name for name in before.hidden_parameters if name in old and new.get(name) == old[name]
    )


def _effective(
    defaults: Mapping[str, Json] | None,
    values: Mapping[str, Json] | None,
    requested: Mapping[str, Json],
) -> dict[str, Json]:
    """The values of parameters by precedence; null is no value."""
    both = {**(values or {}), **requested}
    ranked = [*(defaults or {}).items(), *both.items()]
    return {name: value for name, value in ranked if value is not None}


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
    registry: TypeRegistry,
    names: Collection[str],
    kept: Mapping[str, Json],
    adjusted: Mapping[str, Json],
    overrides: Mapping[str, Json],
    scope: Scope,
) -> dict[str, NodeInputs]:
    """The inputs that are stored with the nodes of these resources, by name. Defaults are filled in
    for properties that are static.

    kept, overrides: snapshot data, and adopted values, by resource, for a restore. adjusted:
    `Call.adjusted` by group, for scaling. scope: the encryption scope of the definitions.
    """
    definition, restricted = blueprint.definition, blueprint.environment.registry.restrictions_of
    changed = [definition.resources[name] for name in names if name in definition.resources]
    read = {one for resource in changed for one in resource.reads}
    secret = {
        name
        for name in read
        if registry.get(definition.resources[name].type).schema.has_secret_reference()
    }
    return {
        resource.name: NodeInputs(
            _definition(resource, definition.version, registry, secret, scope)
            | _optional_parts(resource, restricted(resource.name), scope)
            | _change_data(resource.name, kept, adjusted, overrides, scope),
            sorted(resource.reads),
            sorted(resource.requires),
        )
        for resource in changed
    }


def _optional_parts(
    resource: ResourceDefinition, restricted: frozenset[Restriction], scope: Scope
) -> dict[str, Json]:
    stored: dict[str, Json] = {}
    if resource.update_policy:
        policy = encode(resource.update_policy)
        stored["update_policy"] = Secret(policy, scope) if resource.secret_policy else policy
        if resource.secret_policy:
            stored["secret_policy"] = True
    if resource.external_id is not None:
        stored["external_id"] = resource.external_id
    if resource.is_data:
        stored["data"] = True
    if resource.deletion_policy != DeletionPolicy.DELETE:
        stored["deletion_policy"] = resource.deletion_policy
    if restricted:
        stored["restricted"] = sorted(restricted)
    if resource.lifecycle is not None:
        stored |= _lifecycle_parts(resource.lifecycle, scope)
    if resource.assertions is not None:
        stored |= _assertion_parts(resource.assertions, scope)
    return stored


def _assertion_parts(assertions: ResourceAssertions, scope: Scope) -> dict[str, Json]:
    """Conditions with values of secrets are encrypted."""
    encrypted: Callable[[Json], Json] = (
        partial(Secret, scope=scope) if assertions.secret else _plain
    )
    both = {
        "preconditions": assertions.preconditions,
        "postconditions": assertions.postconditions,
    }
    stored = {name: encrypted(encode_assertions(each)) for name, each in both.items() if each}
    return stored | ({"secret_conditions": True} if assertions.secret else {})


def _lifecycle_parts(lifecycle: Lifecycle, scope: Scope) -> dict[str, Json]:
    stored: dict[str, Json] = {"lifecycle": lifecycle.encode()}
    if lifecycle.triggers:
        triggers = lifecycle.encode_triggers()
        stored["triggers"] = Secret(triggers, scope) if lifecycle.secret else triggers
        if lifecycle.secret:
            stored["secret_triggers"] = True
    return stored


def _change_data(
    name: str,
    kept: Mapping[str, Json],
    adjusted: Mapping[str, Json],
    overrides: Mapping[str, Json],
    scope: Scope,
) -> dict[str, Json]:
    stored: dict[str, Json] = {}
    if name in kept:
        stored["kept"] = Secret(kept[name], scope)
    if name in adjusted:
        stored["adjusted"] = adjusted[name]
    if name in overrides:
        stored[OVERRIDES] = overrides[name]
    return stored


def _definition(
    resource: ResourceDefinition,
    version: str,
    registry: TypeRegistry,
    secret: set[str],
    scope: Scope,
) -> dict[str, Json]:
    masked = resource.masked_properties
    encrypted: Callable[[Json], Json] = (
        partial(Secret, scope=scope) if masked is not None or resource.secret_metadata else _plain
    )
    stored: dict[str, Json] = {
        "version": version,
        "digest": resource.digest,
        "masked": None if masked is None else encode(masked),
    }
    if resource.secret_metadata:
        stored["secret_metadata"] = True
    if resource.reads:
        stored["properties"] = encrypted(encode(resource.properties))
        stored["metadata"] = encrypted(encode(resource.metadata))
        stored["secret_references"] = sorted(secret & resource.reads)
    else:
        schema = registry.get(resource.type).schema
        stored["static"] = True
        stored["properties"] = encrypted(fill_defaults(schema, resource.properties))
        stored["metadata"] = encrypted(resource.metadata)
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
