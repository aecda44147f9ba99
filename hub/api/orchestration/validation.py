"""POST /validate: what a template asks for, and whether it can be used; nothing is stored.

Parameters may still be missing. The rules of a type across its properties are checked when the
stack is accepted.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from aiohttp import web

from engine.errors import Findings, Invalid
from engine.hooks.operator import always
from engine.hooks.rule_reader import Reader
from engine.hot.definition.stack import (
    PER_STACK,
    NestedStackDefinition,
    StackDefinition,
    define_stack,
)
from engine.hot.environment.environment import Environment
from engine.hot.evaluation.resource_facade import UNKNOWN_FACADE
from engine.hot.functions.cost_budget import CostLimits
from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.hot.template.template import Template
from engine.service import Limits, StackRequest
from engine.service.requests.parsing import ParsedRequest, read_request
from engine.words import Json
from hub.api.costly_requests import costly
from hub.api.nested_templates import TemplatesWanted, with_fetched
from hub.api.orchestration import responses
from hub.api.orchestration.bodies import stack_body
from hub.api.orchestration.described import described, hidden_names, nested_parameters
from hub.api.orchestration.requests import stack_request
from hub.api.orchestration.sinks import check_sinks
from hub.api.orchestration.stack_parts import masked_environment
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


async def validate(request: web.Request) -> web.Response:
    parts, project = parts_of(request), project_of(request)
    wanted = stack_request(
        await stack_body(request), existing=False, requested_by=identity_of(request).principal
    )
    await check_sinks(parts, project, wanted)
    types = {SOFTWARE_CONFIG.name: SOFTWARE_CONFIG, **parts.engine.reads.types}
    limits, judged = parts.engine.limits_of(project), parts.engine.external_validation.names
    _check_ignored(request)
    show_nested = query_flag(request, "show_nested") is True
    try:
        found = await with_fetched(
            lambda fetched: parts.engine.thread_pool(
                partial(validated, wanted, project, types, limits, judged, fetched), project
            ),
            lambda url: parts.fetch_template(url, limits.source.max_bytes),
        )
        await parts.engine.external_validation.validate(
            found.definition, project, wanted.credential
        )
    except Invalid as error:
        # Here, and only here, clients know one name for all that can be wrong.
        raise Invalid([replace(one, code="Invalid") for one in error.findings]) from None
    return answer(found.document(show_nested))


def _check_ignored(request: web.Request) -> None:
    """There is one kind of error that one may want ignored, and it does not come up here."""
    wrong = [code for code in query_list(request, "ignore_errors") if code not in IGNORABLE]
    if wrong:
        reason = f"Invalid codes in ignore_errors : {wrong}"
        raise invalid("ignore_errors", reason, f"Known: {', '.join(IGNORABLE)}.")


@dataclass(frozen=True, slots=True)
class Validated:
    """A template that can be used. given: values of parameters, by name."""

    template: Template
    environment: Environment
    given: Mapping[str, Json]
    definition: StackDefinition

    def document(self, show_nested: bool = False) -> responses.ValidatedTemplate:
        """What the API answers."""
        hidden = hidden_names(self.template, self.environment)
        document = {**self.environment.document, "parameters": dict(self.given)}
        nested = self.definition.nested
        # Defaults are those of nested templates, too.
        masked = masked_environment(document, hidden | _hidden_inside(nested))
        registry = {"resources": {}} | document.get("resource_registry", {})
        shown: responses.ValidatedTemplate = {
            **described(self.template, self.environment, self.given, hidden),
            "Environment": {"event_sinks": []} | masked | {"resource_registry": registry},
        }
        if show_nested and nested:
            shown["NestedParameters"] = nested_parameters(nested)
        return shown


def _hidden_inside(nested: Mapping[str, NestedStackDefinition]) -> frozenset[str]:
    each = (one.hidden | _hidden_inside(one.nested) for one in nested.values())
    return frozenset().union(*each)


def validated(
    wanted: StackRequest,
    project: str,
    types: Mapping[str, TypeSchema],
    limits: Limits,
    judged: Collection[str] = (),
    fetched: Mapping[str, str] | None = None,
) -> Validated:
    """Raises Invalid with all that is wrong, TemplatesWanted where addresses are to be fetched.

    judged: custom constraints that somebody is asked about. fetched: templates by their addresses.
    """
    written = read_request(
        wanted,
        None,
        limits=limits.source,
        most_resources=limits.resources,
        operator=limits.environment,
        fetched=fetched or {},
    )
    findings = Findings()
    given = {**written.environment.parameters, **wanted.parameters}
    definition = _check_meaning(
        wanted, written, given, project, types, judged, limits.language, findings
    )
    _check_hooks(written, limits, types, findings)
    if findings.all and written.nesting.missing:
        raise TemplatesWanted(findings.all, written.nesting.missing)
    if findings.all or definition is None:
        raise Invalid(findings.all)
    return Validated(written.template, written.environment, given, definition)


def _check_hooks(
    written: ParsedRequest, limits: Limits, types: Mapping[str, TypeSchema], findings: Findings
) -> None:
    steps = {step for schema in types.values() for step in schema.steps}
    # What a condition says is checked where parameters are known.
    Reader(findings, limits.hooks, always, steps).declarations(
        (*written.environment.hook_declarations, *written.template.hook_declarations)
    )


def _check_meaning(
    wanted: StackRequest,
    written: ParsedRequest,
    given: Mapping[str, Json],
    project: str,
    types: Mapping[str, TypeSchema],
    judged: Collection[str],
    language: CostLimits,
    findings: Findings,
) -> StackDefinition | None:
    """None: findings say why. Parameters that nobody gave are not known yet."""
    defaults = written.environment.parameter_defaults
    unknown = frozenset(
        name
        for name, one in written.template.parameters.items()
        if all(value is None for value in (given.get(name), defaults.get(name), one.default))
    )
    try:
        return define_stack(
            template=written.template,
            environment=written.environment,
            parameters=wanted.parameters,
            files=written.files,
            pseudo={"OS::project_id": project},
            types=types,
            check_properties=lambda *_: None,
            nesting=written.nesting,
            unknown=unknown | PER_STACK,
            facade=UNKNOWN_FACADE,
            validators=judged,
            limits=language,
        )
    except Invalid as error:
        findings.all += error.findings
        return None


ROUTES = (
    Route("POST", "/v1/{project}/validate", costly(validate), "Validate a template", "templates",
          takes_body=True, response=responses.ValidatedTemplate, needs=Right.READ,
          query={
              "show_nested": "true: with the parameters of nested stacks",
              "ignore_errors": "error codes to ignore, comma separated",
          }),
)  # fmt: skip
