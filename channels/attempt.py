"""One attempt of one delivery: builds the message, sends it over its channel, returns the result.

An answer in the receiver's response is applied before the result is written. If the process ends
between the two, the message is sent again and the same answer has no further effect; in the other
order, the answer would be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never
from uuid import UUID

from structlog.contextvars import bound_contextvars

from channels.contract import (
    Channel,
    Delivered,
    DigestChannel,
    Endpoint,
    EventMessage,
    Failed,
    ReceiverDecision,
)
from channels.digest import GATHERED, digest_time, stored_digest
from channels.envelope import cloud_event, notified_documents, rfc3339
from channels.ignored_answers import (
    Entitle,
    ignored_note,
    kept_text,
    refused_note,
    standing_refusal,
)
from channels.quiet_hours import HELD, quiet_until, stored_quiet_hours
from channels.retry import GiveUp, RetryPolicy, TryAgain, after_failure, horizon
from channels.store.records import DeliveryResult, DeliveryState, PendingDelivery, shown_target
from engine.errors import HeadgateError, Unavailable
from engine.hooks.answer_rights import Automation
from engine.loop_guard import Supervisor
from engine.principal import Principal
from engine.tracing import Tracer
from engine.words import DRIFT, HookState

#: Answers a hook: hook id, decision, subscription, its target without secrets. Returns why the
#: answer was refused, or None. Raises Unavailable if the answer cannot be stored now.
AnswerHook = Callable[[UUID, ReceiverDecision, Automation, str], Awaitable[str | None]]

#: A hook's token for a subscription: hook id, subscription id.
TokenFor = Callable[[UUID, UUID], str]

#: Called after each attempt: channel, new state of the delivery, duration in seconds.
AttemptObserver = Callable[[str, DeliveryState, float], None]

#: Seconds for applying an answer.
ANSWER_TIMEOUT = 10.0


def delivery_result(
    delivery: PendingDelivery,
    outcome: Delivered | Failed,
    policy: RetryPolicy,
    chance: float,
) -> DeliveryResult:
    """The result to write after an attempt: delivered, retried or dead. chance: 0 <= number < 1,
    which varies the wait."""
    match outcome:
        case Delivered():
            return _result(delivery, outcome, DeliveryState.DELIVERED, outcome.note)
        case Failed():
            follows = after_failure(
                policy,
                delivery.attempts,
                retry_after=outcome.retry_after,
                final=outcome.final,
                chance=chance,
            )
            match follows:
                case TryAgain(wait=wait):
                    left = horizon(policy, delivery.attempts)
                    return _result(
                        delivery,
                        outcome,
                        DeliveryState.PENDING,
                        outcome.reason,
                        wait=wait,
                        left=left,
                    )
                case GiveUp(why=why):
                    error = f"{outcome.reason}; {why}"
                    return _result(delivery, outcome, DeliveryState.DEAD, error, gone=outcome.final)
                case _ as never:
                    assert_never(never)
        case _ as never_outcome:
            assert_never(never_outcome)


def unattempted_result(delivery: PendingDelivery) -> DeliveryResult:
    """The result of a claimed delivery that was not attempted: its state stays the same."""
    no_outcome = Failed("")
    return replace(_result(delivery, no_outcome, DeliveryState.PENDING, ""), unattempted=True)


@dataclass(frozen=True, slots=True)
class Postponement:
    """until: when the delivery is due. digest: it is then a part of a digest."""

    until: datetime
    digest: bool

    @property
    def reason(self) -> str:
        return f"{GATHERED if self.digest else HELD}{rfc3339(self.until)}"


def postponed_result(
    delivery: PendingDelivery, postponed: Postponement, policy: RetryPolicy
) -> DeliveryResult:
    """The result of a claimed delivery that quiet hours or a digest hold: it was not attempted."""
    wait = (postponed.until - delivery.now).total_seconds()
    left = horizon(policy, delivery.attempts - 1)
    pending = DeliveryState.PENDING
    result = _result(delivery, Failed(""), pending, postponed.reason, wait=wait, left=left)
    digest_at = postponed.until if postponed.digest else None
    return replace(result, postponed=True, digest_at=digest_at)


def postponement(delivery: PendingDelivery) -> Postponement | None:
    """Until when a delivery is held; None: it is sent now. A hook that would expire before the end
    of the quiet hours is sent; one that expires before the next digest is no part of it."""
    window = stored_quiet_hours(delivery.quiet_hours)
    until = quiet_until(window, delivery.now) if window else None
    if until and delivery.expires_at and delivery.now < delivery.expires_at <= until:
        return None
    digest = stored_digest(delivery.digest)
    if digest is not None:
        if delivery.digest_at is not None:
            return Postponement(until, True) if until else None
        at, deadline = digest_time(digest, window, delivery.now), _deadline(delivery)
        if deadline is None or deadline > at:
            return Postponement(at, True)
    return Postponement(until, False) if until else None


def _deadline(delivery: PendingDelivery) -> datetime | None:
    """Until when the hook of an event must be answered, if it is delivered now."""
    hook = delivery.hook
    if hook is None or not _is_waiting(delivery) or hook.point == DRIFT:
        return None
    return hook.deadline


def _is_waiting(delivery: PendingDelivery) -> bool:
    """Whether the hook of an event still waits for an answer."""
    return delivery.hook is not None and delivery.hook.state == HookState.WAITING


def _result(
    delivery: PendingDelivery,
    outcome: Delivered | Failed,
    state: DeliveryState,
    error: str,
    *,
    wait: float = 0.0,
    left: float = 0.0,
    gone: bool = False,
) -> DeliveryResult:
    return DeliveryResult(
        key=delivery.key,
        id=delivery.id,
        hook_id=delivery.hook_id,
        channel=delivery.channel,
        target=shown_target(delivery.target),
        event_id=delivery.event.id,
        event_type=delivery.event.type,
        attempts=delivery.attempts,
        state=state,
        code=outcome.code,
        error=kept_text(error),
        response=kept_text(outcome.response),
        wait=wait,
        left=left,
        gone=gone,
    )


def _refusal(delivery: PendingDelivery) -> str | None:
    """Why the subscription cannot answer the hook at any time; None: it can."""
    if delivery.hook_id is None or delivery.hook is None:
        return None
    hook = delivery.hook
    requester = Principal(hook.requested_by_id, hook.requested_by)
    escalated = hook.escalated_at is not None
    return standing_refusal(hook.rule, delivery.automation, requester, escalated=escalated)


class Attempts:
    """Makes attempts. Stateless."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        policy_of: Callable[[str], RetryPolicy],
        *,
        token_for: TokenFor,
        entitle: Entitle,
        public_url: str,
        answer: AnswerHook,
        random: Callable[[], float],
        observe: AttemptObserver = lambda *_: None,
        tracer: Tracer | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        """entitle: reads the rights of a subscription's owner. answer: answers a hook for a
        receiver. random: returns 0 <= number < 1. observe: for the metrics."""
        self._guard = (supervisor or Supervisor()).guard("delivery")
        self._observe = observe
        self._tracer = tracer or Tracer()
        self._channels = channels
        self._policy_of = policy_of
        self._token_for = token_for
        self._entitle = entitle
        self._public_url = public_url.rstrip("/")
        self._answer = answer
        self._random = random

    async def try_once(self, delivery: PendingDelivery) -> DeliveryResult:
        """Raises nothing: every error is a failed attempt."""
        names = {"delivery": delivery.id, "subscription": delivery.key.subscription_id,
                 "stack_id": delivery.key.stack_id}  # fmt: skip
        with bound_contextvars(**{name: str(one) for name, one in names.items()}):
            return await self._timed_attempt(delivery)

    async def _timed_attempt(self, delivery: PendingDelivery) -> DeliveryResult:
        policy, began = self._policy_of(delivery.channel), asyncio.get_running_loop().time()
        try:
            if held := postponement(delivery):
                return postponed_result(delivery, held, policy)
            async with asyncio.timeout(policy.attempt_timeout + ANSWER_TIMEOUT):
                outcome = await self._deliver(delivery)
        except TimeoutError:
            outcome = Failed("the attempt took too long")
        except Exception as error:
            outcome = Failed(str(self._guard.report(error, channel=delivery.channel)))
        result = delivery_result(delivery, outcome, policy, self._random())
        seconds = asyncio.get_running_loop().time() - began
        self._observe(delivery.channel, result.state, seconds)
        return result

    async def try_digest(self, deliveries: Sequence[PendingDelivery]) -> list[DeliveryResult]:
        """One message for all deliveries of a digest, at least one. Raises nothing: every error is
        a failed attempt."""
        first = deliveries[0]
        policy, began = self._policy_of(first.channel), asyncio.get_running_loop().time()
        try:
            held = [postponement(one) for one in deliveries]
            # A hook that expires in the quiet hours takes the others with it.
            if all(held):
                pairs = zip(deliveries, held, strict=True)
                return [postponed_result(one, each, policy) for one, each in pairs if each]
            async with asyncio.timeout(policy.attempt_timeout + ANSWER_TIMEOUT):
                outcome = await self._deliver_digest(deliveries)
        except TimeoutError:
            outcome = Failed("the attempt took too long")
        except Exception as error:
            outcome = Failed(str(self._guard.report(error, channel=first.channel)))
        chance = self._random()
        results = [delivery_result(one, outcome, policy, chance) for one in deliveries]
        seconds = asyncio.get_running_loop().time() - began
        self._observe(first.channel, results[0].state, seconds)
        return results

    async def _deliver_digest(self, deliveries: Sequence[PendingDelivery]) -> Delivered | Failed:
        first = deliveries[0]
        sender = self._channels.get(first.channel)
        if not isinstance(sender, DigestChannel):
            return Failed(f'there is no channel "{first.channel}" with digests here')
        key, configured = first.key.subscription_id, first.automation.configured
        endpoint = Endpoint(key, first.target, first.secrets, configured)
        messages = [
            replace(self.message(one, with_token=False), waiting=_is_waiting(one))
            for one in deliveries
        ]
        return await sender.deliver_digest(messages, endpoint)

    async def send(
        self, channel: str, message: EventMessage, endpoint: Endpoint
    ) -> Delivered | Failed:
        sender = self._channels.get(channel)
        if sender is None:
            return Failed(f'there is no channel "{channel}" here')
        return await sender.deliver(message, endpoint)

    async def _deliver(self, delivery: PendingDelivery) -> Delivered | Failed:
        if delivery.undecryptable:
            return Failed(delivery.undecryptable)
        endpoint = Endpoint(
            delivery.key.subscription_id,
            delivery.target,
            delivery.secrets,
            delivery.automation.configured,
        )
        parent = delivery.event.traceparent or ""
        span = self._tracer.begin(f"deliver {delivery.channel}", parent, event=delivery.event.type)
        outcome: Delivered | Failed = Failed("the attempt was cancelled")
        ignored: str | None = None
        try:
            delivery = await self._with_rights(delivery)
            ignored = _refusal(delivery)
            message = self.message(delivery, with_token=ignored is None)
            outcome = await self.send(
                delivery.channel, replace(message, traceparent=span.traceparent), endpoint
            )
        except Unavailable as error:
            outcome = Failed(f"the rights of the subscription's owner could not be read: {error}")
        finally:
            span.end(outcome=type(outcome).__name__.lower(), attempt=delivery.attempts)
        if isinstance(outcome, Delivered) and outcome.decision and delivery.hook_id:
            if ignored is not None:
                return replace(outcome, note=ignored_note(ignored))
            return await self._apply_answer(delivery, delivery.hook_id, outcome, outcome.decision)
        return outcome

    async def _with_rights(self, delivery: PendingDelivery) -> PendingDelivery:
        """Adds the current rights of the subscription's owner to a hook notification."""
        if delivery.hook_id is None:
            return delivery
        return replace(delivery, automation=await self._entitle(delivery.automation))

    async def _apply_answer(
        self,
        delivery: PendingDelivery,
        hook_id: UUID,
        outcome: Delivered,
        decision: ReceiverDecision,
    ) -> Delivered | Failed:
        try:
            kept = replace(decision, reason=kept_text(decision.reason))
            target = shown_target(delivery.target)
            refused = await self._answer(hook_id, kept, delivery.automation, target)
        except HeadgateError as error:
            return Failed(
                f"the answer could not be stored: {error}", outcome.code, outcome.response
            )
        note = refused_note(refused) if refused else ""
        return Delivered(outcome.code, outcome.response, outcome.decision, note)

    def message(self, delivery: PendingDelivery, *, with_token: bool = True) -> EventMessage:
        """The message of an attempt. with_token: a hook notification contains the token and the URL
        with which the subscription can answer."""
        answerable = delivery.hook_id if with_token else None
        document = cloud_event(
            delivery.event,
            project=delivery.project,
            stack_header=delivery.stack_header,
            hook=delivery.hook,
            notified=notified_documents(delivery.notifications),
            signal_url=f"{self._public_url}/hooks/{answerable}/signal" if answerable else None,
            token=self._token_for(answerable, delivery.key.subscription_id) if answerable else None,
        )
        return EventMessage(
            id=str(delivery.event.id),
            type=delivery.event.type,
            document=document,
            sent_at=delivery.now,
            waiting=delivery.hook_id is not None,
        )
