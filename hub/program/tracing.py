"""Spans for OpenTelemetry, sent over OTLP; docs/how-to/trace-a-change.md.

The SDK is an extra, and is imported only if [tracing] endpoint is set. Without it, the trace of a
request is still passed on to all events and deliveries of its change.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from engine.errors import Unavailable
from engine.tracing import Span, Tracer
from hub.settings.settings import Tracing

if TYPE_CHECKING:
    from opentelemetry.trace import Span as SdkSpan
    from opentelemetry.trace import Tracer as SdkTracer

#: Seconds for sending the last spans at the end.
FLUSH = 5.0
NANOSECONDS = 1_000_000_000


@asynccontextmanager
async def tracing(settings: Tracing) -> AsyncIterator[Tracer]:
    """A context manager: the tracer. Raises Unavailable if a required SDK is not installed."""
    if not settings.endpoint:
        yield Tracer()
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError as error:
        raise Unavailable(
            f"the SDK of OpenTelemetry is not installed: {error}",
            place="[tracing] endpoint",
            remedy="Run pip install --require-hashes -r requirements/tracing.lock,"
            " or remove the setting.",
        ) from error
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.ratio)),
        resource=Resource.create({"service.name": settings.service}),
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(endpoint=settings.endpoint, timeout=FLUSH)
    every = round(settings.every.total_seconds() * 1000)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=every))
    try:
        yield _Sdk(provider.get_tracer("headgate"))
    finally:
        # In a thread, because it waits for the collector.
        await asyncio.to_thread(provider.shutdown)


class _SdkSpan(Span):
    def __init__(self, span: "SdkSpan") -> None:
        context = span.get_span_context()
        super().__init__(
            f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        )
        self._span = span

    def end(self, **attributes: str | int) -> None:
        self._span.set_attributes(_add_prefix(attributes))
        self._span.end()


class _Sdk(Tracer):
    def __init__(self, tracer: "SdkTracer") -> None:
        self._tracer = tracer

    def begin(
        self, name: str, parent: str, *, seconds_ago: float = 0.0, **attributes: str | int
    ) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        context = TraceContextTextMapPropagator().extract({"traceparent": parent}, Context())
        began = time.time_ns() - round(seconds_ago * NANOSECONDS)
        span = self._tracer.start_span(
            name, context, attributes=_add_prefix(attributes), start_time=began
        )
        return _SdkSpan(span)


def _add_prefix(attributes: dict[str, str | int]) -> dict[str, str | int]:
    return {f"headgate.{name}": value for name, value in attributes.items()}
