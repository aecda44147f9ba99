"""Records, environments and templates as documents of the Orchestration API. Pure."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast
from urllib.parse import quote
from uuid import UUID

from engine.hot.definition.stack import NestedStackDefinition
from engine.hot.environment.environment import Environment
from engine.hot.environment.merging import VALUES
from engine.hot.expressions.masking import MASK, leaks_secret, secret_texts
from engine.hot.expressions.member_attributes import mask_attributes, visible_attributes
from engine.hot.schema.parameters import ParameterKind, ParameterSchema
from engine.hot.schema.type_schema import Constraint, TypeSchema
from engine.hot.syntax.keyed_names import plain_name
from engine.hot.template.cfn_parameters import KINDS
from engine.hot.template.template import Template
from engine.plan.overrides import Override
from engine.service import Output, StackValues
from engine.store.records import EventRecord, ResourceRecord, StackRecord, TemplateRecord
from engine.store.stacks.events import STACK_TYPE
from engine.types.contract import make_physical_name
from engine.words import Json
from hub.api.orchestration import responses

#: Characters of a path segment that are not quoted, besides letters, digits and `_.-~`.
UNQUOTED = "!$&'()*+,;=:@"


def time(moment: datetime) -> str:
    """``2026-11-20T20:16:36Z``: UTC, without fractions."""
    return f"{moment.astimezone(UTC).isoformat()[:19]}Z"


def time_or_none(moment: datetime | None) -> str | None:
    return time(moment) if moment else None


def stack_url(base: str, project: str, name: str, stack_id: object) -> str:
    """base: the API's root. Names are quoted, because a project can be any text, and the URL is
    also sent in a header."""
    return f"{base}/{quote_segment(project)}/stacks/{quote_segment(name)}/{stack_id}"


def quote_segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe=UNQUOTED)


def link(href: str, rel: str = "self") -> responses.Link:
    return {"href": href, "rel": rel}


def adopted_document(one: Override) -> responses.AdoptedValue:
    return {
        "path": one.path,
        "value": one.value,
        "template": one.template,
        "adopted_by": one.by,
        "adopted_at": time(datetime.fromisoformat(one.at)),
    }


def stack_summary(stack: StackRecord, base: str) -> responses.StackSummary:
    """A stack in a list, which has no description in Heat."""
    return {
        "id": str(stack.id),
        "links": [link(stack_url(base, stack.project, stack.name, stack.id))],
        "stack_name": stack.name,
        "description": "",
        "stack_status": f"{stack.action}_{stack.status}",
        "stack_status_reason": stack.reason,
        "creation_time": time(stack.created_at),
        "updated_time": time_or_none(stack.updated_at),
        "deletion_time": time_or_none(stack.deleted_at),
        "stack_owner": stack.owner,
        "parent": str(stack.parent_id) if stack.parent_id else None,
        "stack_user_project_id": stack.project,
        "tags": stack.tags or None,
    }


def stack_full(
    stack: StackRecord, base: str, view: StackValues
) -> responses.Stack | responses.StackWithOutputs:
    document: responses.Stack = {
        **stack_summary(stack, base),
        "description": stack.description,
        "template_description": stack.description,
        "parameters": view.parameters,
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
        "tags": stack.tags,
        "pinned": pin_of(stack),
        "root": str(stack.root_id) if stack.root_id else None,
        "path": stack.path,
    }
    if view.outputs is None:
        return document
    return {**document, "outputs": [output(one) for one in view.outputs]}


def pin_of(stack: StackRecord) -> responses.Pin | None:
    """The pin that keeps a stack from being purged, if it has one."""
    if stack.pinned_at is None:
        return None
    return {
        "by": stack.pinned_by or "",
        "at": time(stack.pinned_at),
        "reason": stack.pinned_reason or "",
    }


def output(one: Output) -> responses.Output:
    document: responses.Output = {
        "output_key": one.key,
        "description": one.description,
        "output_value": one.value,
    }
    if one.error:
        document["output_error"] = one.error
    return document


def resource(
    one: ResourceRecord, written_type: str, project: str, base: str, required_by: Sequence[str]
) -> responses.ResourceSummary:
    """written_type: its type in the template. required_by: as Heat's clients see the names. The
    physical ID of a resource with a nested stack is the ID of that stack, even during its
    creation."""
    url, shown = stack_url(base, project, one.stack_name, one.stack_id), plain_name(one.name)
    links = [link(f"{url}/resources/{quote_segment(shown)}"), link(url, "stack")]
    if one.nested_id is not None and one.nested_name is not None:
        links.append(link(stack_url(base, project, one.nested_name, one.nested_id), "nested"))
    document: responses.ResourceSummary = {
        "resource_name": shown,
        "logical_resource_id": shown,
        "headgate_resource_name": one.name,
        "physical_resource_id": one.physical_id or str(one.nested_id or ""),
        "resource_type": written_type,
        "headgate_resolved_type": one.type,
        "resource_status": f"{one.action}_{one.status}",
        "resource_status_reason": one.reason,
        "deletion_policy": one.deletion_policy,
        "creation_time": time(one.created_at),
        "updated_time": time(one.updated_at),
        "required_by": list(required_by),
        "links": links,
    }
    if one.parent_resource:
        document["parent_resource"] = plain_name(one.parent_resource)
        document["headgate_parent_resource"] = one.parent_resource
    return document


def required_by(resources: Sequence[ResourceRecord]) -> dict[tuple[UUID, str], list[str]]:
    """Stack ID and resource name -> names of the dependents for Heat's clients."""
    dependents: dict[tuple[UUID, str], list[str]] = defaultdict(list)
    for one in resources:
        for name in one.requires:
            dependents[one.stack_id, name].append(plain_name(one.name))
    return dependents


