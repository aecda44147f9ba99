"""A fair queue: groups of jobs take turns, and within a group its members. Pure.

Groups are projects with their users as members, or address blocks with one member each. The queue
runs no job. It limits the running jobs per group and per member, so that jobs of other groups have
a free slot.
"""

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class QueuedJob(Protocol):
    """A job of the queue. member: unique within the group."""

    @property
    def group(self) -> str: ...

    @property
    def member(self) -> str: ...


J = TypeVar("J", bound=QueuedJob)


@dataclass(slots=True)
class FairQueue(Generic[J]):
    """slots: maximum number of running jobs. per_group, per_member: maximum of one group and of
    one member."""

    slots: int
    per_group: int
    per_member: int
    _waiting: "OrderedDict[str, OrderedDict[str, deque[J]]]" = field(default_factory=OrderedDict)
    _of_group: Counter[str] = field(default_factory=Counter)
    _of_member: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, job: J) -> None:
        members = self._waiting.setdefault(job.group, OrderedDict())
        members.setdefault(job.member, deque()).append(job)

    def take(self) -> J | None:
        """Remove and return the next job that may run, and count it as running; None if none
        may."""
        if self._of_group.total() >= self.slots:
            return None
        for group, members in self._waiting.items():
            if self._of_group[group] >= self.per_group:
                continue
            for member, jobs in members.items():
                if self._of_member[group, member] < self.per_member:
                    job = jobs.popleft()
                    # Move its group, and its member within the group, to the end of the order.
                    self._waiting.move_to_end(group)
                    members.move_to_end(member)
                    self._drop_empty(group, member)
                    self._of_group[group] += 1
                    self._of_member[group, member] += 1
                    return job
        return None

    def release(self, job: J) -> None:
        """Count a job that `take` returned as ended."""
        self._of_group -= Counter([job.group])
        self._of_member -= Counter([(job.group, job.member)])

    def discard(self, job: J) -> None:
        """Remove a waiting job; does nothing for a job that `take` has returned."""
        jobs = self._jobs(job.group, job.member)
        if job in jobs:
            jobs.remove(job)
            self._drop_empty(job.group, job.member)

    def waiting(self, group: str, member: str) -> int:
        """The number of waiting jobs of a member."""
        return len(self._jobs(group, member))

    def _jobs(self, group: str, member: str) -> "deque[J]":
        members = self._waiting.get(group)
        return deque() if members is None else members.get(member, deque())

    def _drop_empty(self, group: str, member: str) -> None:
        members = self._waiting[group]
        if not members[member]:
            del members[member]
        if not members:
            del self._waiting[group]

    def __len__(self) -> int:
        """The number of waiting jobs."""
        return sum(len(jobs) for members in self._waiting.values() for jobs in members.values())
