"""POST /validate: what a template asks for, and whether it can be used; nothing is stored.

Parameters may still be missing. The rules of a type across its properties are checked when the
stack is accepted.
"""

from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web

from engine.errors import Findings, Invalid
from engine.hooks.operator import always
from engine.hooks.reading import Reader
from engine.hooks.rule import Limits as HookLimits
from engine.hot.cfn_parameters import KINDS
from engine.hot.definition import define
from engine.hot.environment import Environment, merge_environments, parse_environment
from engine.hot.facade import PRESUMED
from engine.hot.parameters import ParameterKind, ParameterSchema
from engine.hot.resolve import MASK
from engine.hot.schema import Constraint, Kind, Property, TypeSchema
from engine.hot.source import Limits, check_document, read_document
from engine.hot.template import Template, parse_template
from engine.service import StackRequest
from engine.words import Json
from hub.api.orchestration import documents as gives
from hub.api.orchestration.bodies import stack_body
from hub.api.orchestration.requests import stack_request
from hub.api.orchestration.sinks import check_sinks
from hub.api.parts import (
    Route,
    answer,
    identity_of,
    invalid,
    parts_of,
    project_of,
    query_flag,
    query_list,
)
from hub.auth.roles import Right
from hub.settings import Settings

WORDS: Mapping[ParameterKind, str] = {kind: word for word, kind in KINDS.items()}
#: The command line has a template of this type validated before it sends a software config. No
#: stack can have a resource of it.
SOFTWARE_CONFIG = TypeSchema(
    "OS::Heat::SoftwareConfig",
    properties={
        "group": Property(Kind.STRING, default="Heat::Ungrouped"),
        "config": Property(Kind.STRING),
        "options": Property(Kind.MAP),
        **dict.fromkeys(("inputs", "outputs"), Property(Kind.LIST, items=Property(Kind.MAP))),
    },
)
#: A resource type whose service is away.
IGNORABLE = ("99001",)
#: No stack has this id: it stands for the one to be.
NO_STACK = "00000000-0000-0000-0000-000000000000"


async def validate(request: web.Request) -> web.Response:
    parts, project = parts_of(request), project_of(request)
    wanted = stack_request(
        await stack_body(request), existing=False, requested_by=identity_of(request).name
    )
    await check_sinks(parts, project, wanted)
    types = {SOFTWARE_CONFIG.name: SOFTWARE_CONFIG, **parts.engine.types}
    _check_ignored(request)
    query_flag(request, "show_nested")
    try:
        document = validated(wanted, project, types, parts.settings)
    except Invalid as error:
        # Here, and only here, clients know one name for all that can be wrong.
        raise Invalid([replace(one, code="Invalid") for one in error.findings]) from None
    return answer(document)


def _check_ignored(request: web.Request) -> None:
    """There is one kind of error that one may want ignored, and it does not come up here."""
    wrong = [code for code in query_list(request, "ignore_errors") if code not in IGNORABLE]
    if wrong:
        reason = f"Invalid codes in ignore_errors : {wrong}"
        raise invalid("ignore_errors", reason, f"Known: {', '.join(IGNORABLE)}.")


def validated(
    wanted: StackRequest, project: str, types: Mapping[str, TypeSchema], settings: Settings
) -> dict[str, Json]:
    """The document of a template that can be used. Raises Invalid with all that is wrong."""
    quotas = settings.quotas.of(project)
    limits = Limits(quotas.template_bytes, quotas.document_depth)
    if wanted.template is None:
        raise invalid("template", "is missing", "Send it as an object or as text.")
    template = parse_template(_document(wanted.template, "template", limits))
    environment = parse_environment(_environment(wanted, limits))
    _check_hooks(template, environment, settings, types)
    _check_meaning(wanted, template, environment, project, types)
    shown: dict[str, Json] = {
        "Description": template.description,
        "Parameters": {
            name: parameter(schema, _value(name, wanted, environment))
            for name, schema in template.parameters.items()
        },
        "Environment": {
            "resource_registry": {"resources": {}},
            "parameters": {},
            "parameter_defaults": {},
            "event_sinks": [],
        }
        | _masked(environment.document, template),
    }
    if template.parameter_groups:
        shown["ParameterGroups"] = [dict(group) for group in template.parameter_groups]
    return shown


