"""The channels of a process, the dispatcher that uses them, and the answers of receivers."""

import random
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Self
from uuid import UUID

from channels.amqp.answer_queue import AcceptedAnswer, Answers
from channels.amqp.broker import Broker
from channels.amqp.notifications import HeatChannel
from channels.amqp.publisher import AmqpChannel
from channels.apprise.channel import AppriseChannel
from channels.attempt import Attempts
from channels.chat.channel import HttpSender, SlackButtons, chat_channels
from channels.contract import Channel, ReceiverDecision
from channels.dispatcher import Dispatcher
from channels.email.channel import EmailChannel
from channels.envelope import rfc3339
from channels.ignored_answers import IgnoredAnswer, IgnoredAnswers, IgnoredReason
from channels.plugins import load_installed as installed_channels
from channels.retry import horizon
from channels.store.subscriptions import configure
from channels.webhook.client import WebhookChannel
from engine.errors import HeadgateError, Unavailable
from engine.hooks.answer_rights import Automation
from engine.loop_guard import LoopRun, Supervisor
from engine.service.hooks.answering import Hooks
from engine.store.database import Database
from engine.store.records import HookRecord
from engine.tracing import Tracer
from engine.words import DRIFT, AnswerChannel, Json
from hub.api.error_middleware import status_of
from hub.api.hook_answers import read_signal
from hub.auth.hook_tokens import HookTokens
from hub.metrics import Metrics
from hub.program.process_slot import ProcessSlot
from hub.program.wiring import (
    apprise_services,
    broker_settings,
    configured_subscriptions,
    dispatcher_settings,
    email_settings,
    webhook_settings,
)
from hub.settings.settings import Settings


class Delivery:
    """An async context manager: the channels of a process and its dispatcher. Entering it opens the
    channels, for the time of the process."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        *,
        hooks: Hooks,
        hook_tokens: HookTokens,
        metrics: Metrics,
        tracer: Tracer,
        supervisor: Supervisor,
        slot: ProcessSlot,
    ) -> None:
        """hooks: applies the answers of receivers. slot: of this process, for limits that apply to
        all processes together."""
        self._settings = settings
        self._database = database
        self._hooks = hooks
        self._hook_tokens = hook_tokens
        self._metrics = metrics
        self._supervisor = supervisor
        self._open = AsyncExitStack()
        base_url = settings.server.base_url()
        webhook = WebhookChannel(webhook_settings(settings.channels.webhook))
        self.http: HttpSender = webhook
        buttons = None
        if settings.channels.slack.signing_secret_file:
            hosts = settings.channels.slack.hosts
            buttons = SlackButtons(hosts, hook_tokens.button_token_for)
        chats = chat_channels(webhook, base_url, buttons)
        self.channels: dict[str, Channel] = {"webhook": webhook, **chats}
        if (email := email_settings(settings.channels.email)) is not None:
            self.channels["email"] = EmailChannel(email, base_url)
        if (services := apprise_services(settings.channels.apprise)) is not None:
            targets = settings.channels.apprise.targets
            self.channels["apprise"] = AppriseChannel(services, targets, base_url)
        self._broker: Broker | None = None
        if (broker := broker_settings(settings.channels.amqp)) is not None:
            self._broker = Broker(broker, supervisor)
            amqp = settings.channels.amqp
            self.channels["amqp"] = AmqpChannel(self._broker, amqp.exchanges)
            self.channels["heat"] = HeatChannel(self._broker, amqp.heat_exchanges)
        self.channels |= installed_channels(self.channels)
        dispatching = dispatcher_settings(settings, slot)
        self.horizon: Callable[[str], float] = lambda name: horizon(dispatching.policy(name))
        attempts = Attempts(
            self.channels,
            dispatching.policy,
            token_for=hook_tokens.token_for,
            entitle=hook_tokens.update_right,
            public_url=base_url,
            answer=self._answer_from_response,
            random=random.SystemRandom().random,
            observe=metrics.record_delivery,
            tracer=tracer,
            supervisor=supervisor,
        )
        self.dispatcher = Dispatcher(
            database, attempts, settings=dispatching, supervisor=supervisor
        )

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            for channel in self.channels.values():
                if isinstance(channel, AbstractAsyncContextManager):
                    await opening.enter_async_context(channel)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    def amqp(self, consumes: bool) -> LoopRun | None:
        """The loop of the broker's connection; None: no broker is configured. consumes: whether it
        also receives answers."""
        broker = self._broker
        if broker is None:
            return None
        ignored = IgnoredAnswers(self._database, self._hook_tokens.update_right, AmqpChannel.name)
        answers = Answers(
            broker,
            self._answer_from_message,
            ignored.record,
            ignored=self._metrics.record_ignored_answer,
            supervisor=self._supervisor,
        )
        return lambda stop: broker.run(stop, answers.consume if consumes else None)

    async def configure_subscriptions(self) -> None:
        """Store the subscriptions of the configuration. Raises Unavailable for a channel that this
        process does not have."""
        configured = configured_subscriptions(self._settings)
        for one in configured:
            if one.channel not in self.channels:
                raise Unavailable(
                    f'there is no channel "{one.channel}" here',
                    place="[[subscriptions]] channel",
                    remedy=f"Known: {', '.join(sorted(self.channels))}. AMQP needs"
                    " [channels.amqp] url.",
                )
        async with self._database.connection() as conn:
            await configure(conn, configured)

    async def _answer_from_response(
        self, hook_id: UUID, decision: ReceiverDecision, automation: Automation, target: str
    ) -> str | None:
        """Apply the answer in the response of a receiver; return why it was refused, or None."""
        body = {"decision": decision.decision, "reason": decision.reason, **decision.more}
        outcome = await self._apply_answer(hook_id, body, automation, AnswerChannel.WEBHOOK, target)
        return str(outcome) if isinstance(outcome, HeadgateError) else None

    async def _answer_from_message(
        self, hook_id: UUID, token: str, body: Mapping[str, Json], sender: str
    ) -> AcceptedAnswer | IgnoredAnswer:
        """Apply an answer over AMQP, which is authorized by the hook token."""
        automation = await self._hook_tokens.holder(hook_id, token)
        if automation is None:
            reason = "this is not the hook's token"
            return IgnoredAnswer(reason, IgnoredReason.INVALID_TOKEN, 401, "Unauthorized")
        outcome = await self._apply_answer(hook_id, body, automation, AnswerChannel.AMQP, sender)
        if not isinstance(outcome, HeadgateError):
            return AcceptedAnswer(None if outcome.point == DRIFT else rfc3339(outcome.deadline))
        return IgnoredAnswer(
            str(outcome), IgnoredReason.REFUSED, status_of(outcome), outcome.code, automation.id
        )

    async def _apply_answer(
        self,
        hook_id: UUID,
        body: Mapping[str, Json],
        automation: Automation,
        channel: AnswerChannel,
        address: str,
    ) -> HookRecord | HeadgateError:
        """Returns the hook, or why the answer was refused."""
        try:
            answer = read_signal(
                body, automation.principal, channel, automation=automation, address=address
            )
            return await self._hooks.answer(hook_id, answer, project=None)
        except Unavailable:
            raise
        except HeadgateError as error:
            return error
