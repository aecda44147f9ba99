"""Builds the definition of a stack from a template, its environment and parameters: checked, and
reduced to values and to expressions over resources. Creating, updating, previewing and validating
call it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from engine.errors import Findings, Invalid
from engine.hot.definition.model import (
    ContainedStack,
    NestedStackDefinition,
    OutputDefinition,
    ResourceDefinition,
    StackDefinition,
)
from engine.hot.definition.resources import CheckProperties, DefinitionBuilder
from engine.hot.definition.validators import check_constraint_names
from engine.hot.environment.environment import Environment
from engine.hot.evaluation.conditions import Conditions
from engine.hot.evaluation.evaluator import Scope
from engine.hot.evaluation.resolver import evaluate_output
from engine.hot.evaluation.resource_facade import UNKNOWN_FACADE, ResourceFacade
from engine.hot.functions.cost_budget import DEFAULT_LIMITS, CostBudget, CostLimits
from engine.hot.gc_pause import pause_gc
from engine.hot.language.versions import VERSIONS
from engine.hot.nested.nested_templates import (
    NestedTemplates,
    add_member_findings,
    add_nested_findings,
    nested_place,
    place_in_nested,
    place_of_member,
)
from engine.hot.nested.template_type import (
    TemplateType,
    nested_parameters,
    settings_inside,
    template_type,
)
from engine.hot.schema.parameters import ParameterSchema, convert_parameters
from engine.hot.schema.properties import check_resolved, fill_defaults
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.template.hook_declarations import HookDeclaration
from engine.hot.template.pseudo_parameters import pseudo_values
from engine.hot.template.template import Template, parse_template
from engine.words import Json

#: Pseudo parameters that a nested stack has values of its own for, once it exists.
PER_STACK = frozenset({"OS::stack_id", "OS::stack_name", "AWS::StackId", "AWS::StackName"})

__all__ = [
    "HookDeclaration",
    "NestedStackDefinition",
    "OutputDefinition",
    "ResourceDefinition",
    "StackDefinition",
    "check_resolved",
    "define_stack",
    "evaluate_output",
    "fill_defaults",
]


def define_stack(
    *,
    template: Template,
    environment: Environment,
    parameters: Mapping[str, Json],
    files: Mapping[str, str],
    pseudo: Mapping[str, str],
    types: Mapping[str, TypeSchema],
    check_properties: CheckProperties,
    validators: Collection[str] = (),
    nesting: NestedTemplates | None = None,
    unknown: frozenset[str] = frozenset(),
    secret: frozenset[str] = frozenset(),
    facade: ResourceFacade | None = None,
    limits: CostLimits = DEFAULT_LIMITS,
) -> StackDefinition:
    """Return the definition including nested stacks. Raises Invalid with all findings in document
    order, or LimitReached.

    parameters: of the request; they precede those of the environment. pseudo: values of pseudo
    parameters by HOT names. check_properties(type, known properties, place, findings): checks of a
    type across its properties. validators: names of custom constraints with an external validator.
    nesting: source of nested templates; None: the files. unknown: parameters that get a value
    later. secret: parameters that are hidden although nothing here declares them so. facade: the
    resource that a nested stack implements. limits: of the cost of evaluation.
    """
    found = nesting or NestedTemplates(files)
    tree = _StackTree(found, types, check_properties, files, validators, CostBudget(limits))
    given = _StackInput(parameters, pseudo, unknown, secret, facade)
    with pause_gc():
        return tree.define(template, environment, given)


@dataclass(frozen=True, slots=True)
class _StackInput:
    """What a stack receives from outside. unknown: parameters, including pseudo ones, that get a
    value when the stack is created. secret: parameters whose values the parent stack hides.
    """

    parameters: Mapping[str, Json]
    pseudo: Mapping[str, str]
    unknown: frozenset[str]
    secret: frozenset[str] = frozenset()
    facade: ResourceFacade | None = None


@dataclass(frozen=True, slots=True)
class _StackTree:
    """What is common to a stack and its nested stacks; `nesting` differs by level."""

    nesting: NestedTemplates
    types: Mapping[str, TypeSchema]
    check_properties: CheckProperties
    files: Mapping[str, str]
    validators: Collection[str]
    budget: CostBudget

    def define(
        self, template: Template, environment: Environment, given: _StackInput
    ) -> StackDefinition:
        # The form of a nested template is reported where the template is read.
        form = () if self.nesting.path else template.findings
        findings = Findings([*form, *environment.findings])
        self.nesting.count_template(template)
        check_constraint_names(template.parameters, self.validators, findings)
        schemas = _schemas(template, given.secret.union(environment.encrypted_param_names))
        given_values = {**environment.parameters, **given.parameters}
        given_later = given.unknown
        if environment.findings:  # its parameters are unknown
            given_later = given_later.union(schemas.keys() - given_values.keys())
        unreadable = given.unknown | template.unreadable.parameters
        values = convert_parameters(
            {name: one for name, one in schemas.items() if name not in given_later},
            {name: one for name, one in given_values.items() if name not in unreadable},
            environment.parameter_defaults,
            findings,
            self.budget,
        )
        shown = pseudo_values(template, given.pseudo, environment.parameter_defaults, findings)
        known = {**shown, **values}
        unknown = given.unknown.union(schemas, template.unreadable.parameters).difference(known)
        version = VERSIONS[template.version]
        conditions = Conditions(
            template.conditions,
            version,
            known,
            findings,
            unknown,
            template.mappings,
            self.budget,
        )
        conditions.decide_all()
        hidden = frozenset(name for name, one in schemas.items() if one.hidden)
        builder = DefinitionBuilder(
            template,
            environment,
            self.types,
            self.check_properties,
            findings,
            conditions,
            self.nesting,
        )
        builder.select()
        scope = Scope(
            version=version,
            parameters=known,
            hidden=hidden,
            files=self.files,
            types=builder.schemas() | dict.fromkeys(template.unreadable.resources),
            disabled=builder.disabled,
            findings=findings,
            decide=conditions.decide,
            parameter_names=unknown.union(template.parameters),
            mappings=template.mappings,
            facade=given.facade,
            budget=self.budget,
        )
        resources = builder.define_resources(scope)
        outputs = builder.define_outputs(scope)
        contained: list[ContainedStack] = []
        nested = self._nested(builder, resources, given.pseudo, contained)
        for name, one in nested.items():
            resources[name].digest = _combine_digests(resources[name].digest, one.digest)
            resources[name].pauses_every_update = one.pauses_every_update()
        for name, schema in builder.groups.items():
            digest = self._members(builder, schema, resources[name], given.pseudo, contained)
            resources[name].digest = _combine_digests(resources[name].digest, digest)
        findings.raise_if_any()
        return StackDefinition(
            version=template.version,
            description=template.description,
            resources=resources,
            outputs=outputs,
            parameters=values,
            pseudo=shown,
            hidden=hidden,
            hook_declarations=template.hook_declarations + environment.hook_declarations,
            schemas=schemas,
            # Hooks may have conditions in templates of any version.
            decide=replace(conditions, version=VERSIONS[max(VERSIONS)]).decide,
            nested=nested,
            contained=tuple(contained),
        )

    def _nested(
        self,
        builder: DefinitionBuilder,
        resources: Mapping[str, ResourceDefinition],
        pseudo: Mapping[str, str],
        contained: list[ContainedStack],
    ) -> dict[str, NestedStackDefinition]:
        """Return the definitions of valid nested stacks; faults are added to the parent's
        findings.
        """
        nested: dict[str, NestedStackDefinition] = {}
        last: dict[int, tuple[_StackInput, int, StackDefinition]] = {}
        for name, kind in builder.nested_types.items():
            resource = resources[name]
            inside = replace(self, nesting=self.nesting.enter(kind.file))
            given = _nested_input(
                resource, pseudo, *nested_parameters(kind.schema, resource.properties)
            )
            before = self.nesting.resource_count
            try:
                found = _reuse(last.get(id(kind)), given, inside.nesting) or inside.define(
                    kind.template, kind.environment, given
                )
                last[id(kind)] = given, self.nesting.resource_count - before, found
            except Invalid as error:
                place = nested_place(resource.place, kind.file)
                add_nested_findings(place, error.findings, builder.findings)
                continue
            place = nested_place(resource.place, kind.file)
            contained.append(
                ContainedStack(found, given.parameters, partial(place_in_nested, place))
            )
            written = builder.template.resources[name].type
            nested[name] = NestedStackDefinition(
                written, kind, given.parameters, found.hidden, found.nested, _digest(kind, found)
            )
        return nested

    def _members(
        self,
        builder: DefinitionBuilder,
        schema: TypeSchema,
        group: ResourceDefinition,
        pseudo: Mapping[str, str],
        contained: list[ContainedStack],
    ) -> str:
        """Check the members of a group as far as they are known; return their digest."""
        grouping = schema.grouping
        if grouping is None or not isinstance(group.properties, dict):
            return ""
        sample = grouping.sample(group.properties)
        if sample is None:
            return ""
        if grouping.types_only:
            builder.find_types(group, sample[0]["resources"].values(), grouping.place(""))
            return ""
        document, parameters = sample
        settings = settings_inside(builder.environment.document, group.name)
        nesting = self.nesting.enter(group.type)
        before = nesting.resource_count
        place = f"{group.place}.{builder.dialect.properties}"
        try:
            nesting.check_depth(f"{group.place}.{builder.dialect.type}")
            template = parse_template(dict(document))
            kind = template_type("", template, builder.environment, None, settings)
            given = _nested_input(group, pseudo, parameters, frozenset())
            found = replace(self, nesting=nesting).define(template, kind.environment, given)
        except Invalid as error:
            add_member_findings(place, grouping.place, error.findings, builder.findings)
            return ""
        contained.append(
            ContainedStack(found, parameters, partial(place_of_member, place, grouping.place))
        )
        size = grouping.size(group.properties)
        alike = max((size or 0) - len(template.resources), 0)
        nesting.count_resources(
            alike * (nesting.resource_count - before) // max(len(template.resources), 1)
        )
        return _digest(kind, found)


def _reuse(
    last: tuple[_StackInput, int, StackDefinition] | None,
    given: _StackInput,
    nesting: NestedTemplates,
) -> StackDefinition | None:
    """Return the definition of the previous resource if the input is equal; its resources are
    counted again.
    """
    if last is None or last[0] != given:
        return None
    nesting.count_resources(last[1])
    return last[2]


def _digest(kind: TemplateType, found: StackDefinition) -> str:
    """Return the digest of a nested stack: its text and the definitions built from it."""
    parts = [
        kind.digest,
        *(f"{name} {one.digest}" for name, one in sorted(found.resources.items())),
    ]
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _combine_digests(digest: str, inside: str) -> str:
    return sha256(f"{digest} {inside}".encode()).hexdigest()


def _nested_input(
    resource: ResourceDefinition,
    pseudo: Mapping[str, str],
    parameters: Mapping[str, Json],
    unknown: frozenset[str],
) -> _StackInput:
    """Return the input of a resource's nested stack. unknown: names of parameters."""
    metadata = UNKNOWN_FACADE.metadata if resource.secret_metadata else resource.metadata
    return _StackInput(
        parameters,
        {name: value for name, value in pseudo.items() if name not in PER_STACK},
        unknown | PER_STACK,
        resource.secret_properties(unknown),
        ResourceFacade(metadata, resource.deletion_policy, resource.update_policy or {}),
    )


def _schemas(template: Template, hidden: frozenset[str]) -> dict[str, ParameterSchema]:
    """Return the parameter schemas. hidden: further parameters to hide."""
    return {
        name: replace(one, hidden=True) if name in hidden else one
        for name, one in template.parameters.items()
    }
