"""Authenticates requests within the limits on requests and failed attempts."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from engine.errors import HeadgateError
from hub.auth.identity import Authenticator, Identity
from hub.auth.lockout import TokenLockout
from hub.auth.request_counts import RequestCounts
from hub.auth.request_credentials import RequestCredentials
from hub.auth.shared_rate import SharedRate
from hub.auth.throttle import UNLIMITED, QueueFull, TooManyRequests, TurnQueue, block_of

UNAUTHORIZED = "Unauthorized"
#: Limits of the queue for tokens that Keystone verifies, from address blocks that are locked out.
SUSPECTS = {"at_once": 4, "each": 1, "waiting": 32, "total": 1024}


class RequestLimits:
    """The limits on requests to all processes of a server. by_address, by_token: requests per
    second; unknown_ids: reported IDs per second; 0.0: unlimited. counts: of all processes. Times
    in seconds of the monotonic clock.

    failures, lockout: the number of wrong tokens after which an address block is locked out, and
    the duration. Valid tokens are accepted during a lockout, because tokens cannot be guessed.
    `PasswordChecker` counts attempts by password.
    """

    def __init__(
        self,
        *,
        by_address: float,
        by_token: float,
        unknown_ids: float,
        failures: int,
        lockout: float,
        counts: RequestCounts,
    ) -> None:
        self.counts = counts
        self._by_address = SharedRate(by_address, counts.by_address)
        self.by_token = SharedRate(by_token, counts.by_token)
        #: Physical IDs in reports that no resource has, by client.
        self.unknown_ids = SharedRate(unknown_ids, counts.unknown_ids)
        #: Of the reports of each client, one after the other: what it counts limits the next one.
        self.reports = TurnQueue(at_once=UNLIMITED, each=1, waiting=None)
        self.lockout = TokenLockout(failures, lockout, counts.wrong_tokens)
        self.suspects = TurnQueue(**SUSPECTS)

    def limit_address(self, address: str, now: float) -> None:
        """Raises TooManyRequests if this address exceeds `requests_per_address`."""
        block = block_of(address)
        _check_rate(self._by_address.spend(block, now), "this address", "requests_per_address")

    def count_wrong(self, address: str, now: float) -> None:
        """Count a wrong token of an address. Raises TooManyRequests during its lockout."""
        block = block_of(address)
        if (left := self.lockout.count_failure(block, now)) > 0:
            raise _too_many_wrong(left) from None


class Gatekeeper:
    """limits: shared by the gatekeepers of all cells."""

    def __init__(self, authenticator: Authenticator, limits: RequestLimits) -> None:
        self.authenticator = authenticator
        self.limits = limits

    async def admit(
        self, credentials: RequestCredentials, project: str, address: str, now: float
    ) -> Identity:
        """Raises the errors of the authenticator, and TooManyRequests."""
        try:
            who = await self._identify(credentials, project, address, now)
        except HeadgateError as error:
            if error.code == UNAUTHORIZED and (credentials.token or credentials.bearer):
                self.limits.count_wrong(address, now)
            raise
        if who.key:
            _check_rate(self.limits.by_token.spend(who.key, now), who.name, "requests_per_token")
        return who

    async def _identify(
        self, credentials: RequestCredentials, project: str, address: str, now: float
    ) -> Identity:
        """During a lockout, unknown tokens wait in a queue. Raises TooManyRequests."""
        if self.authenticator.knows(credentials, project):
            return await self.authenticator.identify(credentials, project)
        async with self.turn(address, now):
            return await self.authenticator.identify(credentials, project)

    @asynccontextmanager
    async def turn(self, address: str, now: float) -> AsyncIterator[None]:
        """Wait for a turn to let another service check a credential, if the address is locked out.
        Raises TooManyRequests if the queue is full."""
        block = block_of(address)
        async with AsyncExitStack() as stack:
            if self.limits.lockout.seconds_left(block, now) > 0:
                try:
                    await stack.enter_async_context(self.limits.suspects.turn(block))
                except QueueFull:
                    raise _too_many_wrong(1.0) from None
            yield


def _too_many_wrong(wait: float) -> TooManyRequests:
    return TooManyRequests(
        "too many invalid tokens from this address",
        "Wait for the time in Retry-After, or use a valid token; the limits are [auth]"
        " failures and lockout.",
        wait,
    )


def _check_rate(wait: float, who: str, setting: str) -> None:
    if wait > 0:
        raise TooManyRequests(
            f"{who} sends too many requests",
            f"Wait for the time in Retry-After; the limit is [server] {setting}.",
            wait,
        )
