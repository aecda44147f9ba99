"""Lets requests in: who it is, how often, and not while guessing. Keeps counts, asks others."""

from engine.errors import HeadgateError
from hub.auth.identity import Authenticator, Identity
from hub.auth.presented import Presented
from hub.auth.throttle import Lockout, Pace, TooMany

UNAUTHORIZED = "Unauthorized"


class Gatekeeper:
    """by_address, by_token: requests a second; 0.0: any number. Times in seconds of one clock."""

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
        self._by_address = Pace(by_address)
        self._by_token = Pace(by_token)
        self._lockout = Lockout(failures, lockout)

    def pass_by(self, address: str, now: float) -> None:
        """Raises TooMany: this address sends more than it may."""
        _in_time(self._by_address.spend(address, now), "this address", "requests_per_address")

    async def admit(self, presented: Presented, project: str, address: str, now: float) -> Identity:
        """Raises what the authenticator does, and TooMany.

        Who was let in a moment ago gets in also while somebody else at their address guesses.
        """
        if not self.authenticator.knows(presented, project):
            self.refuse_guessing(address, now)
        try:
            who = await self.authenticator.identify(presented, project)
        except HeadgateError as error:
            if error.code == UNAUTHORIZED and not presented.nothing:
                self.guessed(address, now)
            raise
        if who.key:
            _in_time(self._by_token.spend(who.key, now), who.name, "requests_per_token")
        return who

    def refuse_guessing(self, address: str, now: float) -> None:
        """Raises TooMany: too many wrong ones came from there."""
        left = self._lockout.left(address, now)
        if left > 0:
            raise TooMany(
                "too many wrong tokens or passwords came from this address",
                "Wait as long as Retry-After says; the operator sets it in [auth] failures and"
                " lockout.",
                left,
            )

    def guessed(self, address: str, now: float) -> None:
        """A wrong token or password came from there."""
        self._lockout.failed(address, now)


def _in_time(wait: float, who: str, setting: str) -> None:
    if wait > 0:
        raise TooMany(
            f"{who} sends more requests than it may",
            f"Wait as long as Retry-After says; the operator sets it in [server] {setting}.",
            wait,
        )
