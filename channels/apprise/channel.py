"""Sends each event, in words, to a service that the operator has named: Matrix, Telegram, PagerDuty
and others that Apprise knows.

A subscription names a service and never its URL, because Apprise has services that write files or
start programs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from channels.apprise.services import Service
from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.digest_summary import summarize_digest
from channels.summary import Summary, plain_text, summarize
from engine.errors import Finding, Invalid

#: Maximum characters of a name in an error.
MAX_SHOWN = 80


class AppriseChannel:
    """services: by name. targets: globs on the names that projects may subscribe. base_url: of the
    dashboard."""

    name = "apprise"

    def __init__(
        self, services: Mapping[str, Service], targets: Sequence[str], base_url: str
    ) -> None:
        self._services = services
        self._targets = targets
        self._base_url = base_url.rstrip("/")

    async def check_target(self, target: str) -> None:
        """Raises Invalid unless the target is a service that projects may name."""
        if target in self._services and self._may_name(target):
            return
        names = ", ".join(one for one in self._services if self._may_name(one)) or "none"
        reason = f'"{target[:MAX_SHOWN]}" is not a service that subscriptions may name'
        remedy = f"Services: {names}. The operator allows them with [channels.apprise] targets."
        raise Invalid([Finding("target", reason, remedy, "InvalidTarget")])

    async def deliver(self, message: EventMessage, endpoint: Endpoint) -> Delivered | Failed:
        return await self._send(summarize(message.document, self._base_url), endpoint)

    async def deliver_digest(
        self, messages: Sequence[EventMessage], endpoint: Endpoint
    ) -> Delivered | Failed:
        return await self._send(summarize_digest(messages, self._base_url), endpoint)

    async def _send(self, summary: Summary, endpoint: Endpoint) -> Delivered | Failed:
        service = self._services.get(endpoint.target)
        if service is None:
            return Failed("the operator has removed this service")
        if not endpoint.configured and not self._may_name(endpoint.target):
            return Failed("the operator does not allow this service any longer")
        try:
            accepted = await asyncio.to_thread(service, summary.title, plain_text(summary))
        except Exception as error:  # plug-ins of Apprise may raise anything; its text may be secret
            return Failed(f"Apprise failed: {type(error).__name__}")
        if not accepted:
            return Failed("the service refused the message, or cannot be reached")
        return Delivered(None)

    def _may_name(self, name: str) -> bool:
        return any(fnmatchcase(name, glob) for glob in self._targets)
