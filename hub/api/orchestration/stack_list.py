"""The list of stacks, with filters, order and pages."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from aiohttp import web

from engine.store.stacks.stack_lists import StackFilter, StackPage
from engine.words import uuid_or_none
from hub.api.all_cells import incomplete, read_all_stacks
from hub.api.app_context import context_of
from hub.api.cells import CELLS
from hub.api.orchestration import documents, responses
from hub.api.orchestration.request_texts import warning_document
from hub.api.request_validation import (
    invalid,
    project_or_all,
    query_descending,
    query_flag,
    query_flags,
    query_limit,
    query_list,
    query_uuid,
)
from hub.api.routes import Route, base_of, json_response, origin_of

#: Stacks with all of the tags, with any, without all, without any.
TAG_FILTERS = ("tags", "tags_any", "not_tags", "not_tags_any")
#: Sort keys of the API, and aliases that clients use.
SORT_KEYS: Mapping[str, str] = {
    "stack_name": "stack_name", "name": "stack_name",
    "stack_status": "stack_status", "status": "stack_status",
    "creation_time": "creation_time", "created_at": "creation_time",
    "updated_time": "updated_time", "updated_at": "updated_time",
}  # fmt: skip


async def list_stacks(request: web.Request) -> web.Response:
    base, selected = base_of(request), _filter(request)
    project = project_or_all(request, "stacks")
    if project is None:
        return await _list_all(request, selected, base)
    page = await context_of(request).engine.reads.list_stacks(project, selected)
    document: responses.Stacks
    document = {"stacks": [documents.stack_summary(one, base) for one in page.stacks]}
    _add_page(document, request, selected, page)
    return json_response(document)


async def _list_all(request: web.Request, selected: StackFilter, base: str) -> web.Response:
    """The stacks of all projects."""
    page, away = await read_all_stacks(request.app[CELLS], selected)
    stacks: list[responses.StackOfProject] = [
        {**documents.stack_summary(one, base), "project": one.project} for one in page.stacks
    ]
    document: responses.Stacks = {"stacks": stacks}
    _add_page(document, request, selected, page)
    if away:
        document["warnings"] = [warning_document(incomplete("stacks", away))]
    return json_response(document)


def _add_page(
    document: responses.Stacks, request: web.Request, selected: StackFilter, page: StackPage
) -> None:
    if selected.limit and len(page.stacks) == selected.limit:
        following = request.rel_url.update_query(marker=str(page.stacks[-1].id))
        document["links"] = [documents.link(f"{origin_of(request)}{following}", "next")]
    if page.total is not None:
        document["count"] = page.total


def _filter(request: web.Request) -> StackFilter:
    tags = {name: query_list(request, name) or None for name in TAG_FILTERS}
    if not query_flag(request, "show_hidden"):
        hidden = context_of(request).settings.server.hidden_stack_tags
        tags["not_tags_any"] = [*(tags["not_tags_any"] or ()), *hidden] or None
    return StackFilter(
        names=_texts(request, "name", "stack_name"),
        ids=_ids(request, "id"),
        statuses=_texts(request, "status", "stack_status", upper=True),
        actions=_texts(request, "action", "stack_action", upper=True),
        owners=_texts(request, "username", "stack_owner"),
        # Heat has a second project for the users of a stack; here it is the same.
        projects=_texts(request, "tenant", "project", "stack_user_project_id"),
        disable_rollback=query_flags(request, "disable_rollback"),
        timeout_mins=_minutes(request),
        reasons=_texts(request, "stack_status_reason"),
        parents=_ids(request, "owner_id", "parent"),
        tags=tags["tags"],
        tags_any=tags["tags_any"],
        not_tags=tags["not_tags"],
        not_tags_any=tags["not_tags_any"],
        show_deleted=query_flag(request, "show_deleted"),
        show_nested=query_flag(request, "show_nested"),
        sort_keys=_sort_keys(request),
        descending=query_descending(request, default=True),
        marker=query_uuid(request, "marker"),
        limit=query_limit(request, default=None),
        counted=query_flag(request, "with_count"),
    )


def _texts(request: web.Request, *names: str, upper: bool = False) -> list[str] | None:
    """The values of all parameters with these names; None without any."""
    texts = [text for name in names for text in request.query.getall(name, [])]
    return [text.upper() if upper else text for text in texts] or None


def _sort_keys(request: web.Request) -> Sequence[str]:
    keys = query_list(request, "sort_keys") or ["creation_time"]
    for key in keys:
        if key not in SORT_KEYS:
            raise invalid("sort_keys", f'"{key}" is not known', f"Known: {', '.join(SORT_KEYS)}.")
    return list(dict.fromkeys(SORT_KEYS[key] for key in keys))


def _ids(request: web.Request, *names: str) -> Sequence[UUID] | None:
    """Invalid IDs match no stack."""
    texts = _texts(request, *names)
    if texts is None:
        return None
    ids = map(uuid_or_none, texts)
    return [one for one in ids if one is not None]


def _minutes(request: web.Request) -> Sequence[int] | None:
    texts = request.query.getall("timeout_mins", None)
    if texts is None:
        return None
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise invalid("timeout_mins", f'"{text}" is not a number of minutes', "Send 1 or more.")
    return [int(text) for text in texts]


LIST_QUERY = {
    "limit": "maximum number of items",
    "marker": "the last stack of the previous page",
    "sort_keys": "comma separated, of " + ", ".join(SORT_KEYS),
    "sort_dir": "asc or desc",
    "name": "only this name; repeatable; stack_name is an alias",
    "status": "only in this status, such as COMPLETE or CREATE_COMPLETE; repeatable; stack_status"
    " is an alias",
    "action": "only in this action; repeatable; stack_action is an alias",
    "id": "only this ID; repeatable",
    "tags": "only stacks with all of these tags, comma separated",
    "tags_any": "only stacks with one of these tags, comma separated",
    "not_tags": "only stacks without all of these tags",
    "not_tags_any": "only stacks without any of these tags",
    "username": "only of this owner; repeatable; stack_owner is an alias",
    "tenant": "only of this project; repeatable; project and stack_user_project_id are aliases",
    "disable_rollback": "only stacks with this value, true or false; repeatable",
    "timeout_mins": "only with this timeout; repeatable",
    "stack_status_reason": "only with exactly this reason; repeatable",
    "owner_id": "only nested stacks with this parent stack; repeatable; parent is an alias",
    "show_deleted": "true: include deleted stacks",
    "show_nested": "true: include nested stacks",
    "show_hidden": "true: include stacks with a tag that the operator hides",
    "global_tenant": "true: stacks of all projects, if you have a role in every project",
    "with_count": "true: include the number of all stacks that match",
}
ROUTES = tuple(
    Route("GET", f"/v1/{{project}}/stacks{rest}", list_stacks, "List stacks", "stacks",
          query=LIST_QUERY, response=responses.Stacks)
    for rest in ("", "/detail")
)  # fmt: skip
