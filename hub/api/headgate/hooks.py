"""The inbox of everything that waits, and the ways to answer."""

from datetime import timedelta
from uuid import UUID

from aiohttp import web

from channels.envelope import hook_document, notification_documents, notified_documents
from channels.store.hook_notifications import notifications_of
from engine.errors import HeadgateError, nearest
from engine.hooks.durations import parse_span
from engine.hooks.rule_reader import WHO
from engine.principal import BY_NAME
from engine.service import Answer
from engine.store.records import HookRecord
from engine.store.stack_queries import HookFilter
from engine.words import CONFIRM, STACK_POINTS, Decision, Door, HookState, Point
from hub.api.admission import guarded
from hub.api.headgate import responses
from hub.api.headgate.trail import entry_document
from hub.api.openapi_components import Document
from hub.api.parts import (
    BY_TOKEN,
    Parts,
    Route,
    answer,
    body_of,
    identity_of,
    invalid,
    parts_of,
    project_of,
    query_flag,
    query_limit,
    query_uuid,
    uuid_of,
)
from hub.api.signals import LONGEST_REASON, AnswerBody, Signal, answer_from, read_signal
from hub.auth.roles import Right


async def documents(parts: Parts, hooks: list[HookRecord]) -> list[Document]:
    async with parts.database.connection() as conn:
        notices = await notifications_of(conn, hooks)
    return [
        hook_document(
            hook,
            notifications=notification_documents(notices.get(hook.id, [])),
            notified=notified_documents(notices.get(hook.id, [])),
        )
        for hook in hooks
    ]


async def listed(request: web.Request) -> web.Response:
    parts, project = parts_of(request), project_of(request)
    limit = query_limit(request, default=100) or 100
    stack = request.query.get("stack")
    stack_id = (await parts.engine.reads.find_stack(project, stack)).id if stack else None
    hooks = await parts.engine.reads.hooks(
        project,
        HookFilter(
            state=_one_of(request, "state", [state.value for state in HookState]),
            stack_id=stack_id,
            point=_point(request),
            path=request.query.get("path"),
            older=_older(request),
            mine=_mine(request),
            me=_me(request),
            dry=query_flag(request, "dry") if "dry" in request.query else None,
            limit=limit + 1,
            marker=query_uuid(request, "marker"),
        ),
    )
    more = len(hooks) > limit
    return answer(
        responses.Hooks(
            hooks=await documents(parts, hooks[:limit]),
            next=str(hooks[limit - 1].id) if more else None,
        )
    )


def _one_of(request: web.Request, name: str, known: list[str]) -> str | None:
    value = request.query.get(name)
    if value is not None and value not in known:
        remedy = nearest(value, known) or f"Known: {', '.join(known)}."
        raise invalid(name, f'"{value}" is not known', remedy)
    return value


def _point(request: web.Request) -> str | None:
    """A point, or a glob such as pre-*."""
    said = request.query.get("point")
    if said is None or "*" in said or said.startswith(CONFIRM):
        return said
    return _one_of(request, "point", [*(point.value for point in Point), *STACK_POINTS])


def _older(request: web.Request) -> timedelta | None:
    said = request.query.get("older")
    older = parse_span(said) if said is not None else None
    if said is not None and older is None:
        raise invalid("older", f'"{said}" is not a valid time', "Send 90s, 30m, 2h or 1d.")
    return older


def _mine(request: web.Request) -> list[str] | None:
    """What is asked of whoever asks: by their name, or by a role of theirs."""
    if not query_flag(request, "mine"):
        return None
    who = identity_of(request)
    return list(who.principal.written)


def _me(request: web.Request) -> list[str]:
    """The keys under which decisions of the user may be recorded."""
    who = identity_of(request).principal
    return [who.key, BY_NAME + who.name]


async def shown(request: web.Request) -> web.Response:
    parts = parts_of(request)
    hook = await parts.engine.reads.hook(_hook_id(request), project=project_of(request))
    return answer((await documents(parts, [hook]))[0])


def _hook_id(request: web.Request) -> UUID:
    return uuid_of(request.match_info["hook"], "hook", "HookNotFound")


