"""One attempt at one delivery: write the message, hand it to its channel, say what comes of it.

An answer that came with the receiver's response is taken before the delivery is settled: if we die
between the two, the message goes out again and the same answer is taken again, which changes
nothing; the other way round the answer would be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import assert_never
from uuid import UUID

from structlog.contextvars import bound_contextvars

from channels.contract import Channel, Delivered, Endpoint, EventMessage, Failed, ReceiverDecision
from channels.envelope import cloud_event, notified_documents
from channels.ignored_answers import (
    Entitle,
    ignored_note,
    kept_text,
    refused_note,
    standing_refusal,
)
from channels.retry import GiveUp, RetryPolicy, TryAgain, after_failure, horizon
from channels.store.records import DeliveryState, Due, Settlement
from channels.targets import shown_target
from engine.errors import HeadgateError, Unavailable
from engine.hooks.automation import Automation
from engine.loops import Supervisor
from engine.principal import Principal
from engine.tracing import Tracer

#: Answers a hook: hook id, decision, which subscription, its target as people may see it. Returns
#: why the answer was refused, or None. Raises Unavailable when it could not be taken now.
AnswerHook = Callable[[UUID, ReceiverDecision, Automation, str], Awaitable[str | None]]

#: A hook's token for a subscription: hook id, subscription id.
TokenFor = Callable[[UUID, UUID], str]

#: Told of each attempt: channel, what the delivery is now, seconds.
Tried = Callable[[str, DeliveryState, float], None]

#: Seconds for taking an answer.
ANSWER_TIMEOUT = 10.0


def settlement(
    due: Due, outcome: Delivered | Failed, policy: RetryPolicy, chance: float
) -> Settlement:
    """Decide what is written down of an attempt. Pure."""
    match outcome:
        case Delivered():
            return _settlement(due, outcome, DeliveryState.DELIVERED, outcome.note)
        case Failed():
            follows = after_failure(
                policy,
                due.attempts,
                retry_after=outcome.retry_after,
                final=outcome.final,
                chance=chance,
            )
            match follows:
                case TryAgain(wait=wait):
                    left = horizon(policy, due.attempts)
                    return _settlement(
                        due, outcome, DeliveryState.PENDING, outcome.reason, wait=wait, left=left
                    )
                case GiveUp(why=why):
                    said = f"{outcome.reason}; {why}"
                    return _settlement(due, outcome, DeliveryState.DEAD, said, gone=outcome.final)
                case _ as never:
                    assert_never(never)
        case _ as never_outcome:
            assert_never(never_outcome)


def untried(due: Due) -> Settlement:
    """It was not its turn; it stays what it was."""
    nothing = Failed("")
    return replace(_settlement(due, nothing, DeliveryState.PENDING, ""), untried=True)


def _settlement(
    due: Due,
    outcome: Delivered | Failed,
    state: DeliveryState,
    error: str,
    *,
    wait: float = 0.0,
    left: float = 0.0,
    gone: bool = False,
) -> Settlement:
    return Settlement(
        key=due.key,
        id=due.id,
        hook_id=due.hook_id,
        channel=due.channel,
        target=shown_target(due.target),
        event_id=due.event.id,
        event_type=due.event.type,
        attempts=due.attempts,
        state=state,
        code=outcome.code,
        error=kept_text(error),
        answer=kept_text(outcome.answer),
        wait=wait,
        left=left,
        gone=gone,
    )


def _refusal(due: Due) -> str | None:
    """Why a subscription's answer to the hook does not count, whenever it comes; None: it may."""
    if due.hook_id is None or due.hook is None:
        return None
    hook = due.hook
    requester = Principal(hook.requested_by_id, hook.requested_by)
    escalated = hook.escalated_at is not None
    return standing_refusal(hook.rule, due.automation, requester, escalated=escalated)


