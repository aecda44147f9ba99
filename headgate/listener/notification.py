"""The notification of a hook, as a handler gets it."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from headgate.errors import RequestError

if TYPE_CHECKING:
    from headgate import documents

Json = Any
log = logging.getLogger("headgate.listener")
#: The type of the event with which a hook opens, and of those with which it closes.
WAITING = "headgate.hook.waiting"
CLOSING = ("headgate.hook.answered", "headgate.hook.expired", "headgate.hook.superseded")


class HookClosed(Exception):
    """The hook no longer waits for this listener: it is decided, its deadline has passed, a newer
    change superseded it, or the listener may not answer it. Let it end the handler."""


class AnswerInvalid(Exception):
    """Headgate refuses an answer, and the hook still waits."""


class AnswerSender(Protocol):
    """Sends answers to Headgate over one channel."""

    async def send(self, notification: "HookNotification", body: Mapping[str, Json]) -> str | None:
        """Send one answer; return the new deadline of the hook, if the channel reports it.

        Raises HookClosed, AnswerInvalid, and RequestError if there was no result.
        """


class HookNotification:
    """A hook that waits for an answer. `event` is the complete CloudEvent.

    reply_to: where answers are sent over AMQP.
    """

    def __init__(self, event: Mapping[str, Json], sender: AnswerSender, reply_to: str = "") -> None:
        self.event = event
        self.data = cast("documents.Notification", event["data"])
        self.reply_to = reply_to
        self._sender = sender
        #: The latest deadline that Headgate has reported; None: a hook about drift.
        self.deadline = _time(self.hook["deadline"])
        #: Set when the deadline has moved.
        self.moved = asyncio.Event()

    @property
    def hook(self) -> "documents.NotificationHook":
        return self.data["hook"]

    @property
    def id(self) -> str:
        """The ID of the hook."""
        return self.hook["id"]

    @property
    def point(self) -> str:
        return self.hook["point"]

    @property
    def path(self) -> str:
        """The path of the resource from the root stack; of a whole stack, that of the stack."""
        return self.hook["path"]

    @property
    def stack(self) -> "documents.NotificationStack":
        return self.data["stack"]

    @property
    def resource(self) -> "documents.HookResource":
        """The resource. Raises LookupError at a hook of a whole stack, which has `change`."""
        resource = self.data["resource"]
        if resource is None:
            raise LookupError(f"a hook at {self.point} has no resource; use `change`")
        return resource

    @property
    def properties(self) -> dict[str, Json]:
        return self.resource["properties"]

    @property
    def change(self) -> "documents.HookChange":
        """The change of a whole stack. Raises LookupError at a hook of a resource."""
        change = self.data.get("change")
        if change is None:
            raise LookupError(f"a hook at {self.point} has no change; use `resource`")
        return change

    @property
    def is_dry(self) -> bool:
        """Whether a dry-run rule opened the hook, so that the answer is recorded only."""
        return self.hook["dry"]

    async def progress(self, reason: str = "", *, extend: str = "") -> bool:
        """Report progress to the people who wait, and extend the deadline. extend: a duration, such
        as `30m`; by default the timeout of the rule. Does nothing at a hook of a dry-run rule.

        Returns whether Headgate has extended the deadline: it does not beyond `at_most` of the
        rule, or while it does not respond. Raises HookClosed if the hook no longer waits.
        """
        if self.is_dry:
            return False
        try:
            await self.extend(reason, extend)
        except (AnswerInvalid, RequestError) as error:
            log.warning("%s %s: the deadline was not extended: %s", self.path, self.point, error)
            return False
        return True

    async def extend(self, reason: str = "", extend: str = "") -> None:
        """The same, but raises AnswerInvalid and RequestError."""
        body = {"decision": "progress", "reason": reason}
        await self.send({**body, "extend": extend} if extend else body)

    async def send(self, body: Mapping[str, Json]) -> None:
        """Send an answer for the change that this notification shows."""
        deadline = await self._sender.send(self, {**body, "digest": self.hook["digest"]})
        if deadline:
            self.deadline = _time(deadline)
            self.moved.set()


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
