"""Answers of subscriptions that do not count: the reason, and its note in the delivery history.

The rule is the same for all channels. An answer in a response is noted with the result of its
delivery (channels/attempt.py); an answer by message, which can arrive at any time, by
`IgnoredAnswers`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from channels.store.answer_notes import Notification, notifications, write_notes
from engine.hooks.answer_rights import Automation, automation_refusal, may_ever_answer
from engine.hooks.rule import decode_rule
from engine.principal import Principal
from engine.store.database import Database

#: A subscription with whether its owner may answer hooks now. Raises Unavailable.
Entitle = Callable[[Automation], Awaitable[Automation]]

#: Characters that are kept of a reason, an error or an answer.
KEPT_TEXT = 2000


def kept_text(text: str) -> str:
    """Shorten a text, and replace NUL, which PostgreSQL cannot store."""
    return text.replace("\x00", "\ufffd")[:KEPT_TEXT]


def standing_refusal(
    rule: Mapping[str, Any], automation: Automation, requester: Principal, *, escalated: bool
) -> str | None:
    """Why a subscription's answer to a hook does not count, whenever it comes; None: it may.

    rule: as stored with the hook. requester: of the change.
    """
    decoded = decode_rule(rule)
    if may_ever_answer(decoded, automation, requester):
        return None
    return automation_refusal(decoded, automation, requester, escalated=escalated)


def ignored_note(reason: str) -> str:
    """The note of an answer whose sender may not answer, or has not proved it."""
    return kept_text(f"the answer was ignored: {reason}")


def refused_note(reason: str) -> str:
    """The note of a refused answer, of a subscription that may answer."""
    return kept_text(f"the answer was refused: {reason}")


class IgnoredReason(StrEnum):
    """Why an answer by message does not count, for the metrics."""

    MALFORMED = "malformed"
    INVALID_TOKEN = "invalid_token"  # noqa: S105 - a label, not a secret
    REFUSED = "refused"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class IgnoredAnswer:
    """An answer by message that does not count.

    subscription_id: the subscription whose token it has; None: it has no valid token of the hook.
    answer: its content without the token; recorded only with a subscription_id. status, error_type:
    of the response if the answer had come over HTTP.
    """

    reason: str
    kind: IgnoredReason
    status: int
    error_type: str
    subscription_id: UUID | None = None
    answer: str = ""


class IgnoredAnswers:
    """Records answers by message over one channel."""

    def __init__(self, database: Database, entitle: Entitle, channel: str) -> None:
        self._database = database
        self._entitle = entitle
        self._channel = channel

    async def record(self, hook_id: UUID, ignored: IgnoredAnswer) -> None:
        """Note the answer at the delivery of the hook's notification to its subscription.

        Without a valid token its subscription is unknown: it is noted at the hook's notifications
        over the channel, and never in place of an earlier note. Nothing is recorded where there
        is no such delivery. Raises Unavailable.
        """
        known = ignored.subscription_id
        async with self._database.connection() as conn:
            found = await notifications(conn, hook_id, known, self._channel)
        if not found:
            return
        approves = await self._approving(found)
        noted = [(one, _note(one, ignored, approves[_owner(one)])) for one in found]
        answer = kept_text(ignored.answer) if known is not None else ""
        async with self._database.connection() as conn:
            await write_notes(conn, noted, answer=answer, replace=known is not None)

    async def _approving(
        self, notifications: list[Notification]
    ) -> dict[tuple[bool, Principal], bool]:
        """Whether each owner may answer hooks now; each is looked up once."""
        owners = {_owner(one): one.automation for one in notifications}
        return {owner: (await self._entitle(one)).approves for owner, one in owners.items()}


def _owner(notification: Notification) -> tuple[bool, Principal]:
    return notification.automation.configured, notification.automation.owner


def _note(notification: Notification, ignored: IgnoredAnswer, approves: bool) -> str:
    automation = replace(notification.automation, approves=approves)
    why = standing_refusal(
        notification.rule, automation, notification.requester, escalated=notification.escalated
    )
    if why is not None:
        return ignored_note(why)
    if ignored.subscription_id is None:
        return ignored_note(ignored.reason)
    return refused_note(ignored.reason)
