"""Signals that servers upload to Swift with a temporary URL.

Each object has a container of its own, of the same name, with a key of its own: when the container
is deleted, its URL is invalid. Swift moves what an upload replaces into the project's container
`SIGNALS`, as a version, so that later signals do not replace earlier ones, and one list of that
container shows which objects have received how many signals. The first version is the placeholder
with which the object was created. `SIGNALS` also has an empty entry for each object: Swift refuses
to delete a container that is not empty, so the last object's end deletes it.
"""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Mapping
from datetime import datetime
from itertools import accumulate
from typing import Any, Final

from engine.ttl_cache import TtlCache
from engine.types.completion import ObjectsUnknown
from engine.types.contract import Call
from engine.types.object_signals import (
    MAX_BYTES,
    PREFIX,
    SignalObject,
    Uploads,
    number_of,
    object_name,
    object_of,
    resource_prefix,
)
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import OBJECT_STORE
from engine.types.openstack.swift.metadata import remover
from engine.types.openstack.swift.requests import (
    PARALLEL,
    account_url,
    head_object,
    list_containers,
    list_objects,
    put_container,
    put_object,
    read_object,
    remove_container,
    remove_object,
    timestamp_of,
    write_headers,
)
from engine.types.openstack.swift.temporary_url import KEY_HEADER, derive_key, sign_url
from engine.words import Json

#: The container of a project with what uploads have replaced, and with the entries.
SIGNALS: Final = "headgate-signals"
#: The content of an object until the first upload.
PLACEHOLDER: Final = b"headgate: no signal yet"
VERSIONS_HEADER: Final = "X-Versions-Location"
PRECONDITION_FAILED: Final = 412
#: How often a create begins again because another resource's end has deleted `SIGNALS`, and how
#: often a delete because a server has uploaded one more signal.
MAX_TRIES: Final = 5
#: Seconds for which a process keeps the content of a version.
KEPT_SECONDS: Final = 600.0
#: Signals of one object that the observer tells apart: as many as a condition can wait for.
MAX_SIGNALS: Final = 1_000
#: Bytes of the signals of one object that a read returns.
MAX_TOTAL_BYTES: Final = 4_194_304
_REMEDY: Final = "Check what uploads to the URL, and replace the resource that has it."


