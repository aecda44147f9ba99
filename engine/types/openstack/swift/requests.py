"""The requests of Swift about containers. The metadata of a container are headers.

Swift has no request that creates a container only if it does not exist. `create_container`
therefore sends nothing but a mark, and reads from the response whether it has created one.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import orjson

from engine.types.http_client import Response
from engine.types.openstack.cloud import MAX_PAGES, Query, Session, segment
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import OBJECT_STORE
from engine.types.openstack.swift.metadata import remover
from engine.types.text_cleaning import replace_nul
from engine.words import Json

#: Headers by which a repeated create finds its container begin with this.
MARK: Final = "X-Container-Meta-Headgate-Operation-"
#: The status of a PUT that has created the container; of one that has found it, it is 202.
CREATED: Final = 201
FORBIDDEN: Final = 403
PRECONDITION_FAILED: Final = 412
#: Containers of a page of a list, and objects.
PAGE, OBJECT_PAGE = 1_000, 10_000
#: The media type of uploads.
BYTES: Final = "application/octet-stream"
#: Objects that one call deletes, and how many of them at the same time.
PURGED, PARALLEL = 200, 8
#: Headers of a response that say nothing about the container.
_OF_RESPONSE: Final = frozenset(
    {
        "connection", "content-length", "content-type", "date", "keep-alive", "server",
        "transfer-encoding", "vary", "x-openstack-request-id", "x-trans-id",
    }
)  # fmt: skip
#: The ID of a project at the end of the URL of its account.
_PROJECT_ID = re.compile(r"([0-9a-f]{32}|[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12})$")


def mark_of(operation: UUID | str) -> str:
    """The header that marks the container of an operation."""
    return f"{MARK}{UUID(str(operation)).hex}"


def is_marked(headers: Mapping[str, Json], operations: Collection[UUID | str]) -> bool:
    """Whether one of these operations has created the container."""
    return any(mark_of(one).lower() in headers for one in operations)


def account_url(endpoint: str, project: str) -> str:
    """The URL of a project's account, from that of another project. Raises CloudError."""
    url, count = _PROJECT_ID.subn(project, endpoint)
    if not count:
        reason = "the endpoint of Swift does not end with the ID of a project"
        raise CloudError(f"{reason}: {endpoint}", public=reason)
    return url


async def find_container(session: Session, name: str, account: str = "") -> dict[str, Json] | None:
    """The headers of a container, by lower-case name; None if it does not exist. account: the URL
    of another project's."""
    doing = "read the container"
    try:
        response = await _send(session, "HEAD", f"/{segment(name)}", doing, account=account)
    except CloudError as error:
        if error.is_missing:
            return None
        raise
    return {
        key: _readable(value) for key, value in response.headers.items() if key not in _OF_RESPONSE
    }


async def create_container(session: Session, name: str, operation: UUID) -> bool:
    """Create a container that has nothing but the mark. False: it exists, and stays as it is."""
    path, mark, doing = f"/{segment(name)}", mark_of(operation), "create the container"
    try:
        response = await _send(session, "PUT", path, doing, {mark: "created"})
    except CloudError as error:
        if not error.is_missing:
            raise
        public = "Swift has no account for the project"
        remedy = "The operator has to create it, or to set account_autocreate."
        raise CloudError(f"{public}. {remedy}", public=public) from None
    if response.status == CREATED:
        return True
    await _send(session, "POST", path, doing, {remover(mark): "x"})
    return False


async def write_headers(session: Session, name: str | None, headers: Mapping[str, str]) -> bool:
    """Set headers of a container, or of the account without a name. Others stay. False: it does not
    exist."""
    path = "" if name is None else f"/{segment(name)}"
    what = "account of the project" if name is None else "container"
    try:
        await _send(session, "POST", path, f"change the {what}", headers)
    except CloudError as error:
        if error.is_missing:
            return False
        raise
    return True


async def remove_container(session: Session, name: str) -> bool:
    """Delete a container. False: Swift refuses it, because the container has objects."""
    try:
        await _send(session, "DELETE", f"/{segment(name)}", "delete the container")
    except CloudError as error:
        if error.status == CONFLICT:
            return False
        if not error.is_missing:
            raise
    return True


async def put_container(
    session: Session, name: str, headers: Mapping[str, str] | None = None
) -> None:
    """Create a container of Headgate's own, or set headers of it. Others stay."""
    await _send(session, "PUT", f"/{segment(name)}", "create the container", headers)


async def put_object(
    session: Session, container: str, name: str, content: bytes, *, new: bool = False
) -> bool:
    """Upload an object. new: only if it does not exist. False: the container does not exist."""
    only_new = {"If-None-Match": "*"} if new else {}
    path, doing = f"/{segment(container)}/{segment(name)}", "upload the object"
    try:
        await _send(session, "PUT", path, doing, only_new, content=content)
    except CloudError as error:
        if error.is_missing:
            return False
        if not (new and error.status == PRECONDITION_FAILED):
            raise
    return True


@dataclass(frozen=True, slots=True)
class StoredObject:
    timestamp: float
    content: bytes = field(repr=False)


