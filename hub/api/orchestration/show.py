"""Records as the Orchestration API shows them. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import UUID

from engine.service import Output, StackView
from engine.store.events import STACK_TYPE
from engine.store.records import EventRecord, ResourceRecord, StackRecord
from engine.words import Json
from hub.api.orchestration import responses

#: What may stand in a part of a path as it is, besides letters, digits and `_.-~`.
PLAIN = "!$&'()*+,;=:@"


def time(moment: datetime) -> str:
    """``2026-11-20T20:16:36Z``: UTC, without fractions."""
    return f"{moment.astimezone(UTC).isoformat()[:19]}Z"


def time_or_none(moment: datetime | None) -> str | None:
    return time(moment) if moment else None


def stack_url(base: str, project: str, name: str, stack_id: object) -> str:
    """base: the API's root. Names are quoted: a project may be any text, and this goes into a
    header, too."""
    return f"{base}/{quoted(project)}/stacks/{quoted(name)}/{stack_id}"


def quoted(name: str) -> str:
    """A name as one part of a path, no more of it changed than must be."""
    return quote(name, safe=PLAIN)


def link(href: str, rel: str = "self") -> responses.Link:
    return {"href": href, "rel": rel}


def stack_summary(stack: StackRecord, base: str) -> responses.StackSummary:
    """A stack in a list, where clients expect no description."""
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
    stack: StackRecord, base: str, view: StackView
) -> responses.Stack | responses.StackWithOutputs:
    shown: responses.Stack = {
        **stack_summary(stack, base),
        "description": stack.description,
        "template_description": stack.description,
        "parameters": view.parameters,
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
        "tags": stack.tags,
        "pinned": pinned(stack),
        "root": str(stack.root_id) if stack.root_id else None,
        "path": stack.path,
    }
    if view.outputs is None:
        return shown
    return {**shown, "outputs": [output(one) for one in view.outputs]}


def pinned(stack: StackRecord) -> responses.Pin | None:
    """Who keeps a stack from being purged, since when and why; None: nobody."""
    if stack.pinned_at is None:
        return None
    return {
        "by": stack.pinned_by or "",
        "at": time(stack.pinned_at),
        "reason": stack.pinned_reason or "",
    }


def output(one: Output) -> responses.Output:
    shown: responses.Output = {
        "output_key": one.key,
        "description": one.description,
        "output_value": one.value,
    }
    if one.error:
        shown["output_error"] = one.error
    return shown


def resource(
    one: ResourceRecord, project: str, base: str, required_by: Sequence[str]
) -> responses.ResourceSummary:
    """A resource that holds a stack is known by that one's id, also while it is being made."""
    url = stack_url(base, project, one.stack_name, one.stack_id)
    links = [link(f"{url}/resources/{quoted(one.name)}"), link(url, "stack")]
    if one.nested_id is not None and one.nested_name is not None:
        links.append(link(stack_url(base, project, one.nested_name, one.nested_id), "nested"))
    shown: responses.ResourceSummary = {
        "resource_name": one.name,
        "logical_resource_id": one.name,
        "physical_resource_id": one.physical_id or str(one.nested_id or ""),
        "resource_type": one.type,
        "resource_status": f"{one.action}_{one.status}",
        "resource_status_reason": one.reason,
        "creation_time": time(one.created_at),
        "updated_time": time(one.updated_at),
        "required_by": list(required_by),
        "links": links,
    }
    if one.parent_resource:
        shown["parent_resource"] = one.parent_resource
    return shown


def required_by(resources: Sequence[ResourceRecord]) -> dict[tuple[UUID, str], list[str]]:
    """stack and name -> names of those that come after it."""
    users: dict[tuple[UUID, str], list[str]] = defaultdict(list)
    for one in resources:
        for name in one.requires:
            users[one.stack_id, name].append(one.name)
    return users


def event(
    one: EventRecord, stack: StackRecord, base: str, *, rooted: bool = False
) -> responses.EventInList:
    """stack: that was asked about, which the event is of, or of one inside. rooted: with a link to
    it as the root stack, without which clients walk every nested stack."""
    asked = stack_url(base, stack.project, stack.name, stack.id)
    own = one.stack_name or stack.name
    url = stack_url(base, stack.project, own, one.stack_id)
    name = one.resource_name or own
    at = f"{url}/resources/{quoted(name)}"
    links = [link(f"{at}/events/{one.id}"), link(at, "resource"), link(url, "stack")]
    if rooted:
        links.append(link(asked, "root_stack"))
    return {
        "id": str(one.id),
        "links": links,
        "event_time": time(one.time),
        "resource_name": name,
        "logical_resource_id": name,
        "physical_resource_id": one.physical_id if one.resource_name else str(one.stack_id),
        "resource_status": f"{one.action}_{one.status}",
        "resource_status_reason": one.reason,
    }


def whole_event(
    one: EventRecord, stack: StackRecord, base: str, properties: Mapping[str, Json]
) -> responses.Event:
    return {
        **event(one, stack, base),
        "resource_type": one.resource_type or STACK_TYPE,
        "resource_properties": dict(properties),
    }
