"""What a stack should be: a template with its environment and parameters, checked and reduced to
values and to expressions over resources. Pure; called by accepting, previewing and validating."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from engine.errors import Findings, Invalid
from engine.hot.collector import held_back
from engine.hot.conditions import Conditions
from engine.hot.declared import DeclaredHook
from engine.hot.defined import (
    DefinedOutput,
    DefinedResource,
    Definition,
    NestedDefinition,
    Within,
)
from engine.hot.defining import CheckProperties, Defining
from engine.hot.effort import DEFAULT_LIMITS, Effort, EffortLimits
from engine.hot.environment import Environment
from engine.hot.facade import PRESUMED, Facade
from engine.hot.nesting import (
    Nesting,
    add_inside,
    add_members,
    inside_place,
    place_inside,
    place_of_member,
)
from engine.hot.parameters import ParameterSchema, parameter_values
from engine.hot.partial import Scope
from engine.hot.properties import check_resolved, fill_defaults
from engine.hot.pseudo import pseudo_values
from engine.hot.questions import check_names
from engine.hot.resolve import MASK, evaluate_output
from engine.hot.schema import TypeSchema
from engine.hot.template import Template, parse_template
from engine.hot.template_types import (
    TemplateType,
    child_parameters,
    said_inside,
    template_type,
)
from engine.hot.versions import VERSIONS
from engine.words import Json

#: Pseudo parameters that a nested stack has values of its own for, once it is there.
OF_ONE_STACK = frozenset({"OS::stack_id", "OS::stack_name", "AWS::StackId", "AWS::StackName"})

__all__ = [
    "DeclaredHook",
    "DefinedOutput",
    "DefinedResource",
    "Definition",
    "NestedDefinition",
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
    nesting: Nesting | None = None,
    unknown: frozenset[str] = frozenset(),
    secret: frozenset[str] = frozenset(),
    facade: Facade | None = None,
    limits: EffortLimits = DEFAULT_LIMITS,
) -> Definition:
    """Return the definition, with what is nested in it. Raises Invalid with everything that is
    wrong, in document order; LimitReached.

    parameters: of the request; they win over the environment's. pseudo: values of the pseudo
    parameters by HOT's names. check_properties(type, properties known now, place, findings):
    the rules of a type across its properties. judged: names of custom constraints that somebody is
    asked about. nesting: where templates of resources are found; None: in files. unknown:
    parameters whose values somebody gives later. secret: parameters that are hidden though nothing
    here says so. facade: what a nested stack stands for. limits:
    what evaluating it all may cost.
    """
    found = nesting or Nesting(files)
    tree = _Tree(found, types, check_properties, files, judged, Effort(limits))
    given = _Given(parameters, pseudo, unknown, secret, facade)
    with held_back():
        return tree.define(template, environment, given)


@dataclass(frozen=True, slots=True)
class _Given:
    """What a stack is given from outside. unknown: parameters, pseudo ones too, that have their
    values when the stack is made. secret: those whose values the stack around hides."""

    parameters: Mapping[str, Json]
    pseudo: Mapping[str, str]
    unknown: frozenset[str]
    secret: frozenset[str] = frozenset()
    facade: Facade | None = None


@dataclass(frozen=True, slots=True)
class _Tree:
    """What is the same for a stack and for all that is nested in it, but for how deep it is."""

    nesting: Nesting
    types: Mapping[str, TypeSchema]
    check_properties: CheckProperties
    files: Mapping[str, str]
    judged: Collection[str]
    effort: Effort

    def define(self, template: Template, environment: Environment, given: _Given) -> Definition:
        # Of a template inside, its form is told of where it is found.
        form = () if self.nesting.path else template.wrong
        findings = Findings([*form, *environment.wrong])
        self.nesting.count(template)
        check_names(template.parameters, self.judged, findings)
        schemas = _schemas(template, given.secret.union(environment.encrypted_param_names))
        said = {**environment.parameters, **given.parameters}
        given_later = given.unknown
        if environment.wrong:  # nobody knows what it gives
            given_later = given_later.union(schemas.keys() - said.keys())
        untold = given.unknown | template.unsound.parameters
        values = parameter_values(
            {name: one for name, one in schemas.items() if name not in given_later},
            {name: one for name, one in said.items() if name not in untold},
            environment.parameter_defaults,
            findings,
            self.effort,
        )
        shown = pseudo_values(template, given.pseudo, environment.parameter_defaults, findings)
        known = {**shown, **values}
        unknown = given.unknown.union(schemas, template.unsound.parameters).difference(known)
        version = VERSIONS[template.version]
        conditions = Conditions(
            template.conditions,
            version,
            known,
            findings,
            unknown,
            template.mappings,
            self.effort,
        )
        conditions.decide_all()
        hidden = frozenset(name for name, one in schemas.items() if one.hidden)
        work = Defining(
            template,
            environment,
            self.types,
            self.check_properties,
            findings,
            conditions,
            self.nesting,
        )
        work.choose()
        scope = Scope(
            version=version,
            parameters=known,
            hidden=hidden,
            files=self.files,
            types=work.schemas() | dict.fromkeys(template.unsound.resources),
            disabled=work.disabled,
            findings=findings,
            decide=conditions.decide,
            parameter_names=unknown.union(template.parameters),
            mappings=template.mappings,
            facade=given.facade,
            effort=self.effort,
        )
        resources = work.define_resources(scope)
        outputs = work.define_outputs(scope)
        within: list[Within] = []
        nested = self._nested(work, resources, given.pseudo, within)
        for name, one in nested.items():
            resources[name].digest = _with(resources[name].digest, one.digest)
            resources[name].asks = one.asks()
        for name, schema in work.groups.items():
            digest = self._members(work, schema, resources[name], given.pseudo, within)
            resources[name].digest = _with(resources[name].digest, digest)
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
            schemas=schemas,
            # Breakpoints may be conditional in templates of any version.
            decide=replace(conditions, version=VERSIONS[max(VERSIONS)]).decide,
            nested=nested,
            inside=tuple(within),
        )

    def _nested(
        self,
        work: Defining,
        resources: Mapping[str, DefinedResource],
        pseudo: Mapping[str, str],
        within: list[Within],
    ) -> dict[str, NestedDefinition]:
        """What is nested, as far as it is sound; findings go to those of the stack around."""
        nested: dict[str, NestedDefinition] = {}
        last: dict[int, tuple[_Given, int, Definition]] = {}
        for name, kind in work.sound.items():
            resource = resources[name]
            inside = replace(self, nesting=self.nesting.inside(kind.file))
            given = _given_inside(
                resource, pseudo, *child_parameters(kind.schema, resource.properties)
            )
            before = self.nesting.counted
            try:
                found = _again(last.get(id(kind)), given, inside.nesting) or inside.define(
                    kind.template, kind.environment, given
                )
                last[id(kind)] = given, self.nesting.counted - before, found
            except Invalid as error:
                place = inside_place(resource.place, kind.file)
                add_inside(place, error.findings, work.findings)
                continue
            place = inside_place(resource.place, kind.file)
            within.append(Within(found, given.parameters, partial(place_inside, place)))
            written = work.template.resources[name].type
            nested[name] = NestedDefinition(
                written, kind, given.parameters, found.hidden, found.nested, _digest(kind, found)
            )
        return nested

    def _members(
        self,
        work: Defining,
        schema: TypeSchema,
        group: DefinedResource,
        pseudo: Mapping[str, str],
        within: list[Within],
    ) -> str:
        """Check what a group is to hold, as far as it is known; the digest of what that is."""
        grouping = schema.grouping
        if grouping is None or not isinstance(group.properties, dict):
            return ""
        sample = grouping.sample(group.properties)
        if sample is None:
            return ""
        if grouping.types_only:
            work.find_types(group, sample[0]["resources"].values(), grouping.place(""))
            return ""
        document, parameters = sample
        said = said_inside(work.environment.document, group.name)
        nesting = self.nesting.inside(group.type)
        before = nesting.counted
        place = f"{group.place}.{work.words.properties}"
        try:
            nesting.check_depth(f"{group.place}.{work.words.type}")
            template = parse_template(dict(document))
            kind = template_type("", template, work.environment, None, said)
            given = _given_inside(group, pseudo, parameters, frozenset())
            found = replace(self, nesting=nesting).define(template, kind.environment, given)
        except Invalid as error:
            add_members(place, grouping.place, error.findings, work.findings)
            return ""
        within.append(Within(found, parameters, partial(place_of_member, place, grouping.place)))
        size = grouping.size(group.properties)
        alike = max((size or 0) - len(template.resources), 0)
        nesting.count_resources(
            alike * (nesting.counted - before) // max(len(template.resources), 1)
        )
        return _digest(kind, found)


def _again(
    last: tuple[_Given, int, Definition] | None, given: _Given, nesting: Nesting
) -> Definition | None:
    """What was made of the same for the resource before; it counts as often as it is used."""
    if last is None or last[0] != given:
        return None
    nesting.count_resources(last[1])
    return last[2]


def _digest(kind: TemplateType, found: Definition) -> str:
    """Of what is written, and of what it comes to with the files that there are."""
    parts = [
        kind.digest,
        *(f"{name} {one.digest}" for name, one in sorted(found.resources.items())),
    ]
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _with(digest: str, inside: str) -> str:
    return sha256(f"{digest} {inside}".encode()).hexdigest()


def _given_inside(
    resource: DefinedResource,
    pseudo: Mapping[str, str],
    parameters: Mapping[str, Json],
    unknown: frozenset[str],
) -> _Given:
    """What a resource gives to the stack inside of it. unknown: names of parameters."""
    metadata = PRESUMED.metadata if resource.secret_metadata else resource.metadata
    return _Given(
        parameters,
        {name: value for name, value in pseudo.items() if name not in OF_ONE_STACK},
        unknown | OF_ONE_STACK,
        _secret(resource, unknown),
        Facade(metadata, resource.deletion_policy, resource.update_policy or {}),
    )


def _schemas(template: Template, hidden: frozenset[str]) -> dict[str, ParameterSchema]:
    """hidden: besides those that the template hides itself."""
    return {
        name: replace(one, hidden=True) if name in hidden else one
        for name, one in template.parameters.items()
    }


def _secret(resource: DefinedResource, unknown: frozenset[str]) -> frozenset[str]:
    """Properties with hidden values in them."""
    masked = resource.masked_properties
    if masked is None:
        return frozenset()
    if not isinstance(masked, Mapping):
        return unknown
    return frozenset(name for name, value in masked.items() if MASK in str(value))
