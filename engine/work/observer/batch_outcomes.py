"""What the requests of a batch to each endpoint have shown so far. A batch sends its requests in
parts, and what a failure is about is judged by all of them: as long as an endpoint has answered
nothing, its failures are withheld, and each further part sends it some requests. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.types.observation import Observation
from engine.work.observer.call_groups import CallGroup
from engine.work.observer.endpoint_back_off import (
    Endpoint,
    EndpointVerdict,
    KnownFailure,
    KnownFailures,
    RequestKey,
    RequestOutcome,
    judge,
)

#: Requests of a part to an endpoint that has answered nothing; more if the part has more stacks.
PROBES = 10


@dataclass(slots=True)
class WithheldOutcomes:
    """Failures of an endpoint that has answered nothing in the batch. known: what had failed
    before. requested: the observation, by a user."""

    outcomes: list[RequestOutcome] = field(default_factory=list)
    endpoint: KnownFailure | None = None
    requests: dict[RequestKey, KnownFailure] = field(default_factory=dict)
    requested: bool = False


@dataclass(slots=True)
class BatchOutcomes:
    """answered: the endpoints that have answered a request of the batch, also if the response was
    not usable. is_last: the batch has no further part, so that nothing is withheld."""

    answered: set[Endpoint] = field(default_factory=set)
    withheld: dict[Endpoint, WithheldOutcomes] = field(default_factory=dict)
    is_last: bool = False

    def judge(
        self,
        endpoint: Endpoint,
        outcomes: Sequence[RequestOutcome],
        known: KnownFailures,
        *,
        requested: bool,
    ) -> EndpointVerdict | None:
        """The verdict on requests to an endpoint, and on those withheld before; None: they are
        withheld. known: what had failed before."""
        if endpoint in self.answered:
            return judge(outcomes, answered=True)
        withheld = self.withheld.setdefault(endpoint, WithheldOutcomes())
        withheld.outcomes += outcomes
        names = {one.request for one in outcomes} | {
            str(stack) for one in outcomes for stack in one.stacks
        }
        withheld.requests |= {
            key: known.requests[key]
            for key in ((*endpoint, name) for name in names)
            if key in known.requests
        }
        withheld.endpoint, withheld.requested = known.endpoints.get(endpoint), requested
        if any(one.is_answered for one in outcomes):
            self.answered.add(endpoint)
        is_throttled = any(one.throttling for one in outcomes)
        if self.is_last or is_throttled or endpoint in self.answered:
            return judge(withheld.outcomes)
        return None

    def take(self, endpoints: Sequence[Endpoint]) -> KnownFailures:
        """What had failed before of what was withheld of these endpoints, which is then not
        withheld any more."""
        taken = {key: self.withheld.pop(key) for key in endpoints if key in self.withheld}
        return KnownFailures(
            {key: one.endpoint for key, one in taken.items() if one.endpoint is not None},
            {key: failed for one in taken.values() for key, failed in one.requests.items()},
        )

    def split(self, groups: Sequence[CallGroup]) -> tuple[list[CallGroup], list[CallGroup]]:
        """The groups to call at first, and those to call only if their endpoint answers one of
        them: it has answered nothing before. Those of each stack take turns, so that the many
        requests of one stack do not precede all those of another one."""
        first: list[CallGroup] = []
        others: list[CallGroup] = []
        probes = Counter[Endpoint]()
        for turn, group in sorted(_turns(groups), key=lambda one: one[0]):
            if group.endpoint not in self.withheld or turn == 0 or probes[group.endpoint] < PROBES:
                probes[group.endpoint] += 1
                first.append(group)
            else:
                others.append(group)
        return first, others

    def failing(self) -> dict[Endpoint, KnownFailure | None]:
        """The endpoints that have failed by what is withheld, with what had failed before."""
        return {
            key: one.endpoint
            for key, one in self.withheld.items()
            if judge(one.outcomes).endpoint is not None
        }

    def failure_of(self, endpoint: Endpoint) -> Observation | None:
        """Why an endpoint has answered nothing; None: it has, or was not asked."""
        withheld = self.withheld.get(endpoint)
        return withheld.outcomes[0].failure if withheld else None


def _turns(groups: Sequence[CallGroup]) -> list[tuple[int, CallGroup]]:
    """Groups, each with how many groups of its stack precede it; of several stacks, the fewest."""
    counts = Counter[tuple[Endpoint, str]]()
    found: list[tuple[int, CallGroup]] = []
    for group in groups:
        keys = [(group.endpoint, str(stack)) for stack in group.stacks]
        found.append((min((counts[key] for key in keys), default=0), group))
        counts.update(keys)
    return found