async def head_object(session: Session, container: str, name: str) -> dict[str, str] | None:
    """The headers of an object, as all replicas together have them; None if it does not exist."""
    path, newest = f"/{segment(container)}/{segment(name)}", {"X-Newest": "true"}
    try:
        response = await _send(session, "HEAD", path, "read the object", newest)
    except CloudError as error:
        if error.is_missing:
            return None
        raise
    return dict(response.headers)


async def read_object(session: Session, container: str, name: str) -> StoredObject | None:
    """An object, as all replicas together have it; None if it does not exist."""
    path, newest = f"/{segment(container)}/{segment(name)}", {"X-Newest": "true"}
    try:
        response = await _send(session, "GET", path, "read the object", newest)
    except CloudError as error:
        if error.is_missing:
            return None
        raise
    return StoredObject(timestamp_of(response.headers), response.body)


def timestamp_of(headers: Mapping[str, str]) -> float:
    """When an object was uploaded, in seconds since 1970."""
    text = headers.get("x-timestamp", "")
    return float(text) if text.replace(".", "", 1).isdecimal() else 0.0


async def remove_object(session: Session, container: str, name: str) -> None:
    """Delete an object, unless it does not exist."""
    path = f"/{segment(container)}/{segment(name)}"
    try:
        await _send(session, "DELETE", path, "delete the object")
    except CloudError as error:
        if not error.is_missing:
            raise


async def list_objects(
    session: Session, container: str, prefix: str, account: str = "", most: int | None = None
) -> list[Mapping[str, Json]]:
    """The objects of a container whose names begin with a prefix, with `name` and `bytes`; empty
    if it does not exist. account: the URL of another project's. most: how many of them at most, by
    name; None: all."""
    found: list[Mapping[str, Json]] = []
    size = OBJECT_PAGE if most is None else min(most, OBJECT_PAGE)
    query = {"prefix": prefix, "format": "json", "limit": str(size)}
    path, doing = f"/{segment(container)}", "list the objects"
    for _ in range(MAX_PAGES):
        marker = {"marker": str(found[-1]["name"])} if found else {}
        try:
            response = await _send(
                session, "GET", path, doing, query={**query, **marker}, account=account
            )
        except CloudError as error:
            if error.is_missing:
                return found
            raise
        page = _objects_of(response, doing)
        found += page
        if len(page) < size or (most is not None and len(found) >= most):
            return found[:most]
    raise CloudError(f"{OBJECT_STORE.name}: the list of objects has more than {MAX_PAGES} pages")


def _objects_of(response: Response, doing: str) -> list[Mapping[str, Json]]:
    try:
        found = orjson.loads(response.body or b"[]")
        return [{"name": one["name"], "bytes": one["bytes"]} for one in found]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        reason = f"{OBJECT_STORE.name} answered the request to {doing} without names"
        raise CloudError(reason, public=reason) from None


async def remove_objects(session: Session, name: str) -> int:
    """Delete the first objects of a container; return how many were deleted."""
    path = f"/{segment(name)}"
    try:
        names = await _list(session, path, "list the objects", {}, PURGED)
    except CloudError as error:
        if error.is_missing:
            return 0
        raise
    limit = asyncio.Semaphore(PARALLEL)

    async def remove(one: str) -> CloudError | None:
        async with limit:
            try:
                await _send(session, "DELETE", f"{path}/{segment(one)}", "delete an object")
            except CloudError as error:
                return error
            return None

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(remove(one)) for one in names]
    failures = [one for task in tasks if (one := task.result()) is not None]
    for one in failures:
        if not one.is_missing:
            raise one
    return len(names) - len(failures)


async def list_containers(
    session: Session, prefix: str, account: str
) -> AsyncIterator[Sequence[str]]:
    """Yield the names of an account's containers that begin with a prefix, page by page."""
    marker = ""
    for _ in range(MAX_PAGES):
        query = {"prefix": prefix, "marker": marker}
        names = await _list(session, "", "list the containers", query, PAGE, account)
        yield names
        if len(names) < PAGE:
            return
        marker = names[-1]
    raise CloudError(f"{OBJECT_STORE.name}: the list of containers has more than {MAX_PAGES} pages")


async def _list(
    session: Session,
    path: str,
    doing: str,
    query: Mapping[str, str],
    limit: int,
    account: str = "",
) -> list[str]:
    """The names of one page of a list."""
    page = {**query, "format": "json", "limit": str(limit)}
    response = await _send(session, "GET", path, doing, query=page, account=account)
    try:
        found = orjson.loads(response.body or b"[]")
        return [one["name"] for one in found]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        reason = f"{OBJECT_STORE.name} answered the request to {doing} without names"
        raise CloudError(reason, public=reason) from None


async def _send(
    session: Session,
    method: str,
    path: str,
    doing: str,
    headers: Mapping[str, str] | None = None,
    query: Query | None = None,
    account: str = "",
    content: bytes | None = None,
) -> Response:
    try:
        return await session.send(
            OBJECT_STORE, method, path, doing, content, query, "", BYTES, headers, account
        )
    except CloudError as error:
        if error.status != FORBIDDEN:
            raise
        remedy = "The user needs a role that Swift's operator_roles name, such as member."
        raise CloudError(
            f"{error}. {remedy}", status=FORBIDDEN, public=error.public, message=error.message
        ) from None


def _readable(value: str) -> Json:
    """A header as text: bytes that are not UTF-8 are replaced."""
    return replace_nul(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
