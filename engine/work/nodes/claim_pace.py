"""How often a worker claims nodes, so that work accumulates between two claims.

After a claim, a worker pauses for twice as long as the claim took. So claims take at most a third
of the time: on a busy system, one claims the work of many stacks; on an idle one, work waits for a
few milliseconds. A worker that has no steps to write also leaves their time to the other processes
that claim: if each claimed as often as a process that is alone, each claim would find less, for the
same cost. Steps are never kept waiting for others: their write claims nodes, too.

A notification of new work reaches all processes at once. The one that has run longest claims at
once, and each later one leaves the earlier ones a few milliseconds more, so that they find nothing
left and do not claim.
"""

from dataclasses import dataclass

#: The longest pause in seconds of a process that is alone.
MAX_PAUSE = 0.02
#: The longest pause in seconds without steps to write, however many processes claim.
MAX_SHARED_PAUSE = 0.2

#: Seconds that a process leaves each earlier one to claim work of which all were notified.
TURN = 0.01
#: The longest of these times, however many processes claim.
MAX_TURN = 0.03


@dataclass(slots=True)
class ClaimPace:
    """other_engines: number of other processes that claim nodes. earlier_engines: those of them
    that have started before this one. Times are seconds by one clock."""

    other_engines: int = 0
    earlier_engines: int = 0
    _write_at: float = 0.0
    _claim_at: float = 0.0

    def record_claim(self, began: float, ended: float) -> None:
        pause = min(2 * (ended - began), MAX_PAUSE)
        self._write_at = ended + pause
        self._claim_at = ended + min(pause * (1 + self.other_engines), MAX_SHARED_PAUSE)

    @property
    def seconds_to_turn(self) -> float:
        """How long a worker that is notified of work leaves it to the earlier processes."""
        return min(self.earlier_engines * TURN, MAX_TURN)

    def seconds_to_write(self, now: float) -> float:
        """How long steps to write still wait; 0 or less: no longer."""
        return self._write_at - now

    def seconds_to_claim(self, now: float) -> float:
        """How long a worker without steps to write still waits; 0 or less: no longer."""
        return self._claim_at - now
