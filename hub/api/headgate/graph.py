"""The graph of a traversal, and explanations why the stack makes no progress."""

from datetime import UTC, datetime

from aiohttp import web

from channels.envelope import notification_documents, rfc3339
from channels.store.hook_notifications import notifications_of
from engine.service.reads.graphs import StackGraph
from engine.store.hooks.hook_lists import HookFilter
from engine.store.records import TraversalRecord
from engine.words import DRIFT
from hub.api.app_context import context_of, project_of
from hub.api.headgate import responses
from hub.api.headgate.explanations import (
    WaitingHook,
    explain,
    explain_drift,
    explain_paused,
    explain_unknown,
    explain_unrepaired,
    path_in,
    unfinished_before,
    until_of,
)
from hub.api.openapi_components import document_of
from hub.api.orchestration.stacks import S
from hub.api.query_parameters import flag, number
from hub.api.request_validation import query_flag, query_number, stack_of
from hub.api.routes import Route, json_response


def graph_document(graph: StackGraph) -> responses.Graph:
    traversal, nodes = graph.traversal, graph.nodes
    before = unfinished_before(nodes)
    return {
        "nodes": [
            {
                "id": node.id,
                "resource_name": node.resource_name,
                "path": path_in(graph.path, node.resource_name),
                "type": node.type,
                "operation": node.operation,
                "direction": node.direction,
                "state": node.state,
                "phase": node.phase,
                "waiting_for": before[node.id] if node.state == "waiting" else [],
                "breakpoints": [rule["point"] for rule in node.rules or []],
                "reason": node.reason,
                "nested_stack_id": str(node.nested_stack_id) if node.nested_stack_id else None,
                "started_at": rfc3339(node.started_at) if node.started_at else None,
                "ended_at": rfc3339(node.ended_at) if node.ended_at else None,
                "until": until_of(node),
                "label": node.label or None,
            }
            for node in nodes
        ],
        "edges": [[node.id, after] for node in nodes for after in node.dependents],
        "traversal": traversal_document(traversal),
        "sequence": graph.sequence,
    }


def traversal_document(traversal: TraversalRecord) -> responses.Traversal:
    return document_of(
        responses.Traversal,
        traversal,
        out_of_date=traversal.out_of_date,
        worked_seconds=round(traversal.working_time, 3),
    )


async def show_graph(request: web.Request) -> web.Response:
    nested = query_flag(request, "nested")
    by_number = "traversal" in request.query
    traversal = query_number(request, "traversal", default=0) if by_number else None
    own, *nested_graphs = await context_of(request).engine.reads.graph(
        await stack_of(request), nested=nested, traversal=traversal
    )
    nested_documents: list[responses.NestedGraph] = [
        {
            "stack_id": str(one.stack_id),
            "stack_name": one.name,
            "path": one.path,
            **graph_document(one),
        }
        for one in nested_graphs
    ]
    document = graph_document(own)
    if not nested:
        return json_response(document)
    return json_response(responses.GraphWithNested(**document, stacks=nested_documents))


async def show_why(request: web.Request) -> web.Response:
    stack, context = await stack_of(request), context_of(request)
    graphs = await context.engine.reads.graph(stack, nested=True)
    hooks = await context.engine.reads.hooks(
        project_of(request),
        HookFilter(state="waiting", stack_id=stack.id, limit=1000),
    )
    async with context.database.connection() as conn:
        notifications = await notifications_of(conn, hooks)
    found = [
        WaitingHook(hook, notification_documents(notifications.get(hook.id, []))) for hook in hooks
    ]
    # Hooks about drift belong to no node.
    drifted = [one for one in found if one.hook.point == DRIFT]
    waiting = {
        (one.hook.stack_id, one.hook.resource_name): one for one in found if one.hook.point != DRIFT
    }
    progress: responses.StackProgress = {
        "id": str(stack.id),
        "name": stack.name,
        "status": f"{stack.action}_{stack.status}",
        "reason": stack.reason,
    }
    deleted = stack.deleted_at is not None
    observations = context.engine.observations
    drift = await observations.drift(project_of(request), stack.id, deleted=deleted)
    return json_response(
        responses.Explanation(
            stack=progress,
            nodes=explain(graphs, waiting, await context.engine.reads.served_labels()),
            drift=explain_drift(drifted),
            unrepaired=explain_unrepaired(
                drift.resources,
                drift.policy,
                f"{stack.action}_{stack.status}",
                {(one.hook.stack_id, one.hook.resource_name) for one in drifted},
                datetime.now(UTC),
            ),
            unknown=explain_unknown(drift),
            paused=explain_paused(drift.paused),
        )
    )


ROUTES = (
    Route("GET", f"{S}/graph", show_graph, "The graph of the current or an earlier traversal",
          "stacks",
          query={
              "nested": flag("true: include the graphs of nested stacks, in `stacks`"),
              "traversal": number("the number of the traversal; default: the current one", least=1),
          },
          response=responses.Graph | responses.GraphWithNested),
    Route("GET", f"{S}/why", show_why, "Explain why a stack makes no progress", "stacks",
          response=responses.Explanation),
)  # fmt: skip
