"""Lists of stacks: filtered, sorted, and a page at a time."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from aiohttp import web

from engine.store.stack_lists import StackFilter
from hub.api.addresses import base_of, origin_of
from hub.api.orchestration import responses, show
from hub.api.parts import (
    Route,
    answer,
    asked_project,
    invalid,
    parts_of,
    query_descending,
    query_flag,
    query_flags,
    query_limit,
    query_list,
    query_uuid,
    uuid_or_none,
)

#: Stacks with all of these tags, one of these, not all of these, none of these.
TAG_FILTERS = ("tags", "tags_any", "not_tags", "not_tags_any")
#: Words for the order: those of the API, and those that some clients say instead.
SORT_KEYS: Mapping[str, str] = {
    "stack_name": "stack_name", "name": "stack_name",
    "stack_status": "stack_status", "status": "stack_status",
    "creation_time": "creation_time", "created_at": "creation_time",
    "updated_time": "updated_time", "updated_at": "updated_time",
}  # fmt: skip


async def listed(request: web.Request) -> web.Response:
    base, wanted, project = base_of(request), _filter(request), asked_project(request, "stacks")
    found = await parts_of(request).engine.reads.list_stacks(project, wanted)
    shown: responses.Stacks
    if project is not None:
        shown = {"stacks": [show.stack_summary(one, base) for one in found.stacks]}
    else:
        stacks: list[responses.StackOfProject] = [
            {**show.stack_summary(one, base), "project": one.project} for one in found.stacks
        ]
        shown = {"stacks": stacks}
    if wanted.limit and len(found.stacks) == wanted.limit:
        following = request.rel_url.update_query(marker=str(found.stacks[-1].id))
        shown["links"] = [show.link(f"{origin_of(request)}{following}", "next")]
    if found.total is not None:
        shown["count"] = found.total
    return answer(shown)


def _filter(request: web.Request) -> StackFilter:
    tags = {name: query_list(request, name) or None for name in TAG_FILTERS}
    if not query_flag(request, "show_hidden"):
        hidden = parts_of(request).settings.server.hidden_stack_tags
        tags["not_tags_any"] = [*(tags["not_tags_any"] or ()), *hidden] or None
    return StackFilter(
        names=_said(request, "name", "stack_name"),
        ids=_ids(request, "id"),
        statuses=_said(request, "status", "stack_status", upper=True),
        actions=_said(request, "action", "stack_action", upper=True),
        owners=_said(request, "username", "stack_owner"),
        # A stack has no project of users beside its own.
        projects=_said(request, "tenant", "project", "stack_user_project_id"),
        disable_rollback=query_flags(request, "disable_rollback"),
        timeout_mins=_minutes(request),
        reasons=_said(request, "stack_status_reason"),
        parents=_ids(request, "owner_id", "parent"),
        **tags,
        show_deleted=query_flag(request, "show_deleted"),
        show_nested=query_flag(request, "show_nested"),
        sort_keys=_sort_keys(request),
        descending=query_descending(request, default=True),
        marker=query_uuid(request, "marker"),
        limit=query_limit(request, default=None),
        counted=query_flag(request, "with_count"),
    )


def _said(request: web.Request, *names: str, upper: bool = False) -> list[str] | None:
    """All that is said under any of these names; None when nothing is."""
    texts = [text for name in names for text in request.query.getall(name, [])]
    return [text.upper() if upper else text for text in texts] or None


def _sort_keys(request: web.Request) -> Sequence[str]:
    keys = query_list(request, "sort_keys") or ["creation_time"]
    for key in keys:
        if key not in SORT_KEYS:
            raise invalid("sort_keys", f'"{key}" is not known', f"Known: {', '.join(SORT_KEYS)}.")
    return list(dict.fromkeys(SORT_KEYS[key] for key in keys))


def _ids(request: web.Request, *names: str) -> Sequence[UUID] | None:
    """What is no id is the id of no stack."""
    texts = _said(request, *names)
    if texts is None:
        return None
    found = (uuid_or_none(text) for text in texts)
    return [one for one in found if one is not None]


def _minutes(request: web.Request) -> Sequence[int] | None:
    texts = request.query.getall("timeout_mins", None)
    if texts is None:
        return None
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise invalid("timeout_mins", f'"{text}" is not a number of minutes', "Send 1 or more.")
    return [int(text) for text in texts]


LIST_QUERY = {
    "limit": "at most so many",
    "marker": "the last stack of the page before",
    "sort_keys": "comma separated, of " + ", ".join(SORT_KEYS),
    "sort_dir": "asc or desc",
    "name": "only of this name; may repeat; stack_name is the same",
    "status": "only in this status, such as COMPLETE or CREATE_COMPLETE; may repeat; stack_status"
    " is the same",
    "action": "only in this action; may repeat; stack_action is the same",
    "id": "only of this id; may repeat",
    "tags": "only with all of these, comma separated",
    "tags_any": "only stacks with one of these tags, comma separated",
    "not_tags": "only those that do not have all of these",
    "not_tags_any": "only stacks without any of these tags",
    "username": "only of this owner; may repeat; stack_owner is the same",
    "tenant": "only of this project; may repeat; project and stack_user_project_id are the same",
    "disable_rollback": "true or false: only those that say so; may repeat",
    "timeout_mins": "only with this limit of time; may repeat",
    "stack_status_reason": "only with this reason, whole; may repeat",
    "owner_id": "only those right inside this stack; may repeat; parent is the same",
    "show_deleted": "true: include deleted stacks",
    "show_nested": "true: those inside others, too",
    "show_hidden": "true: those with a tag that the operator hides, too",
    "global_tenant": "true: of every project, for those who may",
    "with_count": "true: the number of all that match, too",
}
ROUTES = tuple(
    Route("GET", f"/v1/{{project}}/stacks{rest}", listed, "List stacks", "stacks",
          query=LIST_QUERY, response=responses.Stacks)
    for rest in ("", "/detail")
)  # fmt: skip
