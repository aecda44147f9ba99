"""An OpenTelemetry collector on loopback, which receives OTLP over HTTP and stores the spans."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class ReceivedSpan:
    """trace, id, parent: hexadecimal. service: the name of the program that sent it."""

    name: str
    trace: str
    id: str
    parent: str
    service: str
    attributes: dict[str, str | int]
    seconds: float


@dataclass
class Collector:
    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    raw: bytearray = field(default_factory=bytearray)

    async def receive(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self.raw += raw
        sent = ExportTraceServiceRequest.FromString(raw)
        for of_resource in sent.resource_spans:
            service = _values(of_resource.resource.attributes)["service.name"]
            for scope in of_resource.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        one.name, one.trace_id.hex(), one.span_id.hex(), one.parent_span_id.hex(),
                        str(service), _values(one.attributes),
                        (one.end_time_unix_nano - one.start_time_unix_nano) / 1e9,
                    )
                    for one in scope.spans
                ]  # fmt: skip
        return web.Response(content_type="application/x-protobuf")


def _values(attributes: object) -> dict[str, str | int]:
    return {
        one.key: one.value.string_value or one.value.int_value
        for one in attributes  # type: ignore[attr-defined]
    }


@asynccontextmanager
async def running_collector() -> AsyncIterator[Collector]:
    collector = Collector()
    application = web.Application()
    application.router.add_post("/v1/traces", collector.receive)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
        yield collector
    finally:
        await runner.cleanup()
