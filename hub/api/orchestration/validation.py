"""POST /validate: evaluate a template without storing it. Parameters may be missing.

The rules of a type across its properties are checked if all parameters have a value; otherwise when
a stack is created or updated.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from aiohttp import web

from engine.errors import Finding, Findings, Invalid, MissingTemplates, as_errors
from engine.hooks.operator import always
from engine.hooks.rule_reader import Reader
from engine.hot.definition.resource_properties import CheckProperties
from engine.hot.definition.stack import (
    PER_STACK,
    NestedStackDefinition,
    StackDefinition,
    define_stack,
)
from engine.hot.environment.environment import Environment
from engine.hot.evaluation.resource_facade import UNKNOWN_FACADE
from engine.hot.evaluation.stack_outputs import StackOutputs
from engine.hot.functions.cost_budget import CostLimits
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.template.template import Template
from engine.plan.convergence import SECTION, read_section
from engine.service import Limits, StackRequest
from engine.service.reads.stack_outputs import with_stack_outputs
from engine.service.requests.blueprint import section_of, warnings_of
from engine.service.requests.parsing import ParsedRequest
from engine.words import Json
from hub.api.app_context import context_of, project_of
from hub.api.costly_requests import costly
from hub.api.heat_sentences import InvalidTemplate
from hub.api.orchestration import responses
from hub.api.orchestration.documents import (
    hidden_names,
    masked_environment,
    nested_parameters,
    template_description,
)
from hub.api.orchestration.fetched_templates import with_fetched_templates
from hub.api.orchestration.request_texts import fetched_of, locate_errors, warning_documents
from hub.api.orchestration.stack_requests import read_stack_request
from hub.api.request_validation import invalid, query_flag, query_list
from hub.api.routes import Route, json_response
from hub.auth.roles import Right

#: Heat's code of a resource type whose service is unavailable, the only one that it can ignore.
IGNORABLE = ("99001",)
#: Adds findings about the section `convergence` (None: there is none). Also given: the definition
#: of the stack, and its project.
CheckConvergence = Callable[[Json, StackDefinition, str, Findings], None]


async def validate(request: web.Request) -> web.Response:
    context, project = context_of(request), project_of(request)
    new = await read_stack_request(request)
    types = context.engine.reads.types
    limits, validators = context.engine.limits_of(project), context.engine.external_validation.names
    _check_ignored(request)
    show_nested = query_flag(request, "show_nested") is True
    warned = Findings()
    try:
        async with locate_errors(request, new, warned):
            validated = await _validate(
                request, new, types, limits, validators, warned, show_nested=show_nested
            )
    except Invalid as error:
        raise InvalidTemplate(error.findings, error.warnings) from None
    warnings = await warning_documents(request, new, warned.warnings)
    return json_response(validated.document(warnings, show_nested))


async def _validate(
    request: web.Request,
    new: StackRequest,
    types: Mapping[str, TypeSchema],
    limits: Limits,
    validators: Collection[str],
    warned: Findings,
    *,
    show_nested: bool,
) -> "ValidTemplate":
    """warned: gets the warnings about a valid template. Raises Invalid with all findings."""
    context, project = context_of(request), project_of(request)
    validated = await with_stack_outputs(
        lambda outputs: with_fetched_templates(
            lambda fetched: context.engine.thread_pool(
                partial(
                    validate_template,
                    new,
                    project,
                    types,
                    limits,
                    validators,
                    fetched,
                    show_nested=show_nested,
                    stack_outputs=outputs,
                    check_properties=context.engine.reads.check_properties,
                    check_convergence=context.engine.reads.check_convergence,
                ),
                project,
            ),
            lambda url: context.fetch_template(url, limits.source.max_bytes),
            fetched_of(request),
        ),
        partial(context.engine.validation_outputs, project),
        {},
    )
    warned.warn_all((*new.warnings, *validated.definition.warnings, *validated.warnings))
    await context.engine.external_validation.validate(
        validated.definition, project, new.credential, validated.environment.region
    )
    return validated


def _check_ignored(request: web.Request) -> None:
    unknown = [code for code in query_list(request, "ignore_errors") if code not in IGNORABLE]
    if unknown:
        reason = f"Invalid codes in ignore_errors : {unknown}"
        raise invalid("ignore_errors", reason, f"Known: {', '.join(IGNORABLE)}.")


@dataclass(frozen=True, slots=True)
class ValidTemplate:
    """A valid template. parameters: values by name. warnings: those that the definition does not
    have."""

    template: Template
    environment: Environment
    parameters: Mapping[str, Json]
    definition: StackDefinition
    warnings: Sequence[Finding] = ()

    def document(
        self, warnings: list[responses.Warning], show_nested: bool = False
    ) -> responses.ValidatedTemplate:
        hidden = hidden_names(self.template, self.environment)
        document = {**self.environment.document, "parameters": dict(self.parameters)}
        nested = self.definition.nested
        # `parameter_defaults` also applies to nested templates.
        masked = masked_environment(document, hidden | _hidden_in_nested(nested))
        used = (
            self.environment.registry.used_entry(one.type)
            for one in self.template.resources.values()
        )
        registry = {"resources": {}, **dict(filter(None, used))}
        registry |= document.get("resource_registry", {})
        response: responses.ValidatedTemplate = {
            **template_description(self.template, self.environment, self.parameters, hidden),
            "Environment": {"event_sinks": []} | masked | {"resource_registry": registry},
            "warnings": warnings,
        }
        if show_nested and nested:
            response["NestedParameters"] = nested_parameters(nested)
        return response


def _hidden_in_nested(nested: Mapping[str, NestedStackDefinition]) -> frozenset[str]:
    each = (one.hidden | _hidden_in_nested(one.nested) for one in nested.values())
    return frozenset().union(*each)


def validate_template(
    new: StackRequest,
    project: str,
    types: Mapping[str, TypeSchema],
    limits: Limits,
    validators: Collection[str] = (),
    fetched: Mapping[str, str] | None = None,
    *,
    show_nested: bool = False,
    stack_outputs: StackOutputs | None = None,
    check_properties: CheckProperties = lambda *_: None,
    check_convergence: CheckConvergence = lambda *_: None,
) -> ValidTemplate:
    """Raises Invalid with all findings, MissingTemplates if templates must be fetched first.

    validators: names of the custom constraints that this server can validate. fetched: templates by
    URL. show_nested: parameters of nested templates may have no value, as in Heat, because the
    caller wants to know which there are. stack_outputs, check_properties: see `define_stack`.
    check_convergence: adds findings about the section of the stack.
    """
    parsed = limits.read(new, None, fetched=fetched or {})
    parsed = replace(parsed, nesting=replace(parsed.nesting, values_later=show_nested))
    findings = Findings()
    parameters = {**parsed.environment.parameters, **new.parameters}
    definition = _define(
        new, parsed, parameters, project, types, validators, limits.language, findings,
        stack_outputs, check_properties,
    )  # fmt: skip
    _check_hooks(parsed, limits, types, findings)
    section = section_of(parsed.template, parsed.environment)
    if definition is not None:
        check_convergence(section, definition, project, findings)
    elif section is not None:
        read_section(section, SECTION, findings)
    warnings = warnings_of(new, parsed, definition, findings.warnings)
    if new.strict or limits.strict:
        findings.all += as_errors(warnings)
        warnings = ()
    if findings.all and parsed.nesting.missing:
        raise MissingTemplates(findings.all, parsed.nesting.missing, warnings)
    if findings.all or definition is None:
        raise Invalid(findings.all, warnings)
    return ValidTemplate(
        parsed.template, parsed.environment, parameters, definition, findings.warnings
    )


def _check_hooks(
    parsed: ParsedRequest, limits: Limits, types: Mapping[str, TypeSchema], findings: Findings
) -> None:
    steps = {step for schema in types.values() for step in schema.steps}
    # Conditions are evaluated when a stack is created, with all parameters.
    Reader(findings, limits.hooks, always, steps).declarations(
        (*parsed.environment.hook_declarations, *parsed.template.hook_declarations)
    )


def _define(
    new: StackRequest,
    parsed: ParsedRequest,
    parameters: Mapping[str, Json],
    project: str,
    types: Mapping[str, TypeSchema],
    validators: Collection[str],
    language: CostLimits,
    findings: Findings,
    stack_outputs: StackOutputs | None,
    check_properties: CheckProperties,
) -> StackDefinition | None:
    """None if the template is invalid. Parameters without a value are unknown."""
    defaults = parsed.environment.parameter_defaults
    unknown = frozenset(
        name
        for name, one in parsed.template.parameters.items()
        if all(value is None for value in (parameters.get(name), defaults.get(name), one.default))
    )
    complete = not unknown and not parsed.nesting.values_later
    try:
        return define_stack(
            template=parsed.template,
            environment=parsed.environment,
            parameters=new.parameters,
            files=parsed.files,
            pseudo={"OS::project_id": project},
            types=types,
            check_properties=check_properties if complete else lambda *_: None,
            nesting=parsed.nesting,
            unknown=unknown | PER_STACK,
            facade=UNKNOWN_FACADE,
            validators=validators,
            limits=language,
            stack_outputs=stack_outputs,
        )
    except Invalid as error:
        findings.all += error.findings
        findings.warn_all(error.warnings)
        return None


ROUTES = (
    Route("POST", "/v1/{project}/validate", costly(validate), "Validate a template", "templates",
          takes_body=True, response=responses.ValidatedTemplate, needs=Right.READ,
          reads=True,
          query={
              "show_nested": "true: include the parameters of nested stacks",
              "ignore_errors": "error codes to ignore, comma separated",
          }),
)  # fmt: skip
