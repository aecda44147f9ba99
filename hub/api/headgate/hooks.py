"""Hooks: list, show, answer and hand over."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from aiohttp import web
from pydantic import Field

from channels.envelope import hook_document, notification_documents, notified_documents
from channels.store.hook_notifications import notifications_of
from channels.store.records import NotificationRecord
from engine.errors import HeadgateError, one_of
from engine.hooks.answer_rights import Automation
from engine.hooks.durations import parse_span
from engine.hooks.rule_reader import WHO
from engine.missing_objects import no_hook
from engine.principal import BY_NAME
from engine.service import Answer
from engine.store.hooks.hook_lists import HookFilter
from engine.store.records import HookRecord
from engine.words import CONFIRM, DRIFT, STACK_POINTS, AnswerChannel, HookState, Point, uuid_or_none
from hub.api.admission import count_wrong_tokens
from hub.api.all_cells import incomplete, read_all_hooks
from hub.api.app_context import BY_TOKEN, AppContext, context_of, identity_of, project_of
from hub.api.cells import CELLS, in_any_cell
from hub.api.headgate import responses
from hub.api.headgate.audit_log import entry_document
from hub.api.hook_answers import CONTINUE, MAX_REASON, Signal, answer_from, read_signal
from hub.api.openapi_components import Document
from hub.api.orchestration.documents import quote_segment
from hub.api.orchestration.request_texts import warning_document
from hub.api.query_parameters import choice, flag, limit, marker, span, text
from hub.api.request_validation import (
    Body,
    body_of,
    invalid,
    project_or_all,
    query_flag,
    query_page_size,
    query_uuid,
    read_model,
    split_page,
    uuid_of,
)
from hub.api.routes import QueryParameter, Refusal, Route, base_of, json_response
from hub.auth.roles import Right


class HandOver(Body):
    """to: user:NAME or role:NAME."""

    to: str
    note: Annotated[str, Field(max_length=MAX_REASON)] = ""


async def hook_documents(context: AppContext, hooks: Sequence[HookRecord]) -> list[Document]:
    async with context.database.connection() as conn:
        notifications = await notifications_of(conn, hooks)
    return [_document(hook, notifications.get(hook.id, [])) for hook in hooks]


def _document(hook: HookRecord, notifications: Sequence[NotificationRecord]) -> Document:
    return hook_document(
        hook,
        notifications=notification_documents(notifications),
        notified=notified_documents(notifications),
    )


async def list_hooks(request: web.Request) -> web.Response:
    context, project = context_of(request), project_or_all(request, "hooks")
    limit, stack = query_page_size(request, 100), request.query.get("stack")
    selected = HookFilter(
        state=request.query.get("state"),
        point=request.query.get("point"),
        path=request.query.get("path"),
        older=parse_span(request.query.get("older")),
        mine=_mine(request),
        me=_me(request),
        dry=query_flag(request, "dry") if "dry" in request.query else None,
        limit=limit + 1,
        marker=query_uuid(request, "marker"),
    )
    if project is None:
        return await _list_all(request, selected, limit)
    if stack:
        stack_id = (await context.engine.reads.find_stack(project, stack)).id
        selected = replace(selected, stack_id=stack_id)
    page, last = split_page(await context.engine.reads.hooks(project, selected), limit)
    return json_response(
        responses.Hooks(
            hooks=await hook_documents(context, page), next=str(last.id) if last else None
        )
    )


async def _list_all(request: web.Request, selected: HookFilter, limit: int) -> web.Response:
    """The hooks of all projects."""
    if request.query.get("stack"):
        reason = "hooks of all projects cannot be those of one stack"
        remedy = "Leave global_tenant out, and send the request to the project of the stack."
        raise invalid("stack", reason, remedy)
    base = base_of(request)

    async def describe(context: AppContext, hooks: Sequence[HookRecord]) -> list[Document]:
        documents = await hook_documents(context, hooks)
        return [
            {**document, "project": hook.project, "answer_url": _answer_url(base, hook)}
            for hook, document in zip(hooks, documents, strict=True)
        ]

    hooks, away = await read_all_hooks(request.app[CELLS], selected, describe)
    page, last = split_page(hooks, limit)
    document = responses.Hooks(hooks=[*page], next=last["id"] if last else None)
    if away:
        document["warnings"] = [warning_document(incomplete("hooks", away))]
    return json_response(document)


def _answer_url(base: str, hook: HookRecord) -> str:
    """In the project of the hook."""
    return f"{base}/{quote_segment(hook.project)}/hooks/{hook.id}/signal"


def _mine(request: web.Request) -> list[str] | None:
    """The approvers that the caller counts as, by name and by role."""
    if not query_flag(request, "mine"):
        return None
    who = identity_of(request)
    return list(who.principal.rule_names)


def _me(request: web.Request) -> list[str]:
    """The keys under which the decisions of the caller can be recorded."""
    who = identity_of(request).principal
    return [who.key, BY_NAME + who.name]


async def show(request: web.Request) -> web.Response:
    context = context_of(request)
    hook = await context.engine.reads.hook(_hook_id(request), project=project_of(request))
    return json_response((await hook_documents(context, [hook]))[0])


def _hook_id(request: web.Request) -> UUID:
    return uuid_of(request.match_info["hook"], no_hook)


async def signal(request: web.Request) -> web.Response:
    """Answer with the role of the caller."""
    return await _answer(request, answer_from(request, await body_of(request)), project_of(request))


def _read_token(request: web.Request) -> tuple[UUID, str]:
    """The ID of the hook, and the token. Raises HeadgateError."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    hook_id = uuid_or_none(request.match_info["hook"])
    if hook_id is None or not token:
        raise _not_its_token()
    return hook_id, token


