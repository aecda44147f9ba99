"""The API over a stub engine that records its calls, without a database and workers."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from engine.errors import Findings
from engine.hooks.derived_tokens import TokenKeys
from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.missing_objects import no_resource, no_stack
from engine.principal import Principal
from engine.service import Engine, Limits, Output, StackRequest, StackValues
from engine.service.reads.written_types import WrittenTypes
from engine.store.maintenance.processes import ProcessRecord
from engine.store.records import EventRecord, ResourceRecord, StackRecord
from engine.store.stacks.events import EventFilter
from engine.store.stacks.stack_lists import StackFilter, StackPage
from engine.tracing import Tracer
from engine.types.signal_urls import SignalUrls
from engine.types.software import ServerUrls
from hub.api.app_context import AppContext, ServerContext
from hub.api.application import make_application
from hub.api.cells import Admission, Cell, OneDatabase
from hub.api.costly_requests import CostlyRequests
from hub.api.request_validation import invalid
from hub.auth.gatekeeper import Gatekeeper
from hub.auth.identity import Anonymous, Authenticator
from hub.auth.passwords import PasswordHasher
from hub.program.wiring import make_limits, make_request_limits, make_sessions
from hub.settings.access import ServerSection
from hub.settings.settings import Settings

STACK_ID = UUID("7f599edc-9522-4a30-93e3-75f43c50906c")
EVENT_ID = UUID("d996498a-50e1-4298-a014-42c847cc8157")
OTHER_EVENT = UUID("a38e491a-f658-47a2-8e26-dee09af10b06")
WHEN = datetime(2026, 11, 20, 20, 16, 36, 987654, UTC)
MAX_BODY = 4096


def stack(**changes: Any) -> StackRecord:
    fields: dict[str, Any] = {
        "id": STACK_ID,
        "project": "demo",
        "name": "web",
        "description": "An example",
        "action": "CREATE",
        "status": "COMPLETE",
        "reason": "Stack CREATE completed successfully",
        "owner": "ann",
        "tags": ["one", "two"],
        "timeout_mins": None,
        "disable_rollback": True,
        "created_at": WHEN,
        "updated_at": None,
        "deleted_at": None,
        "traversal": 1,
        "version": 1,
    }
    return StackRecord(**fields | changes)


def resource(name: str, requires: tuple[str, ...] = (), **changes: Any) -> ResourceRecord:
    fields: dict[str, Any] = {
        "stack_id": STACK_ID,
        "stack_name": "web",
        "parent_resource": None,
        "nested_id": None,
        "nested_name": None,
        "id": UUID(int=len(name)),
        "name": name,
        "type": "Test::Secret",
        "physical_id": f"web-{name}",
        "action": "CREATE",
        "status": "COMPLETE",
        "reason": "state changed",
        "properties": {},
        "masked_properties": None,
        "secret_attributes": None,
        "attributes": {"value": "s3cret", "size": 4},
        "metadata": {"role": "web"},
        "requires": list(requires),
        "deletion_policy": "Delete",
        "protected": False,
        "created_at": WHEN,
        "updated_at": WHEN,
    }
    return ResourceRecord(**fields | changes)


def event(event_id: UUID = EVENT_ID, name: str | None = None, **changes: Any) -> EventRecord:
    fields: dict[str, Any] = {
        "stack_id": STACK_ID,
        "sequence": 1,
        "id": event_id,
        "type": "headgate.stack.create.started",
        "time": WHEN,
        "resource_name": name,
        "resource_type": "Test::Secret" if name else None,
        "physical_id": f"web-{name}" if name else None,
        "action": "CREATE",
        "status": "IN_PROGRESS",
        "reason": "Stack CREATE started",
        "data": {},
    }
    return EventRecord(**fields | changes)


@dataclass
class StubEngine:
    """One stack, `web`, of the project `demo`. calls: name and arguments. values_were_read: by
    the last list of resources."""

    calls: list[tuple[str, Any]] = field(default_factory=list)
    values_were_read: bool = False
    fails: Exception | None = None
    records: list[StackRecord] = field(default_factory=lambda: [stack()])
    types: Mapping[str, TypeSchema] = field(
        default_factory=lambda: {
            "Test::Secret": TypeSchema(
                "Test::Secret",
                properties={"length": Property(Kind.INTEGER)},
                attributes={"value": Attribute(secret=True), "size": Attribute()},
            )
        }
    )

    async def written_types(
        self, project: str, stacks: Sequence[UUID], name: str | None = None
    ) -> WrittenTypes:
        return WrittenTypes({})

    def limits_of(self, project: str) -> Limits:
        return make_limits(Settings())

    @property
    def signals(self) -> "StubEngine":
        return self

    @property
    def stacks(self) -> "StubEngine":
        return self

    @property
    def hooks(self) -> "StubEngine":
        return self

    @property
    def reads(self) -> "StubEngine":
        return self

    async def send(
        self, project: str, stack_id: UUID, name: str, data: Mapping[str, Any], by: str, *,
        credential: str = "",
    ) -> None:  # fmt: skip
        self.calls.append(("signal", (name, data, by)))

    async def find_stack(self, project: str, name_or_id: str) -> StackRecord:
        if self.fails:
            raise self.fails
        for one in self.records:
            if one.project == project and name_or_id in (one.name, str(one.id)):
                return one
        raise no_stack(name_or_id)

    async def list_stacks(self, project: str | None, wanted: StackFilter) -> StackPage:
        self.calls.append(("list", wanted))
        found = [one for one in self.records if one.project == project]
        return StackPage(found[: wanted.limit], len(found) if wanted.counted else None)

    async def create(self, project: str, request: StackRequest, warned: Findings) -> StackRecord:
        self.calls.append(("create", request))
        return self.records[0]

    async def update(
        self, project: str, stack_id: UUID, request: StackRequest, warned: Findings
    ) -> None:
        self.calls.append(("update", request))

    async def delete(
        self, project: str, stack_id: UUID, requested_by: Principal, *, credential: str
    ) -> None:
        self.calls.append(("delete", (project, stack_id, requested_by)))

    async def start_action(
        self, project: str, stack_id: UUID, action: str, by: str, *, credential: str
    ) -> None:
        self.calls.append(("visit", (stack_id, str(action), by)))

    async def cancel(self, project: str, stack_id: UUID, by: str, *, rollback: bool) -> None:
        self.calls.append(("cancel", (stack_id, rollback, by)))

    async def stop(self, project: str, stack_id: UUID, by: str) -> None:
        self.calls.append(("stop", (stack_id, by)))

    async def unset(
        self, project: str, stack_id: UUID, resource_name: str, point: str, by: str
    ) -> None:
        self.calls.append(("unset_hook", (resource_name, point, by)))
        if point != "pre-create":
            raise invalid("", "not defined", code="InvalidBreakPointHook")

    async def resources(
        self, stack: StackRecord, *, depth: int = 0, with_values: bool = True
    ) -> list[ResourceRecord]:
        self.values_were_read = with_values
        return [resource("pw"), resource("app", ("pw",))]

    async def resource_name(self, stack: StackRecord, wanted: str) -> str:
        return (await self.resource(stack, wanted))[0].name

    async def resource(
        self, stack: StackRecord, wanted: str
    ) -> tuple[ResourceRecord, Sequence[str]]:
        found = await self.resources(stack)
        one = next((one for one in found if one.name == wanted), None)
        if one is None:
            raise no_resource(wanted, stack.name, {one.name for one in found})
        return one, [other.name for other in found if wanted in other.requires]

    async def descriptions(
        self, stacks: Sequence[UUID], name: str | None = None
    ) -> dict[tuple[UUID, str], str]:
        return {(STACK_ID, "pw"): "A word"}

    async def events(self, stack: StackRecord, wanted: EventFilter) -> list[EventRecord]:
        self.calls.append(("events", wanted))
        found = [event(), event(OTHER_EVENT, "pw")]
        if wanted.marker is not None:
            found = found[[one.id for one in found].index(wanted.marker) + 1 :]
        names = wanted.names or (stack.name, "pw")
        return [one for one in found if (one.resource_name or stack.name) in names][: wanted.limit]

    async def event(self, stack: StackRecord, event_id: UUID) -> tuple[EventRecord, Any]:
        assert event_id == OTHER_EVENT
        return event(OTHER_EVENT, "pw"), {"length": 4}

    async def processes(self) -> list[ProcessRecord]:
        return [
            ProcessRecord(
                STACK_ID, "h1", ["api", "engine"], timedelta(seconds=30), WHEN, WHEN, True
            ),
            ProcessRecord(EVENT_ID, "h2", ["engine"], timedelta(seconds=30), WHEN, WHEN, False),
        ]

    async def graph(self, stack: StackRecord) -> Any:
        raise no_stack(stack.id)

    async def outputs(self, stack: StackRecord) -> list[Output]:
        return [Output("good", "a", 1, None), Output("bad", "b", None, "not there yet")]

    async def view(self, stack: StackRecord, *, with_outputs: bool) -> StackValues:
        parameters = {"OS::stack_name": stack.name, "secret": "******"}
        return StackValues(parameters, await self.outputs(stack) if with_outputs else None)


@dataclass
class Client:
    """A client that does not follow redirects."""

    session: aiohttp.ClientSession
    url: str
    engine: StubEngine

    async def call(
        self, method: str, path: str, **kwargs: Any
    ) -> tuple[int, Any, Mapping[str, str]]:
        """(status, document, headers). path: as sent, with its quotes."""
        url = URL(self.url + path, encoded=True)
        async with self.session.request(method, url, allow_redirects=False, **kwargs) as got:
            raw = await got.read()
            return got.status, await got.json() if raw else None, got.headers


@asynccontextmanager
async def client_of(
    engine: StubEngine, authenticator: Authenticator | None = None
) -> AsyncIterator[Client]:
    async def ready() -> list[str]:
        return []

    context = AppContext(
        engine=cast(Engine, engine),
        database=cast(Any, None),
        lists=cast(Any, None),
        settings=Settings(server=ServerSection(max_body=MAX_BODY)),
        feed=cast(Any, None),
        dispatcher=cast(Any, None),
        channels={},
        horizon=lambda _: 1.0,
        sent_notifications=cast(Any, None),
        hook_tokens=cast(Any, None),
        token_keys=cast(Any, None),
        signal_urls=SignalUrls(TokenKeys.single(b""), ""),
        servers=ServerUrls(TokenKeys.single(b""), ""),
        new_id=lambda: UUID(int=0),
        new_secret=str,
        random_bytes=bytes,
        fetch_template=cast(Any, None),
        metrics=cast(Any, None),
        hasher=PasswordHasher(),
    )
    limits = make_request_limits(context.settings)
    gatekeeper = Gatekeeper(authenticator or Anonymous(), limits)
    admission = Admission(gatekeeper, make_sessions(context.settings, context.database))
    metrics = cast(Any, SimpleNamespace(record_request=lambda *_: None))
    of_server = ServerContext(context.settings, metrics, Tracer(), ready, bytes)
    cell = Cell("", context, admission, CostlyRequests(10, 64))
    app: web.Application = make_application(of_server, OneDatabase(cell), limits)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        yield Client(session, str(server.make_url("")).rstrip("/"), engine)
