"""The audit trail: who decided what, through which door and why."""

from aiohttp import web

from channels.envelope import rfc3339
from engine.hooks.audit import Entry
from engine.words import Json
from hub.api.headgate import documents as gives
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    parts_of,
    query_limit,
    query_number,
    stack_of,
)

USUAL = 1000


def entry_document(entry: Entry) -> dict[str, Json]:
    """With everything that its hash covers."""
    return {
        "number": entry.number,
        "stack_id": str(entry.stack_id),
        "hook_id": str(entry.hook_id) if entry.hook_id else None,
        "kind": entry.kind,
        "by": entry.by,
        "door": entry.door,
        "address": entry.address,
        "at": rfc3339(entry.at),
        "reason": entry.reason,
        "digest": entry.digest,
        "data": entry.data,
        "hash": entry.hash,
    }


async def decisions(request: web.Request) -> web.Response:
    """In order; `next` is the number to go on after."""
    stack = await stack_of(request)
    limit = query_limit(request, default=USUAL) or USUAL
    after = query_number(request, "after", default=0)
    found = await parts_of(request).engine.audit_trail(stack, after=after, limit=limit + 1)
    shown = [entry_document(entry) for entry in found[:limit]]
    return answer({"decisions": shown, "next": shown[-1]["number"] if len(found) > limit else None})


ROUTES = (
    Route("GET", f"{S}/decisions", decisions, "Who decided what: the audit trail", "stacks",
          query={"after": "numbers above this one", "limit": "at most so many"},
          gives=gives.TRAIL),
)  # fmt: skip
