"""One resource, with all that a person wants to see of it."""

from aiohttp import web

from channels.envelope import rfc3339
from engine.hooks.rule import encode_rule
from engine.hot.expressions.masking import MASK
from engine.service.reads.resource_details import ResourceDetails, SetBreakpoint, Step
from engine.store.records import ResourceRecord, StackRecord
from engine.words import Json
from hub.api.headgate import responses
from hub.api.headgate.explanations import path_in, until_of
from hub.api.headgate.hooks import documents
from hub.api.orchestration.attributes import shown_attributes
from hub.api.orchestration.resources import R
from hub.api.parts import Route, answer, parts_of, stack_of


async def inspect(request: web.Request) -> web.Response:
    parts, stack = parts_of(request), await stack_of(request)
    found = await parts.engine.resource_inspection.resource(stack, request.match_info["resource"])
    schema = parts.engine.reads.types.get(found.type)
    row = found.row
    document: responses.InspectedResource = {
        "name": found.name,
        "path": path_in(stack.path, found.name),
        "type": found.type,
        "stack": {"id": str(stack.id), "name": stack.name, "traversal": stack.traversal},
        "physical_id": row.physical_id if row else None,
        "status": _status(row) if row else None,
        "properties": dict(found.properties),
        "attributes": shown_attributes(row, schema) if row else {},
        "metadata": _metadata(row) if row else {},
        "requires": row.requires if row else [],
        "required_by": list(found.required_by),
        "inside": _inside(row),
        "nodes": [_node(one, stack) for one in found.steps],
        "breakpoints": [_breakpoint(one) for one in _by_point(found)],
        "hooks": await documents(parts, list(found.hooks)),
    }
    return answer(document)


def _status(row: ResourceRecord) -> responses.InspectedStatus:
    return {
        "id": str(row.id),
        "action": row.action,
        "status": row.status,
        "reason": row.reason,
        "protected": row.protected,
        "deletion_policy": row.deletion_policy,
        "created_at": rfc3339(row.created_at),
        "updated_at": rfc3339(row.updated_at),
    }


def _metadata(row: ResourceRecord) -> dict[str, Json]:
    """Where something of the resource is hidden, it may be there as well."""
    said = row.metadata or {}
    return said if row.shown is None else dict.fromkeys(said, MASK)


def _inside(row: ResourceRecord | None) -> responses.NestedStack | None:
    if row is None or row.nested_id is None:
        return None
    return {"id": str(row.nested_id), "name": row.nested_name}


def _node(step: Step, stack: StackRecord) -> responses.InspectedNode:
    node, wanted = step.node, step.wanted
    return {
        "id": node.id,
        "traversal": stack.traversal,
        "type": node.type,
        "operation": node.operation,
        "direction": node.direction,
        "state": node.state,
        "phase": node.phase,
        "reason": node.reason,
        "waiting_for": list(step.waiting_for),
        "started_at": rfc3339(node.started_at) if node.started_at else None,
        "ended_at": rfc3339(node.ended_at) if node.ended_at else None,
        "until": until_of(node),
        "operation_key": str(step.operation_key) if step.operation_key else None,
        "restarts": step.restarts,
        "properties": dict(wanted.properties) if wanted else None,
        "changes": dict(wanted.changes) if wanted else None,
    }


def _by_point(found: ResourceDetails) -> list[SetBreakpoint]:
    return sorted(found.breakpoints, key=lambda one: one.rule.point)


def _breakpoint(one: SetBreakpoint) -> responses.EffectiveBreakpoint:
    rule = encode_rule(one.rule)
    return {
        "point": rule.pop("point"),
        "source": one.source,
        "rule": rule,
        "id": str(one.live.id) if one.live else None,
        "created_by": one.live.created_by if one.live else None,
    }


ROUTES = (
    Route("GET", f"{R}/inspect", inspect, "A resource with all that there is about it", "resources",
          response=responses.InspectedResource),
)  # fmt: skip