async def signal(request: web.Request) -> web.Response:
    """By right of one's role."""
    said = read_signal(await body_of(request))
    return await _answer(request, answer_from(request, said), project_of(request))


async def signal_by_token(request: web.Request) -> web.Response:
    """By right of the hook's token; a wrong one learns nothing, not even whether the hook is."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    hook_id = _token_hook(request)
    holder = await parts_of(request).answerers.holder(hook_id, token) if hook_id else None
    if holder is None:
        raise HeadgateError(
            "this is not the hook's token",
            place="Authorization",
            remedy="Send `Authorization: Bearer TOKEN` with the token of the hook's notice.",
            code="Unauthorized",
        )
    request[BY_TOKEN] = True
    said = read_signal(await body_of(request))
    given = said.by(holder.principal, Door.TOKEN, automation=holder, address=request.remote or "")
    return await _answer(request, given, None)


def _token_hook(request: web.Request) -> UUID | None:
    try:
        return UUID(request.match_info["hook"])
    except ValueError:
        return None


async def _answer(request: web.Request, given: Answer, project: str | None) -> web.Response:
    parts = parts_of(request)
    hook = await parts.engine.hooks.answer(_hook_id(request), given, project=project)
    return answer((await documents(parts, [hook]))[0])


async def hand_over(request: web.Request) -> web.Response:
    """`to`: user:NAME or role:NAME, who may answer from now on; `note` goes with it."""
    body = await body_of(request)
    to, note = body.get("to"), body.get("note", "")
    if not isinstance(to, str) or not WHO.fullmatch(to):
        raise invalid("to", f'"{to}" is not a user or role', "Send user:NAME or role:NAME.")
    if not isinstance(note, str) or len(note) > LONGEST_REASON or set(body) - {"to", "note"}:
        raise invalid("note", "must be a string, and is allowed only beside `to`", "Shorten it.")
    given = answer_from(request, AnswerBody(Decision.CONTINUE, reason=note))
    parts = parts_of(request)
    hook = await parts.engine.hooks.hand_over(
        _hook_id(request), given, to, project=project_of(request)
    )
    return answer((await documents(parts, [hook]))[0])


async def trail(request: web.Request) -> web.Response:
    """Everything that was said to a hook, in order: approvals, hand-overs, refusals, the answer."""
    parts = parts_of(request)
    hook = await parts.engine.reads.hook(_hook_id(request), project=project_of(request))
    return answer(
        responses.HookDecisions(
            decisions=[entry_document(one) for one in await parts.engine.hooks.audit_log(hook)]
        )
    )


QUERY = {
    "state": "waiting, answered, expired or superseded",
    "stack": "of this stack and of stacks inside, by name or id",
    "path": "of resources at this path from the outermost stack, such as web/db or web/*",
    "point": "at this point, such as pre-create or pre-*",
    "older": "open for longer than this: 30m",
    "mine": "true: only those that you may answer, and have not",
    "dry": "true: only those of rules that are tried out; false: only others",
    "limit": "maximum number of items; default 100",
    "marker": "`next` of the page before",
}
ROUTES = (
    Route("GET", "/v1/{project}/hooks", listed, "The inbox", "hooks", query=QUERY,
          response=responses.Hooks),
    Route("GET", "/v1/{project}/hooks/{hook}", shown, "Show a hook", "hooks",
          response=responses.Hook),
    Route("POST", "/v1/{project}/hooks/{hook}/signal", signal, "Answer a hook with your role",
          "hooks", body=Signal, takes_body=True, response=responses.Hook, needs=Right.ANSWER),
    Route("POST", "/v1/{project}/hooks/{hook}/hand-over", hand_over, "Hand a hook over",
          "hooks", takes_body=True, response=responses.Hook, needs=Right.ANSWER),
    Route("GET", "/v1/{project}/hooks/{hook}/decisions", trail, "The answers to a hook",
          "hooks", response=responses.HookDecisions),
    Route("POST", "/hooks/{hook}/signal", guarded(signal_by_token),
          "Answer by right of the hook's token", "hooks", body=Signal,
          takes_body=True, response=responses.Hook),
)  # fmt: skip
