"""How many nodes a worker may claim now, and whether nodes that ended their workers are among them.

Times are seconds by one clock.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: Leases. A process claims no other node for so long while it makes the last try of a node.
LAST_TRY_ALONE = 1


@dataclass(slots=True)
class ClaimLimits:
    """batch: nodes of one claim at most. operations: concurrent operations with I/O. lease: in
    seconds. reads_documents: the next claim reads the documents of its nodes.
    """

    batch: int
    operations: int
    lease: float
    reads_documents: bool = True
    _failed_claims: int = 0  # in a row
    _single_claims: int = 0  # number of claims limited to one node, after a larger one failed
    _does_io: bool = True  # until a claim has started no operation with I/O
    _claims_suspects: bool = False  # a running claim may return nodes that ended their workers
    _suspects_from: float = 0.0  # when such nodes may be claimed again

    def free_capacity(self, running: int, last_try_since: float | None, now: float) -> int:
        """Return how many nodes to claim: a batch if operations only compute; with I/O as many as
        may run at once, which leaves the rest to other processes. None at the beginning of the last
        try of a node, which would fail if a new node ended the process.

        running: operations with I/O. last_try_since: when this process claimed a node for its last
        try; None without such a node.
        """
        if last_try_since is not None and now - last_try_since < LAST_TRY_ALONE * self.lease:
            return 0
        free = max(0, self.operations - running)
        if self._single_claims:
            return min(1, free)
        if free and not self._does_io:
            return self.batch
        return min(self.batch, free)

    @property
    def claims_runs(self) -> bool:
        """Whether a claim may also return the later nodes of runs."""
        return not self._single_claims

    @contextmanager
    def may_claim_suspects(
        self, want: int, last_try_since: float | None, now: float
    ) -> Iterator[bool]:
        """Yield whether this claim may return nodes that ended their workers: one claim at a time,
        and none during the last try of such a node, nor for as long after it. want: number of nodes
        to claim.
        """
        allowed = (
            want > 0
            and not self._claims_suspects
            and last_try_since is None
            and now >= self._suspects_from
        )
        self._claims_suspects |= allowed
        try:
            yield allowed
        finally:
            if allowed:
                self._claims_suspects = False

    def record_claim(self) -> None:
        self._failed_claims = 0
        self.reads_documents, self._single_claims = True, max(0, self._single_claims - 1)

    def record_failed_claim(self, want: int, *, tolerated: int = 0) -> None:
        """Claim single nodes next, one for each of a batch; without documents, if a single node
        could not be claimed. tolerated: so many failures in a row change nothing."""
        self._failed_claims += 1
        if self._failed_claims > tolerated:
            self.reads_documents, self._single_claims = want != 1, self.batch

    def record_started(self, operations: int) -> None:
        """operations: number of operations with I/O that the nodes of a claim have started."""
        self._does_io = operations > 0

    def record_last_try(self, since: float, now: float) -> None:
        """A last try has ended: other nodes may be claimed now, first for as long as they waited.
        since: when it was claimed."""
        self._suspects_from = 2 * now - since
