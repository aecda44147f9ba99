"""A fair queue: selects the next job by turns between projects, and within a project between users.

The queue runs no job. It limits the running jobs per project and per user, so that jobs of other
projects have a free slot.
"""

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class QueuedJob(Protocol):
    """A job of the queue. user: the requester, unique within the project."""

    @property
    def project(self) -> str: ...

    @property
    def user(self) -> str: ...


J = TypeVar("J", bound=QueuedJob)


@dataclass(slots=True)
class FairQueue(Generic[J]):
    """slots: maximum number of running jobs. per_project, per_user: maximum of one project and of
    one user."""

    slots: int
    per_project: int
    per_user: int
    _waiting: "OrderedDict[str, OrderedDict[str, deque[J]]]" = field(default_factory=OrderedDict)
    _of_project: Counter[str] = field(default_factory=Counter)
    _of_user: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, job: J) -> None:
        users = self._waiting.setdefault(job.project, OrderedDict())
        users.setdefault(job.user, deque()).append(job)

    def take(self) -> J | None:
        """Remove and return the next job that may run, and count it as running; None if none
        may."""
        if self._of_project.total() >= self.slots:
            return None
        for project, users in self._waiting.items():
            if self._of_project[project] >= self.per_project:
                continue
            for user, jobs in users.items():
                if self._of_user[project, user] < self.per_user:
                    job = jobs.popleft()
                    # Move its project, and its user within the project, to the end of the order.
                    self._waiting.move_to_end(project)
                    users.move_to_end(user)
                    self._drop_empty(project, user)
                    self._of_project[project] += 1
                    self._of_user[project, user] += 1
                    return job
        return None

    def done(self, job: J) -> None:
        """Count a job that `take` returned as ended."""
        self._of_project -= Counter([job.project])
        self._of_user -= Counter([(job.project, job.user)])

    def discard(self, job: J) -> None:
        """Remove a waiting job; does nothing for a job that `take` has returned."""
        jobs = self._jobs(job.project, job.user)
        if job in jobs:
            jobs.remove(job)
            self._drop_empty(job.project, job.user)

    def waiting(self, project: str, user: str) -> int:
        """The number of waiting jobs of a user."""
        return len(self._jobs(project, user))

    def _jobs(self, project: str, user: str) -> "deque[J]":
        users = self._waiting.get(project)
        return deque() if users is None else users.get(user, deque())

    def _drop_empty(self, project: str, user: str) -> None:
        users = self._waiting[project]
        if not users[user]:
            del users[user]
        if not users:
            del self._waiting[project]

    def __len__(self) -> int:
        return sum(len(jobs) for users in self._waiting.values() for jobs in users.values())
