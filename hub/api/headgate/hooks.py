"""The inbox of everything that waits, and the ways to answer."""

import hmac
from collections.abc import Mapping
from uuid import UUID

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from channels.envelope import asked_documents, hook_document, told_documents
from channels.store.notices import notices_of
from engine.errors import Finding, HeadgateError, Invalid, nearest
from engine.service import Answer
from engine.store.records import HookRecord
from engine.words import Decision, Door, HookState, Json, Point
from hub.api.parts import (
    Parts,
    Route,
    answer,
    body_of,
    identity_of,
    invalid,
    parts_of,
    project_of,
    query_limit,
    query_uuid,
    uuid_of,
)

LATER = ("step", "run", "patch", "progress")


class Signal(BaseModel):
    """An answer to a hook. digest: of what its author saw; a different one is refused."""

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    reason: str = ""
    data: Json = None
    digest: str = ""


async def documents(parts: Parts, hooks: list[HookRecord]) -> list[Json]:
    async with parts.database.connection() as conn:
        notices = await notices_of(conn, [(hook.stack_id, hook.id) for hook in hooks])
    return [
        hook_document(
            hook,
            asked=asked_documents(notices.get(hook.id, [])),
            told=told_documents(notices.get(hook.id, [])),
        )
        for hook in hooks
    ]


async def listed(request: web.Request) -> web.Response:
    parts, project = parts_of(request), project_of(request)
    limit = query_limit(request, default=100) or 100
    stack = request.query.get("stack")
    stack_id = (await parts.engine.find_stack(project, stack)).id if stack else None
    hooks = await parts.engine.hooks(
        project,
        state=_one_of(request, "state", [state.value for state in HookState]),
        stack_id=stack_id,
        point=_one_of(request, "point", [point.value for point in Point]),
        limit=limit + 1,
        marker=query_uuid(request, "marker"),
    )
    more = len(hooks) > limit
    return answer(
        {
            "hooks": await documents(parts, hooks[:limit]),
            "next": str(hooks[limit - 1].id) if more else None,
        }
    )


def _one_of(request: web.Request, name: str, known: list[str]) -> str | None:
    value = request.query.get(name)
    if value is not None and value not in known:
        remedy = nearest(value, known) or f"Known: {', '.join(known)}."
        raise invalid(name, f'"{value}" is not known', remedy)
    return value


async def shown(request: web.Request) -> web.Response:
    parts = parts_of(request)
    hook = await parts.engine.hook(_hook_id(request), project=project_of(request))
    return answer((await documents(parts, [hook]))[0])


def _hook_id(request: web.Request) -> UUID:
    return uuid_of(request.match_info["hook"], "hook", "HookNotFound")


async def signal(request: web.Request) -> web.Response:
    """By right of one's role."""
    by = identity_of(request).name
    return await _answer(request, by, Door.API, project_of(request))


async def signal_by_token(request: web.Request) -> web.Response:
    """By right of the hook's token; a wrong one learns nothing, not even whether the hook is."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    hook_id = _token_hook(request)
    right = parts_of(request).token_for(hook_id) if hook_id else ""
    if not right or not hmac.compare_digest(token.encode(), right.encode()):
        raise HeadgateError(
            "this is not the hook's token",
            place="Authorization",
            remedy="Send `Authorization: Bearer TOKEN` with the token of the hook's notice.",
            code="Unauthorized",
        )
    return await _answer(request, "token", Door.TOKEN, None)


def _token_hook(request: web.Request) -> UUID | None:
    try:
        return UUID(request.match_info["hook"])
    except ValueError:
        return None


async def _answer(request: web.Request, by: str, door: Door, project: str | None) -> web.Response:
    parts = parts_of(request)
    said = read_signal(await body_of(request))
    given = Answer(said.decision, by, door, said.reason, said.digest, said.data)
    hook = await parts.engine.answer(_hook_id(request), given, project=project)
    return answer((await documents(parts, [hook]))[0])


def read_signal(body: Mapping[str, Json]) -> Signal:
    """Raises Invalid, by name."""
    found: list[Finding] = []
    decision = body.get("decision")
    if decision in LATER:
        reason = f'"{decision}" is not available in this release'
        raise invalid("decision", reason, "Answer continue or reject.", "DecisionUnavailable")
    decisions = [one.value for one in Decision]
    if decision not in decisions:
        near = nearest(decision, decisions) if isinstance(decision, str) else ""
        found.append(
            Finding(
                "decision", f'"{decision}" is no decision', near or "Answer continue or reject."
            )
        )
    for name in body:
        if name not in Signal.model_fields:
            known = list(Signal.model_fields)
            remedy = nearest(name, known) or f"Known: {', '.join(known)}."
            found.append(Finding(name, "is not known here", remedy))
    for name in ("reason", "digest"):
        if not isinstance(body.get(name, ""), str):
            found.append(Finding(name, "must be a text", "Send a text."))
    if len(str(body.get("reason", ""))) > 4000:
        found.append(Finding("reason", "is longer than 4,000 letters", "Shorten it."))
    if found:
        raise Invalid(found)
    return Signal.model_validate(body)


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Headgate: answer a hook</title>
<meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 system-ui;max-width:36rem;margin:4rem auto;padding:0 1rem}
button{font:inherit;padding:.4rem 1.2rem;margin-right:1rem}</style>
<h1>A hook waits for your answer</h1>
<p>Nothing has been decided by opening this page.</p>
<p><label>Reason <input id="reason" size="40"></label></p>
<p><button value="continue">Continue</button><button value="reject">Reject</button></p>
<p id="said" role="status"></p>
<script>
const said = document.getElementById("said");
for (const button of document.querySelectorAll("button")) button.onclick = async () => {
  const answer = await fetch(location.pathname + "/signal", {
    method: "POST",
    headers: {"Authorization": "Bearer " + location.hash.slice(1),
              "Content-Type": "application/json"},
    body: JSON.stringify({decision: button.value, reason: document.getElementById("reason").value})
  });
  const body = await answer.json();
  said.textContent = answer.ok ? "Done: " + body.decision
    : body.error.message + ". " + (body.error.remedy || "");
};
</script></html>
"""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


async def page(_: web.Request) -> web.Response:
    """Buttons that POST; the token stays behind the #, which no server and no log is sent."""
    return web.Response(text=PAGE, content_type="text/html", headers=PAGE_HEADERS)


QUERY = {
    "state": "waiting, answered, expired or superseded",
    "stack": "of this stack, by name or id",
    "point": "at this point, such as pre-create",
    "limit": "at most so many; 100 when not said",
    "marker": "`next` of the page before",
}
ROUTES = (
    Route("GET", "/v1/{project}/hooks", listed, "The inbox", "hooks", query=QUERY),
    Route("GET", "/v1/{project}/hooks/{hook}", shown, "Show a hook", "hooks"),
    Route("POST", "/v1/{project}/hooks/{hook}/signal", signal, "Answer by right of one's role",
          "hooks", body=Signal, takes_body=True),
    Route("POST", "/hooks/{hook}/signal", signal_by_token, "Answer by right of the hook's token",
          "hooks", body=Signal, takes_body=True),
    Route("GET", "/hooks/{hook}", page, "A page with buttons that answer", "hooks",
          answer="text/html"),
)  # fmt: skip
