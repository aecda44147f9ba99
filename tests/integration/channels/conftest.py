"""Rows of the engine, receivers, and dispatchers that end with the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Any
from uuid import UUID

import pytest_asyncio

from channels.attempt import Attempts
from channels.contract import Channel, ReceiverDecision
from channels.dispatcher import Dispatcher, DispatcherSettings
from channels.retry import RetryPolicy
from channels.webhook.client import WebhookChannel, WebhookSettings
from engine.hooks.answer_rights import Automation
from engine.store.database import Database
from tests.support.engine_rows import EngineRows

QUICK = DispatcherSettings(
    retry=RetryPolicy(attempts=3, first=0.02, max_pause=0.2, attempt_timeout=30.0),
    drain=5.0,
)
LOOPBACK = WebhookSettings(allow=(ip_network("127.0.0.0/8"),), timeout=30.0, connect_timeout=30.0)


def token_for(hook_id: UUID, subscription_id: UUID) -> str:
    return f"token-of-{hook_id}-for-{subscription_id}"


async def approve_everyone(one: Automation) -> Automation:
    """Replaces the check of rights: every owner may answer."""
    return replace(one, approves=True)


@dataclass(slots=True)
class RecordedAnswers:
    """Records answers instead of passing them to the engine. refuse: the reason of its refusals."""

    accepted: list[tuple[UUID, str, str, str]] = field(default_factory=list)
    refuse: str | None = None

    async def __call__(
        self, hook_id: UUID, decision: ReceiverDecision, by: Automation, target: str
    ) -> str | None:
        self.accepted.append((hook_id, decision.decision, decision.reason, by.name))
        return self.refuse


RunDispatcher = Callable[..., AbstractAsyncContextManager[Dispatcher]]


@pytest_asyncio.fixture
async def engine_rows(database: Database) -> EngineRows:
    return EngineRows(database)


@pytest_asyncio.fixture
async def answers() -> RecordedAnswers:
    return RecordedAnswers()


@pytest_asyncio.fixture
async def webhook() -> AsyncIterator[WebhookChannel]:
    async with WebhookChannel(LOOPBACK) as channel:
        yield channel


@pytest_asyncio.fixture
async def run_dispatcher(
    database: Database, webhook: WebhookChannel, answers: RecordedAnswers
) -> RunDispatcher:
    """A context in which a dispatcher runs; at its end, it stops."""

    @asynccontextmanager
    async def run(
        settings: DispatcherSettings = QUICK,
        *,
        channels: dict[str, Channel] | None = None,
        answer: RecordedAnswers | None = None,
        **changes: Any,
    ) -> AsyncIterator[Dispatcher]:
        settings = replace(settings, **changes)
        attempts = Attempts(
            channels if channels is not None else {"webhook": webhook},
            settings.policy,
            token_for=token_for,
            entitle=approve_everyone,
            public_url="http://hub.test",
            answer=answer or answers,
            random=lambda: 0.5,
        )
        dispatcher = Dispatcher(database, attempts, settings=settings)
        stop = asyncio.Event()
        task = asyncio.create_task(dispatcher.run(stop))
        try:
            yield dispatcher
        finally:
            stop.set()
            async with asyncio.timeout(20):
                await task

    return run
