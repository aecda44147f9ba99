"""Lets requests in: who it is, how often, and not while guessing. Keeps counts, asks others."""

from contextlib import AsyncExitStack

from engine.errors import HeadgateError
from engine.rate_limiter import RateLimiter
from hub.auth.address_blocks import block_of
from hub.auth.credentials import RequestCredentials
from hub.auth.fair_queue import FairQueue, QueueFull
from hub.auth.identity import Authenticator, Identity
from hub.auth.throttle import Lockout, TooMany

UNAUTHORIZED = "Unauthorized"
#: Tokens from address blocks that sent too many wrong ones, which another service judges: at a
#: time, of one block at a time; that wait, and all together.
SUSPECTS = {"at_once": 4, "each": 1, "waiting": 32, "total": 1024}


class Gatekeeper:
    """by_address, by_token: requests a second; 0.0: any number. Times in seconds of one clock.

    failures, lockout: wrong tokens of an address block until others are answered 429, and for how
    long. A right token is accepted all the same: it has too many bits to be guessed. Attempts by
    password are counted by `PasswordChecker`.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        *,
        by_address: float,
        by_token: float,
        failures: int,
        lockout: float,
    ) -> None:
        self.authenticator = authenticator
        self._by_address = RateLimiter[str](by_address)
        self._by_token = RateLimiter[str](by_token)
        self._lockout = Lockout(failures, lockout)
        self._suspects = FairQueue(**SUSPECTS)

    def pass_by(self, address: str, now: float) -> None:
        """Raises TooMany: this address sends more than it may."""
        block = block_of(address)
        _in_time(self._by_address.spend(block, now), "this address", "requests_per_address")

    async def admit(
        self, presented: RequestCredentials, project: str, address: str, now: float
    ) -> Identity:
        """Raises what the authenticator does, and TooMany."""
        try:
            who = await self._identified(presented, project, block_of(address), now)
        except HeadgateError as error:
            if error.code == UNAUTHORIZED and (presented.token or presented.bearer):
                self.count_wrong(address, now)
            raise
        if who.key:
            _in_time(self._by_token.spend(who.key, now), who.name, "requests_per_token")
        return who

    async def _identified(
        self, presented: RequestCredentials, project: str, block: str, now: float
    ) -> Identity:
        """Raises TooMany: senders of wrong tokens wait for one another."""
        suspect = self._lockout.left(block, now) > 0
        async with AsyncExitStack() as stack:
            if suspect and not self.authenticator.knows(presented, project):
                try:
                    await stack.enter_async_context(self._suspects.turn(block))
                except QueueFull:
                    raise _too_many_wrong(1.0) from None
            return await self.authenticator.identify(presented, project)

    def count_wrong(self, address: str, now: float) -> None:
        """A wrong token came from there. Raises TooMany, when too many did before."""
        block = block_of(address)
        left = self._lockout.left(block, now)
        if left > 0:
            raise _too_many_wrong(left) from None
        self._lockout.failed(block, now)


def _too_many_wrong(wait: float) -> TooMany:
    return TooMany(
        "too many invalid tokens from this address",
        "Wait for the time in Retry-After, or use a valid token; the limits are [auth]"
        " failures and lockout.",
        wait,
    )


def _in_time(wait: float, who: str, setting: str) -> None:
    if wait > 0:
        raise TooMany(
            f"{who} sends more requests than it may",
            f"Wait for the time in Retry-After; the limit is [server] {setting}.",
            wait,
        )