def _document(value: Json, what: str, limits: Limits) -> dict[str, Json]:
    if isinstance(value, str):
        return read_document(value, what, limits)
    return check_document(value, what, limits)


def _environment(wanted: StackRequest, limits: Limits) -> dict[str, Json]:
    if not wanted.environment_files:
        given = wanted.environment
        return _document(given, "environment", limits) if given else {}
    missing = [name for name in wanted.environment_files if name not in wanted.files]
    if missing:
        reason = f'"{missing[0]}" is not among the files'
        raise invalid("environment_files", reason, "Send its text in `files`.")
    texts = [(name, wanted.files[name]) for name in wanted.environment_files]
    read = [_document(text, f"environment {name}", limits) for name, text in texts if text.strip()]
    return merge_environments(read)


def _check_hooks(
    template: Template,
    environment: Environment,
    settings: Settings,
    types: Mapping[str, TypeSchema],
) -> None:
    findings = Findings()
    limits = HookLimits(settings.hooks.default_timeout, settings.hooks.max_timeout)
    steps = {step for schema in types.values() for step in schema.steps}
    # What a condition says is checked where parameters are known.
    Reader(findings, limits, always, steps).declarations(
        (*environment.declared, *template.declared)
    )
    findings.raise_if_any()


def _check_meaning(
    wanted: StackRequest,
    template: Template,
    environment: Environment,
    project: str,
    types: Mapping[str, TypeSchema],
) -> None:
    pseudo = {"OS::stack_id": NO_STACK, "OS::project_id": project, "OS::stack_name": wanted.name}
    try:
        define(
            template=template,
            environment=environment,
            parameters=wanted.parameters,
            files=wanted.files,
            pseudo=pseudo,
            types=types,
            check_properties=lambda *_: None,
            facade=PRESUMED,
        )
    except Invalid as error:
        wrong = [one for one in error.findings if one.code != "UserParameterMissing"]
        if wrong:
            raise Invalid(wrong) from None


def _value(name: str, wanted: StackRequest, environment: Environment) -> Json:
    for given in (wanted.parameters, environment.parameters, environment.parameter_defaults):
        if name in given:
            return given[name]
    return None


def _masked(environment: Mapping[str, Json], template: Template) -> dict[str, Json]:
    """The environment with the values of hidden parameters as ``******``."""
    hidden = {name for name, schema in template.parameters.items() if schema.hidden}
    shown = dict(environment)
    for section in ("parameters", "parameter_defaults"):
        if section in shown:
            values = shown[section].items()
            shown[section] = {name: MASK if name in hidden else value for name, value in values}
    return shown


def parameter(schema: ParameterSchema, value: Json) -> dict[str, Json]:
    """A parameter as clients read it: keys of the older language, switches as text."""
    shown: dict[str, Json] = {
        "Type": WORDS[schema.kind],
        "Description": schema.description,
        "NoEcho": "true" if schema.hidden else "false",
        "Label": schema.label or schema.name,
    }
    if schema.default is not None:
        shown["Default"] = schema.default
    if value is not None:
        shown["Value"] = MASK if schema.hidden else value
    if schema.tags:
        shown["Tags"] = list(schema.tags)
    for rule in schema.constraints:
        shown |= constraint(rule)
        if rule.description:
            shown["ConstraintDescription"] = rule.description
    return shown


def constraint(rule: Constraint) -> dict[str, Json]:
    table: Mapping[str, Mapping[str, Json]] = {
        "length": {"MinLength": rule.min, "MaxLength": rule.max},
        "range": {"MinValue": rule.min, "MaxValue": rule.max},
        "modulo": {"Step": rule.step, "Offset": rule.offset},
        "allowed_values": {"AllowedValues": list(rule.allowed)},
        "allowed_pattern": {"AllowedPattern": rule.pattern},
        "custom_constraint": {"CustomConstraint": rule.name},
    }
    return {name: value for name, value in table[rule.kind].items() if value is not None}


ROUTES = (
    Route("POST", "/v1/{project}/validate", validate, "Validate a template", "templates",
          takes_body=True, gives=gives.VALIDATED, needs=Right.READ,
          query={
              "show_nested": "true: with the parameters of nested stacks",
              "ignore_errors": "codes of errors that are no errors, comma separated",
          }),
)  # fmt: skip