class SwiftSignals:
    """Implements `ObjectSignals`. max_signals: of one object that a read returns."""

    def __init__(self, cloud: Cloud, max_signals: int = MAX_SIGNALS) -> None:
        self._cloud = cloud
        self._max_signals = max_signals
        self._versions: TtlCache[str, bytes] = TtlCache(max_entries=MAX_SIGNALS)

    @property
    def service(self) -> str:
        return OBJECT_STORE.name

    @property
    def needs_credential(self) -> bool:
        return True

    @property
    def has_observer(self) -> bool:
        return self._cloud.has_reader

    @property
    def endpoint(self) -> str:
        return OBJECT_STORE.name

    async def is_available(self, call: Call) -> bool:
        session = self._cloud.session(call)
        return await session.find_endpoint(OBJECT_STORE, "find Swift") is not None

    async def create(self, call: Call) -> SignalObject:
        session, name = self._cloud.session(call), object_name(call)
        key = derive_key(call.signal_url.token, name)
        for _ in range(MAX_TRIES):
            await put_container(session, SIGNALS)
            if not await put_object(session, SIGNALS, name, b""):
                continue
            await _create_container(session, name, key)
            created = await put_object(session, name, name, PLACEHOLDER, new=True)
            # The entry protects SIGNALS from now on; it may have been deleted before.
            if created and await head_object(session, SIGNALS, name) is not None:
                root = await session.endpoint(OBJECT_STORE, "create the temporary URL")
                return SignalObject(name, sign_url("PUT", f"{root}/{name}/{name}", key))
        reason = "the container of the signals is deleted again and again"
        raise CloudError(reason, retry=True, public=reason)

    async def read(self, call: Call, name: str) -> Uploads:
        """The newest first, then what was before it: an upload in between is read later."""
        session = self._cloud.session(call)
        newest = await self._read_newest(session, name)
        if newest is None:
            return Uploads()
        timestamp, content = newest
        listed = await list_objects(
            session, SIGNALS, _version_prefix(name), most=self._max_signals + 2
        )
        older = {
            str(one["name"]): int(one["bytes"])
            for one in listed
            if _time_of(one["name"]) < timestamp
        }
        versions, excess = self._oldest(older, len(content or b""))
        limit = asyncio.Semaphore(PARALLEL)

        async def read_older(version: str) -> bytes | None:
            async with limit:
                return await self._read_version(session, version, older[version], call.now)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_caught(read_older(one))) for one in versions]
        contents: list[bytes | None] = []
        for task in tasks:
            found = task.result()
            if isinstance(found, CloudError):
                raise found
            contents.append(found)
        if not excess:
            contents.append(content)
        return Uploads([one for one in contents if one != PLACEHOLDER], excess)

    def _oldest(self, older: Mapping[str, int], newest: int) -> tuple[list[str], str]:
        """(versions to read, `Uploads.excess`). older: the sizes by version. newest: the size of
        what was uploaded last, which is not read beyond a limit. The placeholder does not count."""
        versions = sorted(older)
        readable = (size if size <= MAX_BYTES else 0 for size in map(older.__getitem__, versions))
        totals = list(accumulate((*readable, newest)))
        fitting = bisect_right(totals, MAX_TOTAL_BYTES)
        if min(fitting, self._max_signals + 1) == len(totals):
            return versions, ""
        if fitting <= self._max_signals:
            why = f"more than {MAX_TOTAL_BYTES} bytes of signals were uploaded"
            return versions[:fitting], f"{why}, of which only the oldest count. {_REMEDY}"
        why = f"more than {self._max_signals} signals were uploaded"
        raises = "The operator can raise signals_per_resource in [quotas]."
        oldest = versions[: self._max_signals + 1]
        return oldest, f"{why}, of which only the oldest count. {_REMEDY} {raises}"

    async def _read_newest(self, session: Session, name: str) -> tuple[float, bytes | None] | None:
        """(time of the upload, content) of what was uploaded last; None: the object does not
        exist."""
        headers = await head_object(session, name, name)
        if headers is None:
            return None
        if int(headers.get("content-length", "0")) > MAX_BYTES:
            return timestamp_of(headers), None
        found = await read_object(session, name, name)
        if found is None:
            return None
        # It may be a later upload than the one whose size is known.
        return found.timestamp, found.content if len(found.content) <= MAX_BYTES else None

    async def _read_version(
        self, session: Session, version: str, size: int, now: datetime
    ) -> bytes | None:
        """A version never changes, so that each is read once by a process."""
        if size > MAX_BYTES:
            return None
        if (known := self._versions.get(version, now.timestamp())) is not None:
            return known
        found = await read_object(session, SIGNALS, version)
        if found is None:
            return PLACEHOLDER  # it is being deleted
        self._versions.keep(version, found.content, now.timestamp() + KEPT_SECONDS)
        return found.content

    async def remove(self, call: Call, *, keep: str = "") -> None:
        """Also objects that an interrupted create has made: their containers are listed."""
        session = self._cloud.session(call)
        prefix = resource_prefix(call)
        names = {name for name in await _entries(session, prefix) if name != keep}
        root = await session.endpoint(OBJECT_STORE, "list the containers")
        async for page in list_containers(session, prefix, root):
            names.update(one for one in page if one != keep)
        for name in sorted(names):
            await _remove_object(session, name)
        if not keep:
            await remove_container(session, SIGNALS)  # refused while it has entries of others

    async def list_all(self, project: str, region: str) -> AsyncIterator[Mapping[str, Json]]:
        session = self._cloud.reader_session(region)
        counts: Counter[str] = Counter()
        try:
            root = await session.endpoint(OBJECT_STORE, "list the signals")
            account = account_url(root, project)
            for one in await list_objects(session, SIGNALS, "", account):
                if not one["name"].startswith(PREFIX) and (name := object_of(one["name"])):
                    counts[name] += 1
        except CloudError as error:
            reason = error.public or "the signals cannot be listed"
            raise ObjectsUnknown(reason, error.throttled) from None
        for name, count in counts.items():
            yield {number_of(name, n): n for n in range(1, min(count, MAX_SIGNALS) + 1)}


async def _create_container(session: Session, name: str, key: str) -> None:
    headers = {KEY_HEADER: key, VERSIONS_HEADER: SIGNALS}
    try:
        await put_container(session, name, headers)
    except CloudError as error:
        if error.status != PRECONDITION_FAILED:
            raise
        public = "this Swift keeps no versions of objects, so that one signal would replace another"
        remedy = "The operator can set allow_versioned_writes. Until then, use another transport."
        raise CloudError(f"{public}. {remedy}", status=error.status, public=public) from None


async def _entries(session: Session, prefix: str) -> list[str]:
    return [str(one["name"]) for one in await list_objects(session, SIGNALS, prefix)]


async def _remove_object(session: Session, name: str) -> None:
    """Delete an object with its container, its versions and its entry. A server may upload until
    the container is gone. The entry goes last, so that a repeated call finds the rest."""
    versions_end = {remover(VERSIONS_HEADER): "x"}
    exists = await write_headers(session, name, versions_end)
    for _ in range(MAX_TRIES):
        if not exists:
            break
        await remove_object(session, name, name)
        exists = not await remove_container(session, name)
    if exists:
        public = "servers upload signals all the time, so that the container is never empty"
        raise CloudError(public, retry=True, status=CONFLICT, public=public)
    for version in await _entries(session, _version_prefix(name)):
        await remove_object(session, SIGNALS, version)
    await remove_object(session, SIGNALS, name)


async def _caught(reading: Coroutine[Any, Any, bytes | None]) -> bytes | CloudError | None:
    """The error instead of its raise, which would cancel what is read beside."""
    try:
        return await reading
    except CloudError as error:
        return error


def _version_prefix(name: str) -> str:
    """What the names of an object's versions begin with, before their time."""
    return f"{len(name):03x}{name}/"


def _time_of(version: str) -> float:
    """The time of an upload, from the name of its version."""
    return timestamp_of({"x-timestamp": version.rpartition("/")[2].partition("_")[0]})
