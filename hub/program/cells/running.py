"""Runs the API of several cells."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from channels.webhook.client import WebhookChannel
from engine.loop_guard import Supervisor
from hub.api.app_context import ServerContext
from hub.api.application import make_application
from hub.http.listener import monitoring_application, serve_api, serve_monitoring
from hub.metrics_exchange import MetricsExchange, serve_own_metrics
from hub.program.authenticator import make_oidc_client
from hub.program.cells.metrics import CellsMetrics
from hub.program.cells.served_cells import ServedCells
from hub.program.process_slot import ProcessSlot
from hub.program.slack import make_slack_answers
from hub.program.tracing import tracing
from hub.program.wiring import webhook_settings
from hub.settings.settings import Settings


@asynccontextmanager
async def running_cells(
    settings: Settings,
    stop: asyncio.Event,
    *,
    slot: ProcessSlot = ProcessSlot(),  # noqa: B008  frozen
) -> AsyncIterator[str]:
    """A context manager: the URL of the API of all cells. It waits a limited time for the cells.

    Raises Conflict if the settings contradict what the cells have stored, and Unavailable.
    """
    async with AsyncExitStack() as stack:
        tracer = await stack.enter_async_context(tracing(settings.tracing))
        if (oidc := make_oidc_client(settings.auth)) is not None:
            await stack.enter_async_context(oidc)
        cells = ServedCells(settings, slot, tracer, stop, oidc)
        metrics = CellsMetrics(
            cells.cells, cells.moves, MetricsExchange(slot.directory, slot.number, slot.count)
        )
        tasks = {
            name: asyncio.create_task(cells.keep_connected(state), name=f"cell {name}")
            for name, state in cells.states.items()
        }
        stack.push_async_callback(_end, cells, stop, tasks)
        await cells.check_start()
        agreeing = asyncio.create_task(cells.keep_agreed(), name="cells")
        stack.callback(agreeing.cancel)
        sharing = asyncio.create_task(cells.keep_tokens_shared(), name="tokens of cells")
        stack.callback(sharing.cancel)
        if slot.directory is not None:
            exchange = serve_own_metrics(metrics, slot.directory, slot.number)
            await stack.enter_async_context(exchange)
        if address := settings.metrics.address:
            monitoring = monitoring_application(metrics, cells.ready)
            await stack.enter_async_context(serve_monitoring(monitoring, address, slot.metrics))
        http = await stack.enter_async_context(
            WebhookChannel(webhook_settings(settings.channels.webhook))
        )
        supervisor = Supervisor(
            new_id=lambda: secrets.token_hex(6), failed=metrics.record_internal_error
        )
        if (slack := make_slack_answers(settings, cells, http, supervisor)) is not None:
            await stack.enter_async_context(slack)
        server = ServerContext(settings, metrics, tracer, cells.ready, secrets.token_bytes, slack)
        application = make_application(server, cells, cells.limits)
        async with serve_api(settings.server, application, slot.api) as url:
            yield url


async def _end(
    cells: ServedCells, stop: asyncio.Event, tasks: Mapping[str, asyncio.Task[None]]
) -> None:
    stop.set()
    for name, state in cells.states.items():
        if state.services is None:  # it is connecting, which can take long
            tasks[name].cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
