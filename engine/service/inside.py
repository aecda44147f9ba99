"""What a stack inside of a resource is to be: found among the files of the stack around it, and
read and checked as any other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import orjson

from engine.errors import Findings, Invalid
from engine.hooks.matching import inside
from engine.hooks.operator import operator_declarations
from engine.hooks.reading import Decide, Declaration, Reader
from engine.hooks.rule import decode_rule
from engine.hot.definition import define
from engine.hot.environment import Environment
from engine.hot.facade import Facade
from engine.hot.function import Undecided
from engine.hot.nesting import Use
from engine.hot.source import check_document
from engine.hot.template import Template, parse_template
from engine.hot.template_types import child_parameters, said_inside, template_type
from engine.hot.versions import VERSIONS
from engine.service.blueprint import Blueprint, Limits
from engine.service.requests import StackRequest
from engine.service.written import Written, read_request
from engine.store.records import TemplateRecord
from engine.types.contract import Toward
from engine.types.registry import Registry
from engine.words import DeletionPolicy, Json

#: The longest name of a stack.
LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Resource:
    """The resource that a stack is inside of. metadata, update_policy: resolved. secret: names of
    properties whose values are nobody's to see."""

    name: str
    deletion_policy: str
    metadata: Json
    update_policy: Json
    secret: frozenset[str]


@dataclass(frozen=True, slots=True)
class Inside:
    """The stack inside: who it is, and what the stack around says of its breakpoints."""

    stack_id: UUID
    stack_name: str
    project: str
    path: Sequence[str]
    asked: Sequence[Json]


def read_around(around: TemplateRecord, limits: Limits) -> Written:
    """A version of the stack around, for those inside of it to be read from."""
    return read_request(
        StackRequest(existing=True),
        around,
        limits=limits.source,
        most_resources=limits.resources,
        operator=limits.environment,
    )


def name_inside(around: str, resource: str, stack_id: UUID) -> str:
    """``parent-resource-0123456789ab``: as Heat names stacks inside, shortened in front."""
    end = f"-{resource}-{stack_id.hex[-12:]}"
    return f"{around[: LONGEST_NAME - len(end)]}{end}"


def build_inside(
    written: Written,
    goal: Toward,
    resource: Resource,
    child: Inside,
    *,
    registry: Registry,
    limits: Limits,
    unknown: frozenset[str] = frozenset(),
) -> Blueprint:
    """written: of the stack around. unknown: parameters, pseudo ones too, that have their values
    when it is made.
    Raises Invalid with all that is wrong, LimitReached."""
    template, environment, parameters = _chosen(written, goal, resource, registry, limits)
    pseudo = {
        "OS::stack_id": str(child.stack_id),
        "OS::project_id": child.project,
        "OS::stack_name": child.stack_name,
    }
    definition = define(
        template=template,
        environment=environment,
        parameters=parameters,
        files=written.files,
        pseudo={name: value for name, value in pseudo.items() if name not in unknown},
        types=registry.schemas(),
        check_properties=registry.check_properties,
        judged=registry.judges().keys(),
        nesting=replace(written.nesting, path=tuple(child.path)),
        unknown=unknown,
        secret=resource.secret,
        facade=Facade(
            resource.metadata, DeletionPolicy(resource.deletion_policy), resource.update_policy
        ),
        limits=limits.language,
    )
    findings = Findings()
    decide = _perhaps(definition.decide) if unknown else definition.decide
    reader = Reader(findings, limits.hooks, decide, registry.steps())
    asked = list(_asked(child.asked, resource.name))
    blueprint = Blueprint(
        template,
        environment,
        _needed(written.files, template, environment),
        parameters,
        definition,
        operator_declarations(limits.operator, child.project, limits.hooks, decide, child.path),
        [one for one, with_change in asked if with_change],
        # What its environment says of breakpoints was said around it, and is judged there.
        [one for one, with_change in asked if not with_change],
        reader.declarations(template.declared),
    )
    findings.raise_if_any()
    return blueprint


def _perhaps(decide: Decide) -> Decide:
    """What hangs on a parameter that is not known yet may hold."""

    def decided(condition: Json, place: str) -> bool:
        try:
            return decide(condition, place)
        except Undecided:
            return True

    return decided


def _chosen(
    written: Written, goal: Toward, resource: Resource, registry: Registry, limits: Limits
) -> tuple[Template, Environment, Mapping[str, Json]]:
    """The template, its environment and its parameters."""
    name, around, findings = resource.name, written.environment, Findings()
    if goal.template is not None:
        document = check_document(goal.template, "the template of its members", limits.source)
        said = said_inside(around.document, name)
        kind = template_type("", parse_template(document), around, None, said)
        return kind.template, kind.environment, goal.parameters
    words = VERSIONS[written.template.version].spelling
    place = f"{words.resources}.{name}"
    type_name = written.template.resources[name].type
    found = around.registry.find(type_name, name, registry.schemas())
    opened = None
    if found is not None:
        use = Use(name, type_name, place, f"{place}.{words.type}")
        opened = written.nesting.open(found, use, around, registry.schemas(), findings)
    findings.raise_if_any()
    if opened is None:
        findings.add(f"{place}.{words.type}", f"{type_name} leads to no template")
        raise Invalid(findings.all)
    given, _ = child_parameters(opened.schema, goal.parameters)
    return opened.template, opened.environment, given


def _asked(said: Iterable[Json], resource: str) -> Iterable[tuple[Declaration, bool]]:
    """What was asked around it for what is inside, and whether with this very change."""
    for one in said:
        pattern = inside(one["pattern"], resource)
        if pattern is not None:
            place = f"a breakpoint at {one['pattern']}"
            yield Declaration(pattern, decode_rule(one["rule"]), place), one["asked"]


def _needed(
    files: Mapping[str, str], template: Template, environment: Environment
) -> dict[str, str]:
    """The files that a stack inside may come to need: those that it names, and that these name."""
    texts = [orjson.dumps([template.document, environment.document], default=str).decode()]
    left, needed = dict(files), dict[str, str]()
    while texts:
        text = texts.pop()
        for name in [name for name in left if name in text]:
            needed[name] = left.pop(name)
            texts.append(needed[name])
    return needed
