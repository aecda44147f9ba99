"""Builds the definition of a stack from a template, its environment and parameters: checked, and
reduced to values and to expressions over resources. Creating, updating, previewing and validating
call it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from urllib.parse import quote

from engine.errors import Finding, Findings, Invalid
from engine.hot.definition.assertions import check_rules
from engine.hot.definition.imported_resources import check_keys, define_imports, refuse_in_nested
from engine.hot.definition.model import (
    ContainedStack,
    NestedStackDefinition,
    OutputDefinition,
    ResourceDefinition,
    StackDefinition,
)
from engine.hot.definition.outputs import define_outputs
from engine.hot.definition.resource_properties import CheckProperties, PropertyChecker
from engine.hot.definition.resources import ResourceBuilder
from engine.hot.definition.reuse import NONE_REUSABLE, ReusableResources
from engine.hot.definition.selected_resources import SelectedResources, select_resources
from engine.hot.definition.template_stacks import with_parameters_alone
from engine.hot.definition.validators import check_constraint_names
from engine.hot.environment.environment import Environment
from engine.hot.environment.registry import CircularAlias
from engine.hot.evaluation.conditions import Conditions
from engine.hot.evaluation.evaluator import EvaluationScope
from engine.hot.evaluation.extended_evaluator import evaluate_locals
from engine.hot.evaluation.resolver import evaluate_output
from engine.hot.evaluation.resource_facade import UNKNOWN_FACADE, ResourceFacade
from engine.hot.evaluation.stack_outputs import StackOutputs
from engine.hot.functions.cost_budget import DEFAULT_LIMITS, CostBudget, CostLimits
from engine.hot.gc_pause import pause_gc
from engine.hot.language.dialect import HOT
from engine.hot.language.versions import VERSIONS
from engine.hot.nested.nested_templates import (
    NestedTemplates,
    add_member_findings,
    add_nested_findings,
    add_output_findings,
    find_in_nested,
    nested_place,
    place_in_nested,
    place_of_member,
    with_plain_names,
)
from engine.hot.nested.template_type import (
    TemplateType,
    nested_parameters,
    settings_inside,
    template_type,
)
from engine.hot.schema.parameters import (
    InvalidValue,
    ParameterKind,
    ParameterSchema,
    check_value,
    convert_parameters,
)
from engine.hot.schema.properties import check_resolved, fill_defaults
from engine.hot.schema.type_schema import Constraint, TypeSchema, unknown_type_remedy
from engine.hot.template.hook_declarations import HookDeclaration
from engine.hot.template.template import USE_EXTENDED, Template, parse_template
from engine.words import Json

#: What to do about a type of members that does not exist.
MAP_MEMBERS = "Map it to another type or a template in the environment's resource_registry."
#: Default of `AWS::Region` in Heat. Templates accept only these regions; parameter_defaults of an
#: environment can select another.
REGION = "ap-southeast-1"
REGIONS = (
    "us-east-1", "us-west-1", "us-west-2", "sa-east-1", "eu-west-1", REGION, "ap-northeast-1",
)  # fmt: skip
RULES: Mapping[str, tuple[Constraint, ...]] = {
    "AWS::Region": (Constraint("allowed_values", allowed=REGIONS),)
}


def pseudo_values(
    template: Template,
    known: Mapping[str, str],
    defaults: Mapping[str, Json],
    findings: Findings,
) -> dict[str, str]:
    """Return the pseudo parameters by the names of the template's dialect, except those that the
    template declares itself.

    known: values by HOT names; parameters that depend on a missing one are omitted. defaults: the
    environment's parameter_defaults, which take precedence.
    """
    is_hot = VERSIONS[template.version].dialect is HOT
    values = dict(known) if is_hot else _as_cfn(known)
    for name in [*values]:
        if name in template.parameters:
            del values[name]
        elif (given := defaults.get(name)) is not None:
            values[name] = _check_region(name, given, findings)
    return values


def _of_other_dialect(template: Template) -> frozenset[str]:
    """The pseudo parameters in PER_STACK that templates of this dialect do not have."""
    is_hot = VERSIONS[template.version].dialect is HOT
    return frozenset(name for name in PER_STACK if name.startswith("OS::") != is_hot)


def _as_cfn(known: Mapping[str, str]) -> dict[str, str]:
    values = {"AWS::Region": REGION}
    project, stack_id = known.get("OS::project_id"), known.get("OS::stack_id")
    if (name := known.get("OS::stack_name")) is not None:
        values["AWS::StackName"] = name
        if project is not None and stack_id is not None:
            arn = f"arn:openstack:heat::{quote(project, '')}:stacks/{name}/{stack_id}"
            values["AWS::StackId"] = arn
    return values


def _check_region(name: str, given: Json, findings: Findings) -> str:
    schema = ParameterSchema(name, ParameterKind.STRING, constraints=RULES.get(name, ()))
    try:
        return str(check_value(schema, given))
    except InvalidValue as bad:
        findings.add(
            "",
            f"Parameter '{name}' is invalid: {bad}",
            "Give a valid region.",
            at=f"parameters.{name}",
        )
        return ""


#: The remedy about a key that a resource has in Headgate's own versions, but a member's definition
#: has not.
IN_NESTED_TEMPLATE = "Write it in a nested template, and use the file as the type of the members."

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
    previous: ReusableResources | None = None,
    stack_outputs: StackOutputs | None = None,
) -> StackDefinition:
    """Return the definition including nested stacks. Raises Invalid with all findings in document
    order, or LimitReached.

    parameters: of the request; they precede those of the environment. pseudo: values of pseudo
    parameters by HOT names. check_properties(type, known properties, place, findings): checks of a
    type across its properties. validators: names of custom constraints with an external validator.
    nesting: source of nested templates; None: the files. unknown: parameters that get a value
    later. secret: parameters that are hidden although nothing here declares them so. facade: the
    resource that a nested stack implements. limits: of the cost of evaluation. previous: of an
    earlier definition with the same types and checks; None: collect none for a later one.
    stack_outputs: of other stacks; gets the names of those that are read and of those that are
    missing, without which the definition is not complete.
    """
    found = nesting or NestedTemplates(files)
    tree = _StackTree(
        found, types, check_properties, files, validators, CostBudget(limits),
        StackOutputs() if stack_outputs is None else stack_outputs,
    )  # fmt: skip
    given = _StackInput(parameters, pseudo, unknown, secret, facade)
    with pause_gc():
        return tree.define(template, environment, given, previous)


@dataclass(frozen=True, slots=True)
class _StackInput:
    """The input of a stack. unknown: parameters, including pseudo ones, that get a value when the
    stack is created. secret: parameters whose values the parent stack hides.
    """

    parameters: Mapping[str, Json]
    pseudo: Mapping[str, str]
    unknown: frozenset[str]
    secret: frozenset[str] = frozenset()
    facade: ResourceFacade | None = None


@dataclass(frozen=True, slots=True)
class _StackTree:
    """The data that a stack and its nested stacks share; `nesting` differs by level."""

    nesting: NestedTemplates
    types: Mapping[str, TypeSchema]
    check_properties: CheckProperties
    files: Mapping[str, str]
    validators: Collection[str]
    budget: CostBudget
    stack_outputs: StackOutputs

    def define(
        self,
        template: Template,
        environment: Environment,
        given: _StackInput,
        previous: ReusableResources | None = None,
    ) -> StackDefinition:
        # The form of a nested template is reported where the template is read.
        form = () if self.nesting.path else template.findings
        findings = Findings([*form, *environment.findings])
        if not self.nesting.path:
            findings.warn_all((*template.warnings, *environment.warnings))
        self.nesting.count_template(template)
        parameters = self._parameters(template, environment, given, findings)
        version, hidden = VERSIONS[template.version], parameters.hidden
        shown = {name: value for name, value in parameters.known.items() if name not in hidden}
        check_constraint_names(template.parameters, self.validators, shown, findings)
        conditions = Conditions(
            template.conditions,
            version,
            parameters.known,
            findings,
            parameters.unknown,
            template.mappings,
            self.budget,
            hidden=hidden,
            refuses_references=version.extended,
        )
        conditions.decide_all()
        scope = self._scope(template, conditions, parameters, given.facade)
        selected = self._select(template, environment, conditions, scope)
        evaluate_locals(template.locals, scope)
        check_rules(template.rules, scope)
        checker = PropertyChecker(
            self.types, self.check_properties, selected, self.nesting.values_later
        )
        builder = ResourceBuilder(
            template,
            selected,
            scope,
            checker,
            self.nesting,
            previous=previous or NONE_REUSABLE,
            collects=previous is not None,
        )
        resources = builder.define_resources()
        imported = self._read_imported(template, selected, scope)
        outputs = define_outputs(template, conditions, scope)
        secret_defaults = given.secret.union(hidden).intersection(environment.parameter_defaults)
        inside = _ContainedStacks(self, environment, builder, given.pseudo, secret_defaults)
        nested = inside.define_nested(resources)
        inside.define_members(resources)
        conditions.warn_unused()
        findings.raise_if_any()
        return StackDefinition(
            version=template.version,
            description=template.description,
            resources=resources,
            outputs=outputs,
            parameters=parameters.values,
            pseudo=parameters.pseudo,
            hidden=hidden,
            hook_declarations=template.hook_declarations + environment.hook_declarations,
            schemas=parameters.schemas,
            # Hooks may have conditions in templates of any version.
            decide=replace(
                conditions,
                version=VERSIONS[max(VERSIONS)],
                reported=True,
                refuses_references=False,
            ).decide,
            nested=nested,
            contained=tuple(inside.found),
            warnings=findings.warnings,
            moved=tuple(one for one in template.moved if one.to in resources),
            imported=imported,
            reusable=ReusableResources(template.version, builder.reusable),
            undecided=selected.undecided_types(),
            undecided_parameters=selected.undecided_parameters(),
            undecided_groups=builder.read_undecided_groups(),
        )

    def _parameters(
        self,
        template: Template,
        environment: Environment,
        given: _StackInput,
        findings: Findings,
    ) -> "_Parameters":
        """Return the checked values of the parameters. Those of the request precede those of the
        environment."""
        schemas = _schemas(template, given.secret.union(environment.encrypted_param_names))
        given_values = {**environment.parameters, **given.parameters}
        unknown = given.unknown - _of_other_dialect(template)
        given_later = unknown
        if environment.findings:  # its parameters are unknown
            given_later = given_later.union(schemas.keys() - given_values.keys())
        unreadable = unknown | template.unreadable.parameters
        values = convert_parameters(
            {name: one for name, one in schemas.items() if name not in given_later},
            {name: one for name, one in given_values.items() if name not in unreadable},
            environment.parameter_defaults,
            findings,
            self.budget,
            environment.parameters.keys() - given.parameters.keys(),
            sorted(template.unreadable.parameters.union(schemas.keys() & given_later)),
        )
        pseudo = pseudo_values(template, given.pseudo, environment.parameter_defaults, findings)
        known = {**pseudo, **values}
        return _Parameters(
            schemas,
            values,
            pseudo,
            known,
            unknown.union(schemas, template.unreadable.parameters).difference(known),
            frozenset(name for name, one in schemas.items() if one.hidden),
        )

    def _scope(
        self,
        template: Template,
        conditions: Conditions,
        parameters: "_Parameters",
        facade: ResourceFacade | None,
    ) -> EvaluationScope:
        """Return what the functions of the stack can read. `_select` adds the resources."""
        return EvaluationScope(
            version=VERSIONS[template.version],
            parameters=parameters.known,
            hidden=parameters.hidden,
            files=self.files,
            types={},
            disabled=frozenset(),
            findings=conditions.findings,
            decide=conditions.decide,
            parameter_names=parameters.unknown.union(template.parameters),
            mappings=template.mappings,
            facade=facade,
            budget=self.budget,
            stack_outputs=self.stack_outputs,
        )

    def _select(
        self,
        template: Template,
        environment: Environment,
        conditions: Conditions,
        scope: EvaluationScope,
    ) -> SelectedResources:
        """Select the resources of the stack, and add them to the scope."""
        selected = select_resources(
            template, environment, self.types, conditions, self.nesting, scope
        )
        scope.types = selected.schemas()
        scope.disabled = selected.disabled
        scope.keyed = selected.expansion.names
        return selected

    def _read_imported(
        self, template: Template, selected: SelectedResources, scope: EvaluationScope
    ) -> dict[str, str]:
        """Return the physical IDs of the section `import`. Only root stacks may have this section
        and `moved`.
        """
        if not (template.moved or template.imported):
            return {}
        if self.nesting.path:
            refuse_in_nested(template, scope)
            return {}
        check_keys(template, selected, scope)
        return define_imports(template, selected, scope)


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The parameters of a stack. pseudo: values of pseudo parameters, by the names of the dialect.
    known: both kinds of values. unknown: names of those that get a value later or have no valid
    one. hidden: names of those that are masked.
    """

    schemas: Mapping[str, ParameterSchema]
    values: Mapping[str, Json]
    pseudo: Mapping[str, str]
    known: Mapping[str, Json]
    unknown: frozenset[str]
    hidden: frozenset[str]