async def _authenticate(token: tuple[UUID, str], context: AppContext) -> Automation:
    """The subscription that has the token. The response to a wrong token does not reveal whether
    the hook exists."""
    holder = await context.hook_tokens.holder(*token)
    if holder is None:
        raise _not_its_token()
    return holder


def _not_its_token() -> HeadgateError:
    return HeadgateError(
        "this is not the hook's token",
        place="Authorization",
        remedy="Send `Authorization: Bearer TOKEN` with the token of the hook's notification.",
        code="Unauthorized",
    )


async def signal_by_token(request: web.Request, holder: Automation) -> web.Response:
    """Answer with the hook token."""
    request[BY_TOKEN] = True
    body, address = await body_of(request), request.remote or ""
    hook_answer = read_signal(
        body, holder.principal, AnswerChannel.TOKEN, automation=holder, address=address
    )
    return await _answer(request, hook_answer, None)


async def _answer(request: web.Request, hook_answer: Answer, project: str | None) -> web.Response:
    context = context_of(request)
    hook = await context.engine.hooks.answer(_hook_id(request), hook_answer, project=project)
    if hook.state == HookState.WAITING:
        return json_response((await hook_documents(context, [hook]))[0])
    sent = await context.sent_notifications.get((hook.stack_id, hook.id)) or []
    return json_response(_document(hook, sent))


async def hand_over(request: web.Request) -> web.Response:
    """Allow a further user or role to answer."""
    body = await read_model(request, HandOver, 'Send {"to": "user:NAME"}.')
    if not WHO.fullmatch(body.to):
        raise invalid("to", f'"{body.to}" is not a user or role', "Send user:NAME or role:NAME.")
    hook_answer = answer_from(request, {**CONTINUE, "reason": body.note})
    context = context_of(request)
    hook = await context.engine.hooks.hand_over(
        _hook_id(request), hook_answer, body.to, project=project_of(request)
    )
    return json_response((await hook_documents(context, [hook]))[0])


async def list_decisions(request: web.Request) -> web.Response:
    """Approvals, hand-overs, refusals and the answer, in order."""
    context = context_of(request)
    hook = await context.engine.reads.hook(_hook_id(request), project=project_of(request))
    return json_response(
        responses.HookDecisions(
            decisions=[entry_document(one) for one in await context.engine.hooks.audit_log(hook)]
        )
    )


def _unknown_point(value: str) -> Refusal | None:
    """A point, or a glob such as pre-*."""
    known = [*(point.value for point in Point), *STACK_POINTS, DRIFT]
    if "*" in value or value.startswith(CONFIRM) or value in known:
        return None
    return f'"{value}" is not known', one_of(value, known, "Known")


QUERY = {
    "state": choice("only hooks in this state", [state.value for state in HookState]),
    "stack": text("only hooks of this stack, by name or ID, and of its nested stacks"),
    "path": text("only hooks at this path from the root stack, such as web/db or web/*"),
    "point": QueryParameter(
        "only hooks at this point, such as pre-create or pre-*", _unknown_point
    ),
    "older": span("only hooks that have been open for longer: 30m"),
    "mine": flag("true: only hooks that you may answer and have not answered"),
    "dry": flag("true: only hooks of dry-run rules; false: only others"),
    "global_tenant": flag("true: hooks of all projects, if you have a role in every project"),
    "limit": limit(100),
    "marker": marker(),
}
ROUTES = (
    Route("GET", "/v1/{project}/hooks", list_hooks, "List hooks", "hooks", query=QUERY,
          response=responses.Hooks),
    Route("GET", "/v1/{project}/hooks/{hook}", show, "Show a hook", "hooks",
          response=responses.Hook),
    Route("POST", "/v1/{project}/hooks/{hook}/signal", signal, "Answer a hook with your role",
          "hooks", body=Signal, takes_body=True, response=responses.Hook, needs=Right.ANSWER),
    Route("POST", "/v1/{project}/hooks/{hook}/hand-over", hand_over, "Hand a hook over",
          "hooks", body=HandOver, takes_body=True, response=responses.Hook, needs=Right.ANSWER),
    Route("GET", "/v1/{project}/hooks/{hook}/decisions", list_decisions, "The audit log of a hook",
          "hooks", response=responses.HookDecisions),
    Route("POST", "/hooks/{hook}/signal",
          count_wrong_tokens(in_any_cell(_read_token, _authenticate, signal_by_token)),
          "Answer a hook with its token", "hooks", body=Signal,
          takes_body=True, response=responses.Hook),
)  # fmt: skip
