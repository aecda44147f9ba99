"""Deletes the credentials that the authenticator has got for changes and that none uses."""

import asyncio
from datetime import timedelta
from typing import Final

from engine.bounded_wait import wait_at_most
from engine.loop_guard import Supervisor
from hub.auth.identity import Authenticator

#: The pause between two searches for unused credentials.
EVERY: Final = timedelta(minutes=1)


class TrustDeletion:
    """One loop."""

    def __init__(self, authenticator: Authenticator, *, supervisor: Supervisor) -> None:
        self._authenticator = authenticator
        self._guard = supervisor.guard("trusts", max_pause=EVERY.total_seconds())

    async def run(self, stop: asyncio.Event) -> None:
        async def turn() -> None:
            if not await self._authenticator.delete_unused():
                await wait_at_most(stop, EVERY.total_seconds())

        await self._guard.run(turn, stop)
