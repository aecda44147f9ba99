"""When a delivery is tried again, and when it is given up. Pure: chance is handed in."""

from dataclasses import dataclass

from engine.back_off import BackOff


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """attempts: how many in all. first, longest: seconds to wait, doubling from one to the other.

    attempt_timeout: the longest one attempt may take, in seconds.
    """

    attempts: int = 12
    first: float = 1.0
    longest: float = 900.0
    attempt_timeout: float = 15.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 < self.first <= self.longest or self.attempt_timeout <= 0:
            raise ValueError(f"invalid retry policy: {self}")

    @property
    def back_off(self) -> BackOff:
        return BackOff(self.first, self.longest)


@dataclass(frozen=True, slots=True)
class TryAgain:
    """wait: seconds from now."""

    wait: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """why: a sentence's end, for people."""

    why: str


def after_failure(
    policy: RetryPolicy, attempts: int, *, retry_after: float | None, final: bool, chance: float
) -> TryAgain | GiveUp:
    """Decide what follows the failure of attempt number `attempts` (from 1).

    chance: a random number, 0 <= chance < 1. What the receiver asked for with Retry-After is done,
    within the policy's bounds.
    """
    if final:
        return GiveUp("the endpoint is gone")
    if attempts >= policy.attempts:
        return GiveUp(f"{attempts} attempts failed")
    if retry_after is not None:
        return TryAgain(min(max(retry_after, policy.first), policy.longest))
    return TryAgain(policy.back_off.pause(attempts, chance))


def horizon(policy: RetryPolicy, attempts: int = 0) -> float:
    """Seconds until a delivery that always fails is given up, at most, after so many attempts.

    Without what receivers ask for with Retry-After.
    """
    left = range(max(attempts, 1), policy.attempts)
    tries = max(policy.attempts - attempts, 0)
    return sum(map(policy.back_off.ceiling, left)) + tries * policy.attempt_timeout