@dataclass(frozen=True, slots=True)
class _ContainedStacks:
    """Defines the nested stacks and the members of groups that a stack contains. What is wrong in
    them is added to the findings of the stack.

    tree, environment: of the stack. builder: of its resources. pseudo: by HOT names.
    secret_defaults: names with a secret value in the environment's `parameter_defaults`. found: all
    contained stacks.
    """

    tree: _StackTree
    environment: Environment
    builder: ResourceBuilder
    pseudo: Mapping[str, str]
    secret_defaults: frozenset[str]
    found: list[ContainedStack] = field(default_factory=list)

    @property
    def _findings(self) -> Findings:
        return self.builder.scope.findings

    def define_nested(
        self, resources: Mapping[str, ResourceDefinition]
    ) -> dict[str, NestedStackDefinition]:
        """Return the definitions of valid nested stacks, on which their resources depend."""
        nested: dict[str, NestedStackDefinition] = {}
        last: dict[int, tuple[_StackInput, int, StackDefinition]] = {}
        needed = frozenset().union(*(one.reads for one in resources.values()))
        for name, kind in self.builder.nested_types.items():
            resource, place = resources[name], nested_place(resources[name].place, kind.file)
            inside = replace(self.tree, nesting=self.tree.nesting.enter(kind.file))
            values = with_parameters_alone(resource)
            parameters, unknown = nested_parameters(kind.schema, values.properties)
            if self.tree.nesting.values_later:
                required = (key for key, one in kind.schema.properties.items() if one.required)
                unknown |= frozenset(required).difference(parameters)
            given = self._input(values, parameters, unknown)
            before = self.tree.nesting.resource_count
            try:
                found = _reuse(last.get(id(kind)), given, inside.nesting) or inside.define(
                    kind.template, kind.environment, given
                )
                last[id(kind)] = given, self.tree.nesting.resource_count - before, found
            except Invalid as error:
                warned = find_in_nested(place, kind.file, error.warnings)
                self._findings.warn_all(warned)
                add_nested_findings(place, kind.file, error.findings, self._findings)
                continue
            warned = find_in_nested(place, kind.file, found.warnings)
            if name in needed:
                add_output_findings(warned, self._findings)
            else:
                self._findings.warn_all(warned)
            self.found.append(
                ContainedStack(name, found, given.parameters, partial(place_in_nested, place))
            )
            written = self.builder.selected.expansion.bodies[name].type
            one = NestedStackDefinition(
                written, kind, given.parameters, found.hidden, found.nested, _digest(kind, found)
            )
            nested[name] = one
            resource.digest = _combine_digests(resource.digest, one.digest)
            resource.pauses_every_update = one.pauses_every_update()
            resource.reads_data = one.reads_data()
        return nested

    def define_members(self, resources: Mapping[str, ResourceDefinition]) -> None:
        """Check the members of groups, on which the groups depend."""
        for name, schema in self.builder.groups.items():
            group = resources[name]
            group.digest = _combine_digests(group.digest, self._members(schema, group))

    def _members(self, schema: TypeSchema, group: ResourceDefinition) -> str:
        """Check the members of a group as far as they are known; return their digest."""
        grouping, dialect = schema.grouping, self.builder.scope.version.dialect
        if grouping is None or not isinstance(group.properties, dict):
            return ""
        sample = grouping.sample(group.properties)
        if sample is None:
            return ""
        if grouping.types_only:
            types = [member["type"] for member in sample[0]["resources"].values()]
            self._find_types(
                types, group, f"{group.place}.{dialect.properties}.{grouping.place('')}"
            )
            return ""
        document, parameters = sample
        to_property_place = with_plain_names(grouping.place, document["resources"])
        # Members have values, not functions: what is secret among them is unknown.
        secret = group.masked_properties is not None
        settings = settings_inside(self.environment.document, group.name)
        nesting = self.tree.nesting.enter(group.type)
        before = nesting.resource_count
        place = f"{group.place}.{dialect.properties}"

        def define(
            document: Mapping[str, Json], parameters: Mapping[str, Json]
        ) -> tuple[Template, TemplateType, StackDefinition]:
            template = parse_template(dict(document))
            kind = template_type(
                "", template, self.environment, None, settings, nesting.environments
            )
            given = self._input(group, parameters, frozenset())
            tree = replace(self.tree, nesting=nesting)
            return template, kind, tree.define(template, kind.environment, given)

        try:
            nesting.check_depth(f"{group.place}.{dialect.type}")
            template, kind, found = define(document, parameters)
        except Invalid as error:
            wrong = list(error.findings)
            if secret:
                # What is also wrong without the secret values is shown.
                shown = group.masked_properties
                masked = grouping.sample(shown) if isinstance(shown, dict) else None
                known = [] if masked is None else _findings_of(partial(define, *masked))
                wrong = [one if one in known else one.without_values() for one in wrong]
            # The definition of a member cannot choose its version.
            wrong = [
                replace(one, remedy=IN_NESTED_TEMPLATE) if one.remedy == USE_EXTENDED else one
                for one in wrong
            ]
            add_member_findings(place, to_property_place, wrong, self._findings)
            return ""
        self.found.append(
            ContainedStack(
                group.name,
                found,
                parameters,
                partial(place_of_member, place, to_property_place),
                secret,
                is_sample=True,
            )
        )
        size = grouping.size(group.properties)
        alike = max((size or 0) - len(template.resources), 0)
        nesting.count_resources(
            alike * (nesting.resource_count - before) // max(len(template.resources), 1)
        )
        return _digest(kind, found)

    def _find_types(self, types: Iterable[str], group: ResourceDefinition, place: str) -> None:
        """Report types of members that do not exist. place: of the member."""
        for name in dict.fromkeys(map(str, types)):
            try:
                found = self.environment.registry.find(name, group.name, self.tree.types)
            except CircularAlias:
                found = None
            if found is None:
                shown = "" if group.masked_properties is not None else f" ({name})"
                remedy = unknown_type_remedy(name, self.tree.types) if shown else ""
                self._findings.add(
                    place,
                    f"The Resource Type{shown} of its members could not be found.",
                    f"{remedy} {MAP_MEMBERS}".strip(),
                )

    def _input(
        self,
        resource: ResourceDefinition,
        parameters: Mapping[str, Json],
        unknown: frozenset[str],
    ) -> _StackInput:
        """Return the input of a resource's nested stack. unknown: names of parameters."""
        metadata = UNKNOWN_FACADE.metadata if resource.secret_metadata else resource.metadata
        secret_defaults = self.secret_defaults.difference(parameters, unknown)
        return _StackInput(
            parameters,
            {name: value for name, value in self.pseudo.items() if name not in PER_STACK},
            unknown | PER_STACK,
            resource.secret_properties(unknown) | secret_defaults,
            ResourceFacade(metadata, resource.deletion_policy, resource.update_policy or {}),
        )


def _findings_of(define: Callable[[], object]) -> list[Finding]:
    try:
        define()
    except Invalid as error:
        return list(error.findings)
    return []


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


def _schemas(template: Template, hidden: frozenset[str]) -> dict[str, ParameterSchema]:
    """Return the parameter schemas. hidden: further parameters to hide."""
    return {
        name: replace(one, hidden=True) if name in hidden else one
        for name, one in template.parameters.items()
    }
