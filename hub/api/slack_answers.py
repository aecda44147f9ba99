"""Answers to hooks by buttons in Slack.

Slack waits 3 seconds for the response to a click. The answer can take longer, and its result is
sent to the `response_url` of the click. So an answer is a task, for which the request waits a
limited time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Protocol, Self
from urllib.parse import quote, urlsplit
from uuid import UUID

import orjson
import structlog
from structlog.typing import FilteringBoundLogger

from channels.chat.channel import HttpSender
from channels.chat.slack import answered_message, personal_message
from channels.chat.slack_interaction import ButtonValue, Click
from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.summary import shown_time
from engine.errors import (
    AnswerRefused,
    Forbidden,
    HeadgateError,
    LimitReached,
    NotFound,
    Unavailable,
)
from engine.hooks.answers import Answer
from engine.loop_guard import Fault, Supervisor
from engine.store.records import HookRecord
from engine.words import AnswerChannel, Decision, HookState, Json
from hub.auth.identity import Identity
from hub.auth.roles import HOLDERS, Right

log: FilteringBoundLogger = structlog.get_logger()

#: Seconds for which a request waits for its answer.
WAIT: Final = 2.0
#: Seconds for an answer with its messages; and for those that are under way at a stop.
LIMIT, DRAIN = 60.0, 5.0
#: Answers under way in a process.
MAX_ACTIVE: Final = 64
#: Attempts to send a message, and the seconds between them.
ATTEMPTS, PAUSE = 3, 1.0
#: What a decision is in a message.
DONE: Final = {Decision.CONTINUE: "approved", Decision.REJECT: "rejected"}
_FOR_SLACK: Final = UUID(int=0)


class HookAnswers(Protocol):
    """Answers hooks (`Hooks.answer`)."""

    async def answer(self, hook_id: UUID, answer: Answer, *, project: str | None) -> HookRecord: ...


class UserLookup(Protocol):
    """See `SlackUsers`."""

    async def identify(self, slack_id: str, project: str) -> Identity | None: ...


class ButtonCheck(Protocol):
    """See `HookTokens`."""

    async def made_button(self, hook_id: UUID, digest: str, token: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class SlackRules:
    """secret: signs the requests of Slack. team: the ID of the workspace of the users. user_ids:
    of those who may answer. hosts: to which messages about clicks may be sent. base_url: of the
    dashboard, without a slash at the end."""

    secret: str = field(repr=False)
    team: str
    user_ids: Collection[str]
    hosts: Collection[str]
    base_url: str


@dataclass(frozen=True, slots=True)
class SlackHooks:
    """The hooks of one database. read_hook: of any project; raises NotFound."""

    users: UserLookup
    answers: HookAnswers
    read_hook: Callable[[UUID], Awaitable[HookRecord]]
    buttons: ButtonCheck

    async def find(self, value: ButtonValue) -> "ClickedHook | None":
        """The hook of a button. None: no server of this database made the button. Raises NotFound,
        Unavailable."""
        if not await self.buttons.made_button(value.hook_id, value.digest, value.token):
            return None
        return ClickedHook(self, await self.read_hook(value.hook_id))


@dataclass(frozen=True, slots=True)
class ClickedHook:
    """hooks: of the database that has it."""

    hooks: SlackHooks
    hook: HookRecord


class SlackAnswers:
    """An async context manager, which waits for the answers under way when it is left."""

    def __init__(
        self,
        rules: SlackRules,
        find: Callable[[ButtonValue], Awaitable[ClickedHook | None]],
        http: HttpSender,
        supervisor: Supervisor | None = None,
    ) -> None:
        """find: as `SlackHooks.find`, in all databases of the server."""
        self.rules = rules
        self._find = find
        self._http = http
        self._guard = (supervisor or Supervisor()).guard("slack")
        self._active: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._active:
            return
        _, late = await asyncio.wait(self._active, timeout=DRAIN)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def accept(self, click: Click) -> None:
        """Answer the hook, and send what happened. Returns after WAIT seconds even if that takes
        longer. Raises LimitReached if too many answers are under way."""
        if len(self._active) >= MAX_ACTIVE:
            raise LimitReached(
                "too many answers from Slack are under way",
                remedy="Click again in a few seconds.",
                code="TooManyRequests",
            )
        task = asyncio.create_task(self._process(click))
        self._active.add(task)
        task.add_done_callback(self._active.discard)
        await asyncio.wait({task}, timeout=WAIT)

    async def _process(self, click: Click) -> None:
        try:
            async with asyncio.timeout(LIMIT):
                replies = await self._guard.attempt(self._replies(click), user=click.user_id)
                if isinstance(replies, Fault):
                    replies = [personal_message(f"The answer was not stored: {replies}.", "")]
                for reply in replies:
                    await self._send(click, reply)
        except (Unavailable, TimeoutError) as error:
            log.warning("slack.answer_failed", reason=str(error) or "it took too long")

    async def _replies(self, click: Click) -> list[Mapping[str, Json]]:
        """Answer the hook; return the messages about it."""
        link = self.rules.base_url
        try:
            value = self._value_of(click)
            found = await self._find_hook(value)
            link = hook_link(self.rules.base_url, found.hook)
            try:
                return await self._answer(click, value, found)
            except NotFound:
                # It has moved to another cell with its project. Otherwise, it is not found again.
                return await self._answer(click, value, await self._find_hook(value))
        except Unavailable as error:
            reason = error.finding.reason
            return [personal_message(f"The answer was not stored: {reason}. Click again.", link)]
        except HeadgateError as error:
            return [personal_message(str(error), link)]

    def _value_of(self, click: Click) -> ButtonValue:
        """Raises Forbidden."""
        if click.team_id != self.rules.team or click.user_id not in self.rules.user_ids:
            raise Forbidden(
                f"your user {click.user_id} of Slack belongs to no user of Headgate",
                remedy="Answer in the dashboard, or ask the operator to add you to"
                " [channels.slack] users.",
                code="MayNotAnswer",
            )
        if click.value is None:
            raise _invalid_button()
        return click.value

    async def _find_hook(self, value: ButtonValue) -> ClickedHook:
        """Raises Forbidden, NotFound, Unavailable."""
        found = await self._find(value)
        if found is None:
            raise _invalid_button()
        return found

    async def _answer(
        self, click: Click, value: ButtonValue, found: ClickedHook
    ) -> list[Mapping[str, Json]]:
        """Raises HeadgateError."""
        hooks, hook = found.hooks, found.hook
        who = await hooks.users.identify(click.user_id, hook.project)
        if who is None or not who.may(Right.ANSWER):
            raise Forbidden(
                f"your user {click.user_id} of Slack has no right to answer hooks of the project"
                f" {hook.project}",
                remedy=f"The role {HOLDERS[Right.ANSWER]} is required, of a user of Headgate whose"
                " access has not ended.",
                code="MayNotAnswer",
            )
        signal = Answer(
            click.decision,
            who.principal,
            AnswerChannel.SLACK,
            digest=value.digest,
            address=f"slack:{click.team_id}/{click.user_id}",
        )
        try:
            answered = await hooks.answers.answer(hook.id, signal, project=hook.project)
        except AnswerRefused as error:
            return await self._after_refusal(click, found, str(error))
        waits = answered.state == HookState.WAITING
        text = answer_text(answered, click.decision, who.name, datetime.now(UTC))
        link = hook_link(self.rules.base_url, hook)
        return [answered_message(click.blocks, text, link, waits=waits)]

    async def _after_refusal(
        self, click: Click, found: ClickedHook, reason: str
    ) -> list[Mapping[str, Json]]:
        """The message shows that the hook is decided; only the user sees why the click did not
        count."""
        link = hook_link(self.rules.base_url, found.hook)
        personal = personal_message(reason, link)
        try:
            hook = await found.hooks.read_hook(found.hook.id)
        except NotFound:  # it has moved to another cell since
            return [personal]
        if hook.state == HookState.WAITING:  # the hook has changed, and has a new message
            return [personal]
        return [answered_message(click.blocks, closed_text(hook), link, waits=False), personal]

    async def _send(self, click: Click, reply: Mapping[str, Json]) -> None:
        """Send a message about the click. A failure is logged: the answer is stored."""
        host = urlsplit(click.response_url).hostname or ""
        if host not in self.rules.hosts:
            log.warning("slack.refused_response_url", host=host)
            return
        message = EventMessage(str(_FOR_SLACK), "", {}, datetime.now(UTC))
        endpoint = Endpoint(_FOR_SLACK, click.response_url, ())
        body, headers = orjson.dumps(reply), {"content-type": "application/json"}
        outcome: Delivered | Failed = Failed("")
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(PAUSE)
            outcome = await self._http.post(message, endpoint, body, headers)
            if isinstance(outcome, Delivered):
                return
        log.warning("slack.message_failed", reason=getattr(outcome, "reason", ""))


def _invalid_button() -> Forbidden:
    return Forbidden(
        "this button is not valid, or not valid any longer",
        remedy="Answer in the dashboard.",
        code="MayNotAnswer",
    )


def hook_link(base_url: str, hook: HookRecord) -> str:
    return f"{base_url}/#/{quote(hook.project, safe='')}/inbox/{hook.id}"


def answer_text(hook: HookRecord, decision: Decision, by: str, now: datetime) -> str:
    """What an answer has done. by: who has answered."""
    what = f"{hook_subject(hook)} {DONE[decision]} by {by}"
    if hook.state != HookState.WAITING:
        at = hook.decided_at or now
        return f"{what}, {at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if hook.rule.get("dry"):
        return f"{what}, for a rule that is a dry run"
    given, needed = len(hook.approved_by), hook.rule.get("approvals", 1)
    return f"{what}: {given} of {needed} approvals"


def closed_text(hook: HookRecord) -> str:
    """The state of a hook that waits no longer."""
    decision: Any = hook.decision
    what = DONE.get(decision, decision) or "closed"
    by = f" by {hook.decided_by}" if hook.decided_by else ""
    at = hook.decided_at
    when = f", {shown_time(at.isoformat())}" if at else ""
    return f"{hook_subject(hook)}: {hook.state}, {what}{by}{when}"


def hook_subject(hook: HookRecord) -> str:
    """``shop/db: pre-delete``."""
    path = f"{hook.root_stack_name}/{hook.path}" if hook.path else hook.root_stack_name
    return f"{path}: {hook.point}"
