"""GET .../inspect: a resource with its nodes, breakpoints and hooks."""

from aiohttp import web

from channels.envelope import rfc3339
from engine.hooks.rule import encode_rule
from engine.hot.expressions.masking import MASK
from engine.service.reads.observed_resource import ObservedResourceState
from engine.service.reads.resource_details import CurrentNode, EffectiveBreakpoint, ResourceDetails
from engine.store.records import ResourceRecord, StackRecord
from engine.words import Json
from hub.api.app_context import context_of
from hub.api.headgate import responses
from hub.api.headgate.drift import difference_documents, last_known_document
from hub.api.headgate.explanations import path_in, until_of
from hub.api.headgate.hooks import hook_documents
from hub.api.openapi_components import document_of
from hub.api.orchestration.documents import shown_attributes
from hub.api.orchestration.resources import R, resource_name
from hub.api.request_validation import stack_of
from hub.api.routes import Route, json_response


async def inspect(request: web.Request) -> web.Response:
    context, stack = context_of(request), await stack_of(request)
    name = await resource_name(request, stack)
    details = await context.engine.resource_inspection.resource(stack, name)
    schema = context.engine.reads.types.get(details.type)
    row = details.row
    document: responses.InspectedResource = {
        "name": details.name,
        "path": path_in(stack.path, details.name),
        "type": details.type,
        "stack": {"id": str(stack.id), "name": stack.name, "traversal": stack.traversal},
        "physical_id": row.physical_id if row else None,
        "status": _status(row) if row else None,
        "properties": dict(details.properties),
        "attributes": shown_attributes(row, schema) if row else {},
        "metadata": _metadata(row) if row else {},
        "requires": row.requires if row else [],
        "required_by": list(details.required_by),
        "nested_stack": _nested_stack(row),
        "nodes": [_node(one, stack) for one in details.steps],
        "breakpoints": [_breakpoint(one) for one in _by_point(details)],
        "hooks": await hook_documents(context, details.hooks),
        "label": row.label if row else None,
        "observed": _observed_state(details.observed),
    }
    return json_response(document)


def _observed_state(one: ObservedResourceState | None) -> responses.ObservedResource | None:
    if one is None:
        return None
    return {
        "state": one.state,
        "source": one.source,
        "observed_at": rfc3339(one.observed_at),
        "since": rfc3339(one.since) if one.since else None,
        "reason": one.reason,
        "differences": difference_documents(one.differences),
        "last_known": last_known_document(one.last_known),
    }


def _status(row: ResourceRecord) -> responses.InspectedStatus:
    return document_of(responses.InspectedStatus, row)


def _metadata(row: ResourceRecord) -> dict[str, Json]:
    """Masked if the resource has secret values, because the metadata can contain them."""
    metadata = row.metadata or {}
    return metadata if row.masked_properties is None else dict.fromkeys(metadata, MASK)


def _nested_stack(row: ResourceRecord | None) -> responses.NestedStack | None:
    if row is None or row.nested_id is None:
        return None
    return {"id": str(row.nested_id), "name": row.nested_name}


def _node(step: CurrentNode, stack: StackRecord) -> responses.InspectedNode:
    node, wanted = step.node, step.wanted
    return document_of(
        responses.InspectedNode,
        node,
        step,
        traversal=stack.traversal,
        until=until_of(node),
        label=node.label or None,
        properties=dict(wanted.properties) if wanted else None,
        changes=dict(wanted.changes) if wanted else None,
    )


def _by_point(details: ResourceDetails) -> list[EffectiveBreakpoint]:
    return sorted(details.breakpoints, key=lambda one: one.rule.point)


def _breakpoint(effective: EffectiveBreakpoint) -> responses.EffectiveBreakpoint:
    rule = encode_rule(effective.rule)
    return {
        "point": rule.pop("point"),
        "source": effective.source,
        "rule": rule,
        "id": str(effective.live.id) if effective.live else None,
        "created_by": effective.live.created_by if effective.live else None,
    }


ROUTES = (
    Route("GET", f"{R}/inspect", inspect, "A resource with its nodes, breakpoints and hooks",
          "resources", response=responses.InspectedResource),
)  # fmt: skip
