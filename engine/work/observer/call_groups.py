"""Resources that one request to a provider observes, and what the request returned. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from engine.store.observer.observations import RecordedResource
from engine.types.contract import Call, ResourceType
from engine.types.failure_scope import FailureScope
from engine.types.observation import Observation
from engine.types.observed_list import ObservedList
from engine.words import Json, ResourceId
from engine.work.observer.endpoint_back_off import (
    Endpoint,
    KnownFailures,
    RequestOutcome,
    is_throttled,
)

#: The name of a type, and its `observation_key`, in the region of the stack.
GroupKey = tuple[str, str]
#: Resources whose objects a page of a list has, with the objects.
FoundObjects = Sequence[tuple[RecordedResource, Json]]


@dataclass(eq=False, slots=True)
class CallGroup:
    """Resources that one call observes. request: identifies the call in the failures of its
    endpoint: a digest of the key, and of the state of the resource if it has a call of its own.
    requests: how many it has sent. granted: how many the budget has granted. admitted: how many of
    these it uses: one, and those about some of its resources alone. charged: how many it has sent
    beyond those that were granted, as far as they are counted. continues: the budget has left
    out all of its resources before. wait: until the budget has more for those that are left out.
    """

    key: GroupKey
    type: ResourceType
    endpoint: Endpoint
    request: str
    resources: list[RecordedResource] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    requests: int = 0
    granted: int = 1
    admitted: int = 0
    charged: int = 0
    continues: bool = False
    wait: timedelta = timedelta(0)

    @property
    def spare(self) -> int:
        """How many requests it can use besides the first one: those of what a list may lack again,
        unless it has one resource with a call of its own."""
        if not self.continues or str(self.resources[0].id) in self.key[1]:
            return 0
        return len(self.resources)

    @property
    def stacks(self) -> frozenset[UUID]:
        return frozenset(one.stack_id for one in self.resources)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call returned. unknown: of the resources that it did not report, or of all. left_out:
    resources for which the budget had no request; they do not belong to the group any more."""

    group: CallGroup
    found: Mapping[ResourceId, Observation]
    unknown: Observation
    left_out: Sequence[RecordedResource] = ()

    @property
    def failure(self) -> Observation | None:
        """Why no answer of the provider was usable; None: one was."""
        if self.left_out and not self.found:
            return None
        states = list(self.found.values()) or [self.unknown]
        return None if any(one.is_usable for one in states) else states[0]

    @property
    def throttling(self) -> Observation | None:
        """Why the provider requests fewer requests; None: it does not."""
        return next(filter(is_throttled, (*self.found.values(), self.unknown)), None)

    @property
    def shows_answer(self) -> bool:
        """Whether a request was sent, and shows that its endpoint works."""
        return self.group.requests > 0 and self.outcome.is_answered

    @property
    def outcome(self) -> RequestOutcome:
        usable, failed = Counter[UUID](), Counter[UUID]()
        for one in self.group.resources:
            seen = self.found.get(ResourceId(one.id), self.unknown)
            if seen.is_usable:
                usable[one.stack_id] += 1
            elif seen.scope is FailureScope.OBJECT:
                failed[one.stack_id] += 1
        group = self.group
        return RequestOutcome(
            group.request, group.stacks, self.failure, self.throttling, usable, failed
        )


@dataclass(frozen=True, slots=True)
class AdmittedGroups:
    """groups: those that may be called now. skipped: results of those whose endpoint has failed
    before. known: what has. requested: by a user."""

    groups: Sequence[CallGroup]
    skipped: Sequence[CallResult]
    known: KnownFailures
    requested: bool


@dataclass(slots=True)
class ListResult:
    """What a list lacks. left: resources whose objects were not found, or not complete. failure:
    why they are unknown; None: the list does not have them. listed: None: it was not read."""

    group: CallGroup
    admitted: AdmittedGroups
    left: Sequence[RecordedResource]
    failure: Observation | None = None
    listed: ObservedList | None = None

    @property
    def throttling(self) -> Observation | None:
        """See `CallResult`."""
        return self.failure if self.failure and is_throttled(self.failure) else None

    @property
    def outcome(self) -> RequestOutcome:
        group = self.group
        return RequestOutcome(group.request, group.stacks, self.failure, self.throttling)