def event(
    one: EventRecord, stack: StackRecord, base: str, *, rooted: bool = False
) -> responses.EventInList:
    """stack: of the request; the event belongs to it or to one of its nested stacks. rooted: add a
    link to it as root stack, without which clients request every nested stack."""
    own = one.stack_name or stack.name
    url = stack_url(base, stack.project, own, one.stack_id)
    shown = plain_name(one.resource_name) if one.resource_name else own
    at = f"{url}/resources/{quote_segment(shown)}"
    links = [link(f"{at}/events/{one.id}"), link(at, "resource"), link(url, "stack")]
    if rooted:
        links.append(link(stack_url(base, stack.project, stack.name, stack.id), "root_stack"))
    return {
        "id": str(one.id),
        "links": links,
        "event_time": time(one.time),
        "resource_name": shown,
        "logical_resource_id": shown,
        "headgate_resource_name": one.resource_name or own,
        "physical_resource_id": _physical_id_of_event(one, own),
        "resource_status": f"{one.action}_{one.status}",
        "resource_status_reason": one.reason,
    }


def _physical_id_of_event(one: EventRecord, stack_name: str) -> str | None:
    """As in Heat, an event from before there is an ID has the physical name. stack_name: of the
    event's stack."""
    if one.resource_name is None:
        return str(one.stack_id)
    key = (one.data or {}).get("key")
    if one.physical_id is None and key is not None:
        return make_physical_name(stack_name, one.resource_name, key)
    return one.physical_id


def whole_event(
    one: EventRecord, written: str, stack: StackRecord, base: str, properties: Mapping[str, Json]
) -> responses.Event:
    """written: the type of its resource in the template."""
    return {
        **event(one, stack, base),
        "resource_type": written,
        "headgate_resolved_type": one.resource_type or STACK_TYPE,
        "resource_properties": dict(properties),
    }


def shown_attributes(one: ResourceRecord, schema: TypeSchema | None) -> dict[str, Json]:
    """Attributes, with those masked that the row or the type declares secret. In rows of earlier
    versions, attributes that contain a hidden value of the properties are masked, too."""
    declared = {name for name, known in schema.attributes.items() if known.secret} if schema else ()
    secret = {*declared, *(one.secret_attributes or ())}
    attributes = visible_attributes(mask_attributes(one.attributes or {}, secret))
    if one.secret_attributes is not None or one.masked_properties is None:
        return attributes
    hidden = set(secret_texts(one.properties, one.masked_properties))
    return {
        name: MASK if leaks_secret(value, hidden) else value for name, value in attributes.items()
    }


