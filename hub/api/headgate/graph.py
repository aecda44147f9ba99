"""The graph of a stack's current traversal, and why it does not go on."""

from aiohttp import web

from channels.envelope import notification_documents, rfc3339
from channels.store.hook_notifications import notifications_of
from engine.service.reads.graphs import StackGraph
from engine.store.records import TraversalRecord
from engine.store.stack_queries import HookFilter
from hub.api.headgate import responses
from hub.api.headgate.explanations import Held, path_in, reasons_in, unfinished_before, until_of
from hub.api.orchestration.stacks import S
from hub.api.parts import Route, answer, parts_of, project_of, query_flag, query_number, stack_of


def graph_document(found: StackGraph) -> responses.Graph:
    traversal, nodes = found.traversal, found.nodes
    before = unfinished_before(nodes)
    return {
        "nodes": [
            {
                "id": node.id,
                "resource_name": node.resource_name,
                "path": path_in(found.path, node.resource_name),
                "type": node.type,
                "operation": node.operation,
                "direction": node.direction,
                "state": node.state,
                "phase": node.phase,
                "waiting_for": before[node.id] if node.state == "waiting" else [],
                "breakpoints": [rule["point"] for rule in node.rules or []],
                "reason": node.reason,
                "inside": str(node.inside) if node.inside else None,
                "started_at": rfc3339(node.started_at) if node.started_at else None,
                "ended_at": rfc3339(node.ended_at) if node.ended_at else None,
                "until": until_of(node),
            }
            for node in nodes
        ],
        "edges": [[node.id, after] for node in nodes for after in node.requirers],
        "traversal": traversal_document(traversal),
        "sequence": found.sequence,
    }


def traversal_document(traversal: TraversalRecord) -> responses.Traversal:
    return {
        "number": traversal.number,
        "action": traversal.action,
        "state": traversal.state,
        "reason": traversal.reason,
        "digest": traversal.digest,
        "version": traversal.version,
        "stale": traversal.stale,
        "requested_by": traversal.requested_by,
        "worked_seconds": round(traversal.worked, 3),
        "started_at": rfc3339(traversal.started_at),
        "ended_at": rfc3339(traversal.ended_at) if traversal.ended_at else None,
    }


async def graph(request: web.Request) -> web.Response:
    nested = query_flag(request, "nested")
    asked = query_number(request, "traversal", default=0) if "traversal" in request.query else None
    own, *inside = await parts_of(request).engine.reads.graph(
        await stack_of(request), nested=nested, traversal=asked
    )
    within: list[responses.NestedGraph] = [
        {
            "stack_id": str(one.stack_id),
            "stack_name": one.name,
            "path": one.path,
            **graph_document(one),
        }
        for one in inside
    ]
    document = graph_document(own)
    if not nested:
        return answer(document)
    return answer(responses.GraphWithNested(**document, stacks=within))


async def why(request: web.Request) -> web.Response:
    stack, parts = await stack_of(request), parts_of(request)
    graphs = await parts.engine.reads.graph(stack, nested=True)
    hooks = await parts.engine.reads.hooks(
        project_of(request),
        HookFilter(state="waiting", stack_id=stack.id, limit=1000),
    )
    async with parts.database.connection() as conn:
        notices = await notifications_of(conn, hooks)
    held = {
        (hook.stack_id, hook.resource_name): Held(
            hook, notification_documents(notices.get(hook.id, []))
        )
        for hook in hooks
    }
    found = reasons_in(graphs, held)
    shown: responses.StackProgress = {
        "id": str(stack.id),
        "name": stack.name,
        "status": f"{stack.action}_{stack.status}",
        "reason": stack.reason,
    }
    return answer(responses.Why(stack=shown, nodes=found))


ROUTES = (
    Route("GET", f"{S}/graph", graph, "The graph of the current traversal, or of an earlier one",
          "stacks",
          query={
              "nested": "true: with the graphs of stacks inside, in `stacks`",
              "traversal": "of this traversal, by its number",
          },
          response=responses.Graph | responses.GraphWithNested),
    Route("GET", f"{S}/why", why, "Explain why a stack makes no progress", "stacks",
          response=responses.Why),
)  # fmt: skip