class Attempts:
    """Makes attempts; holds what they need, and no state."""

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
        tried: Tried,
        tracer: Tracer,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._guard = (supervisor or Supervisor()).guard("delivery")
        self._tried = tried
        self._tracer = tracer
        self._channels = channels
        self._policy_of = policy_of
        self._token_for = token_for
        self._entitle = entitle
        self._public_url = public_url.rstrip("/")
        self._answer = answer
        self._random = random

    async def try_once(self, due: Due) -> Settlement:
        """Raises nothing: what goes wrong is a failed attempt."""
        names = {"delivery": due.id, "subscription": due.key.subscription_id,
                 "stack_id": due.key.stack_id}  # fmt: skip
        with bound_contextvars(**{name: str(one) for name, one in names.items()}):
            return await self._tried_once(due)

    async def _tried_once(self, due: Due) -> Settlement:
        policy, began = self._policy_of(due.channel), asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(policy.attempt_timeout + ANSWER_TIMEOUT):
                outcome = await self._deliver(due)
        except TimeoutError:
            outcome = Failed("the attempt took too long")
        except Exception as error:
            outcome = Failed(str(self._guard.report(error, channel=due.channel)))
        said = settlement(due, outcome, policy, self._random())
        self._tried(due.channel, said.state, asyncio.get_running_loop().time() - began)
        return said

    async def send(
        self, channel: str, message: EventMessage, endpoint: Endpoint
    ) -> Delivered | Failed:
        way = self._channels.get(channel)
        if way is None:
            return Failed(f'there is no channel "{channel}" here')
        return await way.deliver(message, endpoint)

    async def _deliver(self, due: Due) -> Delivered | Failed:
        if due.undecryptable:
            return Failed(due.undecryptable)
        endpoint = Endpoint(
            due.key.subscription_id, due.target, due.secrets, due.automation.configured
        )
        parent = due.event.traceparent or ""
        span = self._tracer.begin(f"deliver {due.channel}", parent, event=due.event.type)
        outcome: Delivered | Failed = Failed("it was cut off")
        ignored: str | None = None
        try:
            due = await self._entitled(due)
            ignored = _refusal(due)
            message = self.message(due, with_token=ignored is None)
            outcome = await self.send(
                due.channel, replace(message, traceparent=span.traceparent), endpoint
            )
        except Unavailable as error:
            outcome = Failed(f"its owner's rights could not be looked up: {error}")
        finally:
            span.end(outcome=type(outcome).__name__.lower(), attempt=due.attempts)
        if isinstance(outcome, Delivered) and outcome.decision and due.hook_id:
            if ignored is not None:
                return replace(outcome, note=ignored_note(ignored))
            return await self._take(due, due.hook_id, outcome, outcome.decision)
        return outcome

    async def _entitled(self, due: Due) -> Due:
        """With its owner's rights, where it may have something to answer."""
        if due.hook_id is None:
            return due
        return replace(due, automation=await self._entitle(due.automation))

    async def _take(
        self, due: Due, hook_id: UUID, outcome: Delivered, said: ReceiverDecision
    ) -> Delivered | Failed:
        try:
            kept = replace(said, reason=kept_text(said.reason))
            target = shown_target(due.target)
            refused = await self._answer(hook_id, kept, due.automation, target)
        except HeadgateError as error:
            return Failed(f"the answer could not be taken: {error}", outcome.code, outcome.answer)
        note = refused_note(refused) if refused else ""
        return Delivered(outcome.code, outcome.answer, outcome.decision, note)

    def message(self, due: Due, *, with_token: bool = True) -> EventMessage:
        """hook_id is set of notices of hooks that wait: they carry the way to answer, for a
        subscription that may."""
        waiting, answerable = due.hook_id, due.hook_id if with_token else None
        document = cloud_event(
            due.event,
            project=due.project,
            plate=due.plate,
            hook=due.hook,
            told=notified_documents(due.notices),
            signal_url=f"{self._public_url}/hooks/{answerable}/signal" if answerable else None,
            token=self._token_for(answerable, due.key.subscription_id) if answerable else None,
        )
        return EventMessage(
            id=str(due.event.id),
            type=due.event.type,
            document=document,
            sent_at=due.now,
            waiting=waiting is not None,
        )
