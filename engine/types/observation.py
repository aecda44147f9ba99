"""What a provider reports about physical resources, as a type returns it from `observe`."""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import orjson

from engine.types.failure_scope import FailureScope
from engine.words import Json, ObservedState

#: Characters of an observed value: a string, or another value as JSON. Longer ones are shortened.
MAX_VALUE = 1_000


def join_paths(paths: Sequence[str]) -> str:
    return ", ".join(paths)


def shorten(value: Json) -> Json:
    """Return the value, or the beginning of its text."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    return value if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE].removesuffix('...')}..."


def is_shortened(value: Json) -> bool:
    """Return whether `shorten` may have returned the value, or would return another one."""
    if isinstance(value, str) and len(value) >= MAX_VALUE and value.endswith("..."):
        return True
    return shorten(value) is not value


def hash_values(desired: Json, observed: Json) -> bytes:
    """Return a hash of the two values of a difference. It is not stored: a secret could be found by
    trying values."""
    options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    return hashlib.sha256(orjson.dumps([desired, observed], default=str, option=options)).digest()


@dataclass(frozen=True, slots=True)
class Difference:
    """A property that the provider reports with another value. path: such as ``size``. observed:
    None: null, or the property has no value. exact: `hash_values` of the values if one of them is
    masked or shortened here, so that the observer notices when it changes; else None."""

    path: str
    desired: Json = field(repr=False)
    observed: Json = field(repr=False)
    exact: bytes | None = field(default=None, repr=False)

    @classmethod
    def shorten(cls, path: str, desired: Json, observed: Json) -> "Difference":
        """A difference without the rest of a long observed value."""
        shown = shorten(observed)
        exact = None if shown is observed else hash_values(desired, observed)
        return cls(path, desired, shown, exact)

    @property
    def values_hash(self) -> bytes:
        return self.exact or hash_values(self.desired, self.observed)


@dataclass(frozen=True, slots=True)
class Observation:
    """differences: of CHANGED. reason: of DEGRADED, MISSING and UNKNOWN, and of CHANGED if the
    provider's answer lacks a value. public_reason: the part of it that has no value of the
    resource; shown in place of it if a property is secret. retry_after: of UNKNOWN: seconds for
    which the provider requests no further requests, 0.0 if it did not say how long; None: it did
    not request that. incomplete: of UNKNOWN and CHANGED: the provider works, but its answer lacks a
    value that is compared. absent: the paths of such values, as the reason names them. scope: of
    UNKNOWN: what the failure is about; with `retry_after` always the endpoint.
    """

    state: ObservedState
    differences: Sequence[Difference] = ()
    reason: str = ""
    public_reason: str = ""
    retry_after: float | None = None
    incomplete: bool = False
    absent: Sequence[str] = ()
    scope: FailureScope = FailureScope.REQUEST

    @property
    def is_usable(self) -> bool:
        """Whether it shows that the provider works."""
        return self.state is not ObservedState.UNKNOWN or self.incomplete

    @classmethod
    def lacking(
        cls, reason: str, public_reason: str = "", absent: Sequence[str] = ()
    ) -> "Observation":
        """UNKNOWN: an answer without a value says nothing about it. absent: paths of compared
        values."""
        public = public_reason or reason
        return cls(ObservedState.UNKNOWN, (), reason, public, incomplete=True, absent=absent)

    @classmethod
    def from_comparison(
        cls, what: str, differences: Sequence[Difference], absent: Sequence[str]
    ) -> "Observation":
        """The observation of an object of which some values are compared. what: such as ``the
        volume``. absent: paths of desired values that the answer of the provider lacks."""
        lacks = f"the response about {what} lacks {join_paths(absent)}" if absent else ""
        if differences:
            return cls(
                ObservedState.CHANGED, differences, lacks, lacks,
                incomplete=bool(absent), absent=absent,
            )  # fmt: skip
        return cls.lacking(lacks, absent=absent) if absent else PRESENT

    def leave_out(self, is_ignored: Callable[[str], bool]) -> "Observation":
        """The observation without what concerns some paths. PRESENT: nothing else differs or is
        absent."""
        differences = [one for one in self.differences if not is_ignored(one.path)]
        absent = [one for one in self.absent if not is_ignored(one)]
        if len(differences) == len(self.differences) and len(absent) == len(self.absent):
            return self
        reason, public = (
            text.replace(join_paths(self.absent), join_paths(absent)) if absent else ""
            for text in (self.reason, self.public_reason)
        )
        if differences:
            incomplete = self.incomplete and bool(absent)
            return replace(
                self, differences=differences, reason=reason, public_reason=public,
                incomplete=incomplete, absent=absent,
            )  # fmt: skip
        return Observation.lacking(reason, public, absent) if absent else PRESENT

    @classmethod
    def unknown(
        cls,
        reason: str,
        public_reason: str = "",
        retry_after: float | None = None,
        scope: FailureScope = FailureScope.REQUEST,
    ) -> "Observation":
        return cls(
            ObservedState.UNKNOWN, reason=reason, public_reason=public_reason,
            retry_after=retry_after, scope=scope,
        )  # fmt: skip


#: Returns how many of so many further requests of an observation may be sent now. Also given: how
#: many it has sent.
AdmitRequests = Callable[[int, int], Awaitable[int]]
#: Waits until an observation that has sent so many requests may send the next page of its list.
PaceRequests = Callable[[int], Awaitable[None]]


@dataclass(slots=True)
class RequestCount:
    """How many requests were sent to providers. admit: None: any number is admitted. pace: None:
    pages of lists follow each other at once. is_short: not all that were wanted were admitted."""

    sent: int = 0
    admit: AdmitRequests | None = None
    pace: PaceRequests | None = None
    is_short: bool = False


_counts: ContextVar[RequestCount | None] = ContextVar("requests to providers", default=None)


@contextmanager
def count_requests(
    admit: AdmitRequests | None = None, pace: PaceRequests | None = None
) -> Iterator[RequestCount]:
    """Count the requests that `request_sent` reports in this context. admit: of
    `admit_requests`. pace: of `pace_requests`."""
    count = RequestCount(admit=admit, pace=pace)
    token = _counts.set(count)
    try:
        yield count
    finally:
        _counts.reset(token)


def request_sent() -> None:
    """Types call it for each request of an observation. Without it, each call counts as one."""
    if (count := _counts.get()) is not None:
        count.sent += 1


async def admit_requests(wanted: int) -> int:
    """How many of so many requests may be sent now. Types call it before requests of `observe`
    whose number grows with the number of resources, such as one for each, and leave the resources
    of the others out of the result. These are observed later, when the budget of the endpoint has
    more requests."""
    count = _counts.get()
    if count is None or count.admit is None or wanted == 0:
        return wanted
    admitted = await count.admit(wanted, count.sent)
    count.is_short = count.is_short or admitted < wanted
    return admitted


async def pace_requests() -> None:
    """Wait until the next page of a list may be requested."""
    count = _counts.get()
    if count is not None and count.pace is not None:
        await count.pace(count.sent)


PRESENT = Observation(ObservedState.PRESENT)


def observe_fields(
    what: str, compared: Iterable[tuple[str, Json, Json]], absent: Collection[str] = ()
) -> Observation:
    """The observation of an object, by its fields. what: such as ``the volume``. compared: (path,
    desired, observed); None or an empty list as the desired value: none is. absent: paths of values
    that the answer of the provider lacks, which are not compared."""
    pairs = [one for one in compared if one[1] is not None and one[1] != []]
    differences = [
        Difference(path, desired, observed)
        for path, desired, observed in pairs
        if path not in absent and desired != observed
    ]
    return Observation.from_comparison(
        what, differences, [path for path, *_ in pairs if path in absent]
    )
