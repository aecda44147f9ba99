"""The observation of one stack: what is left of it, and when the next one is. Pure."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from engine.plan.convergence import ConvergencePolicy, ignores
from engine.plan.drift import REPAIRED_AS
from engine.plan.observation_risk import Risk, next_interval
from engine.store.observer import observation_schedule
from engine.store.observer.found_drift import FoundDrift
from engine.store.observer.observation_schedule import (
    ClaimedStack,
    DeferredObservation,
    FinishedObservation,
)
from engine.store.stacks.stack_locks import split_path
from engine.types.observation import Observation
from engine.words import FoundBy, ObservedState, OnDrift

#: After a repair window has opened, its stacks are observed within a fifth of this time.
WINDOW_DELAY = timedelta(minutes=5)
#: Before every change.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class StackObservation:
    """The observation of one stack. chance: from 0 up to 1, of its interval; the same for the
    stacks of a batch, so that those with the same interval stay together. after: the last resource
    so far. retry: until the next attempt, if an endpoint has failed. deferred: resources that the
    budget of requests leaves out; budget: until there is more; shortage: why. polled: a provider
    was asked. nested: observable resources that own nested stacks, for which none is. changed:
    resources that have changed since they were read, so that nothing is known. differing: those
    that this observation has found in a state that repairs change. ended_at: by the time of the
    database; None: it has not ended.
    """

    stack: ClaimedStack
    policy: ConvergencePolicy | None
    chance: float
    after: UUID = observation_schedule.FIRST
    observable: int = 0
    not_observable: int = 0
    nested: int = 0
    retry: timedelta | None = None
    deferred: list[UUID] = field(default_factory=list)
    budget: timedelta | None = None
    shortage: str = ""
    polled: bool = False
    changed: set[UUID] = field(default_factory=set)
    differing: set[UUID] = field(default_factory=set)
    ended_at: datetime | None = None

    @property
    def is_due(self) -> bool:
        """Its policy may have ended since it became due."""
        stack, policy = self.stack, self.policy
        return bool(stack.requested or stack.reported or (policy and policy.every))

    @property
    def is_scheduled_root(self) -> bool:
        """Whether it makes its nested stacks due. A request does that itself, and reported changes
        make none due."""
        stack = self.stack
        scheduled = self.policy and self.policy.every and stack.resources is None
        return bool(stack.stack_id == stack.root_id and not stack.requested and scheduled)

    @property
    def is_of_reports(self) -> bool:
        """Whether it is only of resources that were reported, also if a budget has left them out
        before."""
        return self.stack.resources is not None and not self.stack.rest

    @property
    def duration(self) -> timedelta:
        """How long it has taken, after its end."""
        return (self.ended_at or self.stack.claimed_at) - self.stack.claimed_at

    @property
    def found_by(self) -> FoundBy:
        """What causes the observation."""
        if self.stack.requested:
            return FoundBy.REQUEST
        return FoundBy.REPORT if self.stack.reported else FoundBy.POLICY

    def remaining_reports(self) -> list[tuple[UUID, UUID]]:
        """(ID of the stack, ID of the resource) for each reported resource not observed yet."""
        left = sorted(one for one in self.stack.resources or () if one > self.after)
        return [(self.stack.stack_id, one) for one in left]

    def record(self, resource_id: UUID, state: str | None) -> None:
        """What was written of a resource. state: None: as recorded."""
        if state in REPAIRED_AS:
            self.differing.add(resource_id)
        else:
            self.differing.discard(resource_id)

    @property
    def found_drift(self) -> FoundDrift | None:
        """The drift that this observation has found, which is reported, held by a hook or repaired;
        None: nothing follows."""
        root_id, policy = self.stack.root_id, self.policy
        if not self.differing or root_id is None or policy is None:
            return None
        if policy.on_drift is OnDrift.IGNORE:
            return None
        return FoundDrift(
            root_id, self.stack.stack_id, sorted(self.differing), self.stack.claimed_at
        )

    def finish(self, now: datetime) -> FinishedObservation:
        """now: the database's time."""
        every = self.policy.every if self.policy else None
        every = every and next_interval(every, self._risk, self.chance)
        if every is not None and self.retry is not None:
            every = min(every, self.retry)
        opens = self.policy.repairs_in(now) if self.policy else None
        if every is not None and opens:
            # Repairs start after an observation.
            every = min(every, opens + WINDOW_DELAY * self.chance)
        return FinishedObservation(
            self.stack, every, self.observable, self.not_observable, self._has_polled
        )

    def retry_after(self, pause: timedelta) -> None:
        """The next attempt is after the shortest of these times."""
        self.retry = min(pause, self.retry or pause)

    def defer(self, resource_id: UUID, wait: timedelta, shortage: str) -> None:
        """Leave out a resource, because the budget of requests is used up."""
        self.observable += 1
        self.deferred.append(resource_id)
        if self.budget is None or wait < self.budget:
            self.budget, self.shortage = wait, shortage

    def finish_deferred(self) -> DeferredObservation:
        return DeferredObservation(
            self.stack, self.deferred, self.budget or timedelta(0), self.shortage,
            self.observable, self.not_observable, self._has_polled,
        )  # fmt: skip

    @property
    def _has_polled(self) -> bool:
        """Whether a provider was asked, or no resource of the stack needs one."""
        return self.polled or (self.stack.resources is None and self.observable == self.nested)

    @property
    def observed_again(self) -> list[UUID]:
        """Resources that are observed again at once, because they have changed meanwhile: if a user
        waits for the observation, or changes of them were reported. A policy observes them with
        their stack, as all that operations change between its observations."""
        return sorted(self.changed) if self.found_by is not FoundBy.POLICY else []

    def pass_over(self, resource_id: UUID) -> None:
        """Leave out a resource that has changed since it was read."""
        if resource_id not in self.changed:
            self.observable += 1
            self.changed.add(resource_id)

    @property
    def _risk(self) -> Risk:
        differs = ObservedState.CHANGED if self.stack.differs else None
        return Risk(differs, self.stack.claimed_at - (self.stack.changed_at or EPOCH), self.drifted)

    @property
    def drifted(self) -> timedelta | None:
        """See `Risk`."""
        drifted_at = self.stack.drifted_at
        return self.stack.claimed_at - drifted_at if drifted_at else None

    @property
    def age(self) -> timedelta | None:
        """Time since the last observation; None: there was none."""
        observed_at = self.stack.observed_at
        return self.stack.claimed_at - observed_at if observed_at else None

    def judge(self, name: str, found: Observation) -> Observation:
        """The observation without what the policy ignores."""
        if self.policy is None or not (found.differences or found.absent):
            return found
        ignored = self.policy.ignored_paths(split_path(self.stack.path or ""), name)
        return found.leave_out(lambda path: ignores(ignored, path))