_CFN_KINDS: Mapping[ParameterKind, str] = {kind: name for name, kind in KINDS.items()}


def template_description(
    template: Template,
    environment: Environment,
    values: Mapping[str, Json],
    hidden: Collection[str],
) -> responses.TemplateDescription:
    """values: of parameters, by name. hidden: names of parameters."""
    defaults = environment.parameter_defaults
    document: responses.TemplateDescription = {
        "Description": template.description,
        "Parameters": {
            name: parameter(
                replace(one, hidden=name in hidden), values.get(name), defaults.get(name)
            )
            for name, one in template.parameters.items()
        },
    }
    if template.parameter_groups:
        document["ParameterGroups"] = [dict(group) for group in template.parameter_groups]
    return document


def nested_parameters(
    nested: Mapping[str, NestedStackDefinition],
) -> dict[str, responses.NestedTemplateDescription]:
    """Nested templates by resource, as Heat's clients see the name, each with the templates nested
    in it."""
    document: dict[str, responses.NestedTemplateDescription] = {}
    for name, one in nested.items():
        template = one.kind.template
        described = template_description(template, one.kind.environment, one.parameters, one.hidden)
        shown = plain_name(name)
        document[shown] = {**described, "Type": one.type}
        if shown != name:
            document[shown]["headgate_resource_name"] = name
        if one.nested:
            document[shown]["NestedParameters"] = nested_parameters(one.nested)
    return document


def hidden_names(template: Template, environment: Environment) -> frozenset[str]:
    """Names of the parameters that the template or the environment hides."""
    names = (name for name, one in template.parameters.items() if one.hidden)
    return frozenset(environment.encrypted_param_names).union(names)


def parameter(schema: ParameterSchema, value: Json, default: Json = None) -> responses.Parameter:
    """A parameter in the notation of CloudFormation, as in Heat. default: of the environment; it
    replaces the template's."""
    document: responses.Parameter = {
        "Type": _CFN_KINDS[schema.kind],
        "Description": schema.description,
        "NoEcho": "true" if schema.hidden else "false",
        "Label": schema.label or schema.name,
    }
    if default is not None:
        document["Default"] = MASK if schema.hidden else default
    elif schema.default is not None:
        document["Default"] = schema.default
    if value is not None:
        document["Value"] = MASK if schema.hidden else value
    if schema.tags:
        document["Tags"] = list(schema.tags)
    for rule in schema.constraints:
        document = {**document, **cfn_constraint(rule)}
    if descriptions := [rule.description for rule in schema.constraints if rule.description]:
        document["ConstraintDescription"] = " ".join(descriptions)
    return document


def cfn_constraint(rule: Constraint) -> responses.ParameterConstraint:
    table: Mapping[str, Mapping[str, Json]] = {
        "length": {"MinLength": rule.min, "MaxLength": rule.max},
        "range": {"MinValue": rule.min, "MaxValue": rule.max},
        "modulo": {"Step": rule.step, "Offset": rule.offset},
        "allowed_values": {"AllowedValues": list(rule.allowed)},
        "allowed_pattern": {"AllowedPattern": rule.pattern},
        "custom_constraint": {"CustomConstraint": rule.name},
        "schema": {"Schema": rule.schema},
    }
    document = {name: value for name, value in table[rule.kind].items() if value is not None}
    return cast(responses.ParameterConstraint, document)


def environment(stored: TemplateRecord) -> dict[str, Json]:
    """The environment of a template version, with all its parameters; hidden values are masked."""
    parameters = {**(stored.environment.get("parameters") or {}), **stored.parameters}
    return masked_environment(
        {**stored.environment, "parameters": parameters}, stored.hidden_parameters
    )


def masked_environment(document: Mapping[str, Json], hidden: Collection[str]) -> dict[str, Json]:
    """Hidden values as ``******``, without `encrypted_param_names`."""
    masked = {name: value for name, value in document.items() if name != "encrypted_param_names"}
    for section in VALUES:
        values: Mapping[str, Json] = document.get(section) or {}
        masked[section] = {name: MASK if name in hidden else one for name, one in values.items()}
    return masked
