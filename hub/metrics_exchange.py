"""Metrics of the processes of one server: each process can answer for all of them.

Each process writes its metrics to every client of its Unix socket, in a directory that only the
server's account may enter. The label `process` distinguishes the values.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import structlog
from prometheus_client import CollectorRegistry, Gauge, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from structlog.typing import FilteringBoundLogger

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds to read the metrics of another process.
TIMEOUT = 2.0
LABEL = "process"


class OwnMetrics(Protocol):
    def render_own(self) -> bytes:
        """The metrics of this process in the text format of Prometheus."""


def _socket_path(directory: Path, number: int) -> Path:
    return directory / f"metrics-{number}"


@asynccontextmanager
async def serve_own_metrics(
    metrics: OwnMetrics, directory: Path, number: int
) -> AsyncIterator[None]:
    """Serve the metrics of this process to the other ones."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                writer.write(metrics.render_own())
                await writer.drain()
        except (OSError, TimeoutError) as error:
            log.warning("metrics.not_sent", reason=str(error))
        finally:
            writer.close()

    path = _socket_path(directory, number)
    path.unlink(missing_ok=True)  # of a process that was killed
    server = await asyncio.start_unix_server(answer, path)
    try:
        yield
    finally:
        server.close()


class MetricsExchange:
    """Reads the metrics of the other processes. directory: of the sockets; None: there is one
    process. number: of this process. count: of the processes."""

    def __init__(self, directory: Path | None = None, number: int = 1, count: int = 1) -> None:
        self._directory = directory
        self._number = number
        self._count = count

    async def merge(self, own: bytes) -> bytes:
        """The metrics of all processes. own: of this process."""
        if self._directory is None:
            return own
        numbers = range(1, self._count + 1)
        others = await asyncio.gather(*(self._read(number, own) for number in numbers))
        return _merge(dict(zip(numbers, others, strict=True)))

    async def _read(self, number: int, own: bytes) -> bytes | None:
        """None: the process does not answer."""
        if number == self._number or self._directory is None:
            return own
        try:
            async with asyncio.timeout(TIMEOUT):
                path = _socket_path(self._directory, number)
                reader, writer = await asyncio.open_unix_connection(path)
                try:
                    return await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            log.warning("metrics.process_unavailable", number=number, reason=str(error))
            return None


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _merge(texts: Mapping[int, bytes | None]) -> bytes:
    """texts: by the number of the process."""
    registry = CollectorRegistry()
    up = Gauge("headgate_process_up", "1 if the process answers", (LABEL,), registry=registry)
    for number, text in texts.items():
        up.labels(str(number)).set(text is not None)
    answered = {str(number): text for number, text in texts.items() if text is not None}
    return merge_labelled(answered, LABEL, generate_latest(registry))


def merge_labelled(texts: Mapping[str, bytes], label: str, own: bytes) -> bytes:
    """The metrics of several texts. own: its values have no further label; the keys of `texts` are
    the values of the label of the others."""
    families: dict[str, Metric] = {}
    labels: dict[str, dict[str, str]] = {value: {label: value} for value in texts}
    for text, more in [(own, {}), *((text, labels[value]) for value, text in texts.items())]:
        for family in text_string_to_metric_families(text.decode()):
            family.samples = [
                sample._replace(labels={**sample.labels, **more}) for sample in family.samples
            ]
            known = families.setdefault(family.name, family)
            if known is not family:
                known.samples += family.samples
    registry = CollectorRegistry()
    registry.register(_Families(list(families.values())))
    return generate_latest(registry)
