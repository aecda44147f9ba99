"""What is not observed for a while after failures, and how long: an endpoint, a request to it, or
the requests of one stack to it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from engine.back_off import BackOff
from engine.types.failure_scope import FailureScope
from engine.types.observation import Observation
from engine.words import ObservedState

#: The pauses in seconds.
PAUSES = BackOff(30.0, 3600.0)
#: Seconds: the longest pause that a provider can request.
MAX_RETRY_AFTER = 86_400.0
#: By how much of itself a requested pause is longer at most.
VARIATION = 0.1
#: After a pause, its failures are counted further for this time.
REMEMBERED = timedelta(days=1)
#: Failed requests of a stack to an endpoint that have pauses of their own. If more fail, and most
#: of the stack's, the stack has one pause.
MAX_OF_STACK = 100
#: Different requests with errors of the server, of more than one stack, that say together that the
#: endpoint has failed if it answers no other one.
MIN_SERVER_ERRORS = 3
#: Failures of each kind that a project has at most. Further ones replace those whose pause ends
#: first.
MAX_OF_PROJECT = 5_000

#: The project, the resource type, and `ResourceType.observation_endpoint`.
Endpoint = tuple[str, str, str]
#: An endpoint, and what identifies a request to it: see `CallGroup.request`; or a stack: its ID.
RequestKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """Of an endpoint, a request or a stack. failures: consecutive ones. until: the end of its
    pause, which identifies it. remaining: of its pause, during which it is not observed by policy;
    may be negative. reason, public_reason: of its resources, which are unknown. throttled: the
    endpoint has requested this pause, so requests of users wait, too."""

    failures: int
    until: datetime
    remaining: timedelta
    reason: str
    public_reason: str
    throttled: bool = False

    @property
    def observation(self) -> Observation:
        return Observation.unknown(self.reason, self.public_reason)


@dataclass(frozen=True, slots=True)
class KnownFailures:
    """Those that count, also after their pause."""

    endpoints: Mapping[Endpoint, KnownFailure] = field(default_factory=dict)
    requests: Mapping[RequestKey, KnownFailure] = field(default_factory=dict)

    def find_pause(
        self, endpoint: Endpoint, request: str, stacks: Iterable[UUID], *, requested: bool
    ) -> tuple[FailureScope, KnownFailure] | None:
        """What a request waits for; None: nothing. stacks: of its resources. requested: the
        observation, by a user."""
        failed = self.endpoints.get(endpoint)
        if failed is not None and is_blocked(failed, requested=requested):
            return FailureScope.ENDPOINT, failed
        own = self.requests.get((*endpoint, request))
        if own is not None and is_blocked(own, requested=requested):
            return FailureScope.REQUEST, own
        paused = [self.requests.get((*endpoint, str(one))) for one in stacks]
        waiting = [one for one in paused if one and is_blocked(one, requested=requested)]
        if not waiting or len(waiting) < len(paused):
            return None
        return FailureScope.REQUEST, min(waiting, key=lambda one: one.remaining)


#: Failures after which the endpoint may answer nothing else.
_OF_ENDPOINTS = frozenset({FailureScope.ENDPOINT, FailureScope.SERVER})


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """Of a request that was sent. stacks: of its resources. failure: why no answer was usable;
    None: one was. throttling: why the provider requests fewer requests; None: it does not.
    usable: of each stack, the objects whose state is known. failed: those that the request has not
    shown, and that cannot be read by themselves."""

    request: str
    stacks: frozenset[UUID]
    failure: Observation | None
    throttling: Observation | None = None
    usable: Mapping[UUID, int] = field(default_factory=dict)
    failed: Mapping[UUID, int] = field(default_factory=dict)

    @property
    def is_failed(self) -> bool:
        """Whether it says something about the request or its endpoint."""
        return self.failure is not None and self.failure.scope is not FailureScope.OBJECT

    @property
    def is_answered(self) -> bool:
        """Whether it shows that the endpoint works, also if the response was not usable."""
        if self.throttling is not None:
            return False
        return self.failure is None or self.failure.scope not in _OF_ENDPOINTS


@dataclass(frozen=True, slots=True)
class EndpointVerdict:
    """What has failed, and what works, by the outcomes of requests to an endpoint. endpoint: None:
    it has not failed. requests: by what identifies a request or a stack. working: requests and
    stacks. works: the endpoint has answered."""

    endpoint: Observation | None
    requests: Mapping[str, Observation] = field(default_factory=dict)
    working: Sequence[str] = ()
    works: bool = True


def judge(outcomes: Sequence[RequestOutcome], *, answered: bool = False) -> EndpointVerdict:
    """What a failure is about: the endpoint, if it requests a pause, or if it answered nothing.
    A request that failed although the endpoint has answered another one has failed by itself, and
    so have a few requests, or those of one stack alone, with errors of the server. answered: the
    endpoint has answered another request of the batch."""
    throttling = next((one.throttling for one in outcomes if one.throttling), None)
    if throttling is not None:
        return EndpointVerdict(throttling, works=False)
    if not answered and _is_endpoint_failure(outcomes):
        return EndpointVerdict(outcomes[0].failure, works=False)
    stacks = _count_by_stack(outcomes)
    failed_stacks = {key: one.observation for key, one in stacks.items() if one.has_failed}
    failed = {
        one.request: one.failure
        for one in outcomes
        if one.failure is not None and one.is_failed and not one.stacks.issubset(failed_stacks)
    }
    working = [one.request for one in outcomes if not one.is_failed]
    working += [str(key) for key, one in stacks.items() if one.works]
    works = answered or any(one.is_answered for one in outcomes)
    failed_requests = failed | {str(key): one for key, one in failed_stacks.items()}
    return EndpointVerdict(None, failed_requests, working, works)


def _is_endpoint_failure(outcomes: Sequence[RequestOutcome]) -> bool:
    if not outcomes or any(one.is_answered for one in outcomes):
        return False
    if all(one.failure and one.failure.scope is FailureScope.ENDPOINT for one in outcomes):
        return True
    stacks = {stack for one in outcomes for stack in one.stacks}
    return len({one.request for one in outcomes}) >= MIN_SERVER_ERRORS and len(stacks) > 1


@dataclass(slots=True)
class _StackRequests:
    """How many requests of a stack were sent, and failed; objects of lists count as requests, so
    that a stack whose lists work is not paused for a few objects. reason: of the first failure;
    public."""

    sent: int = 0
    failed: int = 0
    reason: str = ""

    @property
    def works(self) -> bool:
        return 2 * self.failed <= self.sent

    @property
    def has_failed(self) -> bool:
        """Whether so many have failed that the stack has one pause."""
        return self.failed > MAX_OF_STACK and not self.works

    @property
    def observation(self) -> Observation:
        many = f"{self.failed} of {self.sent} requests of the stack to this endpoint failed"
        reason = f"{many}: {self.reason}" if self.reason else many
        return Observation.unknown(reason, reason)


def _count_by_stack(outcomes: Sequence[RequestOutcome]) -> dict[UUID, _StackRequests]:
    found: dict[UUID, _StackRequests] = {}
    for one in outcomes:
        for stack_id in one.stacks:
            count = found.setdefault(stack_id, _StackRequests())
            failed = one.failed.get(stack_id, 0) + one.is_failed
            count.sent += max(failed + one.usable.get(stack_id, 0), 1)
            count.failed += failed
            count.reason = count.reason or (one.failure.public_reason if one.failure else "")
    return found


def pause_after(failures: int, retry_after: float | None, chance: float) -> timedelta:
    """The pause after this many consecutive failures. retry_after: seconds that the provider
    requested. chance: a number from 0 up to 1."""
    requested = min(retry_after or 0.0, MAX_RETRY_AFTER) * (1 + VARIATION * chance)
    return timedelta(seconds=max(PAUSES.pause(failures, chance), requested))


def is_blocked(failed: KnownFailure, *, requested: bool) -> bool:
    """Whether it is not observed now. requested: by a user."""
    return failed.remaining > timedelta(0) and (failed.throttled or not requested)


def lengthens_pause(observation: Observation, *, requested: bool) -> bool:
    """Whether a failure starts or lengthens a pause, which others wait for, too. requested: the
    observation, by a user, who can repeat it at will: only what the provider requests then does."""
    return is_throttled(observation) or not requested


def is_throttled(observation: Observation) -> bool:
    """Whether the provider has requested fewer requests."""
    return observation.state is ObservedState.UNKNOWN and observation.retry_after is not None
