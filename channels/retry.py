"""When a failed delivery is retried, and when it is dead. Pure: randomness is an argument."""

from dataclasses import dataclass

from engine.back_off import BackOff


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """attempts: maximum number. first, max_pause: pauses in seconds, see `BackOff`.

    attempt_timeout: seconds for one attempt.
    """

    attempts: int = 12
    first: float = 1.0
    max_pause: float = 900.0
    attempt_timeout: float = 15.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 < self.first <= self.max_pause or self.attempt_timeout <= 0:
            raise ValueError(f"invalid retry policy: {self}")

    @property
    def back_off(self) -> BackOff:
        return BackOff(self.first, self.max_pause)


@dataclass(frozen=True, slots=True)
class TryAgain:
    """wait: seconds from now."""

    wait: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """why: a clause for the delivery history."""

    why: str


def after_failure(
    policy: RetryPolicy, attempts: int, *, retry_after: float | None, final: bool, chance: float
) -> TryAgain | GiveUp:
    """Decide what follows the failure of attempt number `attempts` (from 1).

    chance: a random number, 0 <= chance < 1. The receiver's Retry-After (RFC 9110) is respected
    within the policy's bounds.
    """
    if final:
        return GiveUp("the endpoint is gone")
    if attempts >= policy.attempts:
        return GiveUp(f"{attempts} attempts failed")
    if retry_after is not None:
        return TryAgain(min(max(retry_after, policy.first), policy.max_pause))
    return TryAgain(policy.back_off.pause(attempts, chance))


def horizon(policy: RetryPolicy, attempts: int = 0) -> float:
    """The maximum seconds until a delivery that keeps failing is dead, after so many attempts.

    Retry-After is not considered.
    """
    left = range(max(attempts, 1), policy.attempts)
    tries = max(policy.attempts - attempts, 0)
    return sum(map(policy.back_off.ceiling, left)) + tries * policy.attempt_timeout
