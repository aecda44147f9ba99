"""Builds the blueprint of a nested stack from the template files and values of its parent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import orjson

from engine.errors import Findings, Invalid, one_of
from engine.hooks.operator import operator_declarations
from engine.hooks.rule_patterns import declarations_of_parent
from engine.hooks.rule_reader import Decide, Reader
from engine.hot.definition.stack import define_stack
from engine.hot.environment.environment import Environment
from engine.hot.environment.registry import ResolvedType
from engine.hot.evaluation.resource_facade import ResourceFacade
from engine.hot.evaluation.stack_outputs import StackOutputs
from engine.hot.functions.function import UndecidedError
from engine.hot.language.versions import VERSIONS
from engine.hot.nested.nested_templates import TypeUse
from engine.hot.nested.template_stack import TEMPLATE_STACK
from engine.hot.nested.template_type import nested_parameters, settings_inside, template_type
from engine.hot.syntax.document import check_document
from engine.hot.syntax.keyed_names import plain_name
from engine.hot.template.template import Template, parse_template
from engine.service.requests.blueprint import Blueprint, Limits, hidden_names
from engine.service.requests.parsing import EMPTY, ParsedRequest
from engine.service.requests.requests import StackRequest
from engine.store.records import TemplateRecord
from engine.types.contract import ReconcileNested, short_key
from engine.types.registry import TypeRegistry
from engine.words import DeletionPolicy, Json

#: The longest name of a stack.
MAX_NAME_LENGTH = 255


@dataclass(frozen=True, slots=True)
class OwningResource:
    """The parent's resource that owns the nested stack. metadata, update_policy: resolved. secret:
    names of properties with secret values. secret_parts: fields of this class with secret
    values."""

    name: str
    deletion_policy: str
    metadata: Json
    update_policy: Json
    secret: frozenset[str]
    secret_parts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NestedStack:
    """Identity of a nested stack, and the breakpoints that its parent passes on. path: names of the
    resources from the root stack. breakpoints: rows of `NestedContext.nested_breakpoints`."""

    stack_id: UUID
    stack_name: str
    project: str
    path: Sequence[str]
    breakpoints: Sequence[Json]


def read_parent(parent: TemplateRecord, limits: Limits) -> ParsedRequest:
    """A stored template version of the parent stack, parsed."""
    parsed = limits.read(StackRequest(existing=True), parent)
    return replace(parsed, hidden=frozenset(parent.hidden_parameters))


def nested_name(parent: str, resource: str, operation_key: UUID) -> str:
    """``parent-resource-0123456789ab``: as Heat names nested stacks; truncated at its start.

    It is the physical name of the resource, which its first event has.
    """
    end = f"-{plain_name(resource)}-{short_key(operation_key)}"
    return f"{parent[: MAX_NAME_LENGTH - len(end)]}{end}"


def previewed_name(parent: str, resource: str) -> str:
    """The name of a new nested stack in a preview, as in Heat: its own one ends with random
    characters."""
    end = f"-{plain_name(resource)}"
    return f"{parent[: MAX_NAME_LENGTH - len(end)]}{end}"


def build_nested(
    parent: ParsedRequest,
    command: ReconcileNested,
    resource: OwningResource,
    child: NestedStack,
    *,
    registry: TypeRegistry,
    limits: Limits,
    current_files: Mapping[str, str] = EMPTY,
    unknown: frozenset[str] = frozenset(),
    stored: bool = True,
    stack_outputs: StackOutputs | None = None,
    admit: Callable[[int], None] = lambda _: None,
) -> Blueprint:
    """The blueprint of a nested stack. command: what the resource type requests. current_files: of
    the nested stack's current version, for members of a group that a later batch changes; files of
    the parent take precedence. unknown: names of parameters and pseudo parameters whose values are
    not known before the stack is created. stored: the blueprint is stored, with the files that the
    nested stack may need; otherwise it has all files. stack_outputs: see `define_stack`. admit:
    gets the number of resources in the template before they are built; may raise LimitReached.

    Raises Invalid with all errors, LimitReached.
    """
    files = {**current_files, **parent.files}
    template, environment, parameters = _template(parent, command, resource, registry, limits)
    admit(len(template.resources))
    hidden_defaults = parent.hidden.intersection(environment.parameter_defaults)
    pseudo = {
        "OS::stack_id": str(child.stack_id),
        "OS::project_id": child.project,
        "OS::stack_name": child.stack_name,
    }
    definition = define_stack(
        template=template,
        environment=environment,
        parameters=parameters,
        files=files,
        pseudo={name: value for name, value in pseudo.items() if name not in unknown},
        types=registry.schemas(),
        check_properties=registry.check_properties,
        validators=registry.validators().keys(),
        nesting=replace(parent.nesting, files=files, path=tuple(child.path)),
        unknown=unknown,
        secret=resource.secret | hidden_defaults.difference(parameters),
        facade=ResourceFacade(
            resource.metadata,
            DeletionPolicy(resource.deletion_policy),
            resource.update_policy,
            resource.secret_parts,
        ),
        limits=limits.language,
        stack_outputs=stack_outputs,
    )
    findings = Findings()
    decide = _true_if_undecided(definition.decide) if unknown else definition.decide
    reader = Reader(findings, limits.hooks, decide, registry.steps())
    passed_on = declarations_of_parent(child.breakpoints, resource.name)
    blueprint = Blueprint(
        template,
        environment,
        _needed_files(files, template, environment, parameters) if stored else files,
        parameters,
        definition,
        operator_declarations(
            limits.operator, child.project, limits.hooks, decide, child.path, by_parent=True
        ),
        [one for one, with_change in passed_on if with_change],
        # Rules of its environment come from the parent, with their conditions evaluated there.
        [one for one, with_change in passed_on if not with_change],
        reader.declarations(template.hook_declarations),
        hidden=hidden_names(definition, environment, parent.hidden),
        stack_outputs=stack_outputs.find_used() if stack_outputs else {},
        by_parent=True,
        has_members=command.template is not None,
    )
    findings.raise_if_any()
    return blueprint


def _true_if_undecided(decide: Decide) -> Decide:
    """Conditions that depend on unknown parameters are true."""

    def decide_or_true(condition: Json, place: str) -> bool:
        try:
            return decide(condition, place)
        except UndecidedError:
            return True

    return decide_or_true


def _template(
    parent: ParsedRequest,
    command: ReconcileNested,
    resource: OwningResource,
    registry: TypeRegistry,
    limits: Limits,
) -> tuple[Template, Environment, Mapping[str, Json]]:
    """The template, its environment and its parameters. Raises Invalid."""
    name, environment, findings = resource.name, parent.environment, Findings()
    if command.template is not None:
        document = check_document(command.template, "the template of its members", limits.source)
        settings = settings_inside(environment.document, name)
        parsed = parse_template(document)
        known = parent.nesting.environments
        kind = template_type("", parsed, environment, None, settings, known)
        return kind.template, kind.environment, command.parameters
    words = VERSIONS[parent.template.version].dialect
    place = f"{words.resources}.{name}"
    type_name = parent.template.body_of(name).type
    found = environment.registry.find(type_name, name, registry.schemas())
    opened = None
    if found is not None and found.type == TEMPLATE_STACK:
        found = ResolvedType(command.file) if command.file else None
    if found is not None:
        use = TypeUse(name, type_name, place, f"{place}.{words.type}")
        opened = parent.nesting.open_template(found, use, environment, registry.schemas(), findings)
    findings.raise_if_any()
    if opened is None:
        findings.add(
            f"{place}.{words.type}",
            f"no template is known for {type_name}",
            "Map the type to a template in resource_registry.",
        )
        raise Invalid(findings.all)
    for given in sorted(command.parameters.keys() - opened.schema.properties.keys()):
        remedy = one_of(given, [*opened.schema.properties], "Parameters")
        findings.add(f"{place}.{words.properties}", f"Unknown Property {given}", remedy)
    findings.raise_if_any()
    parameters, _ = nested_parameters(opened.schema, command.parameters)
    return opened.template, opened.environment, parameters


def _needed_files(
    files: Mapping[str, str],
    template: Template,
    environment: Environment,
    parameters: Mapping[str, Json],
) -> dict[str, str]:
    """The files that a nested stack may need: those that its texts or its parameters name, directly
    or indirectly."""
    named = [template.document, environment.document, parameters]
    texts = [orjson.dumps(named, default=str).decode()]
    left, needed = dict(files), dict[str, str]()
    while texts:
        text = texts.pop()
        for name in [name for name in left if name in text]:
            needed[name] = left.pop(name)
            texts.append(needed[name])
    return needed
