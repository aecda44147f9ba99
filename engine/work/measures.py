"""What work tells of itself, for whoever counts: nobody does here, hub/metrics.py does."""


class Measures:
    """Each method is told of one thing that happened, after it was written; this one forgets it.

    Seconds are measured by a clock that never goes back.
    """

    def claimed(self, seconds: float) -> None:
        """An operation starts, so long after its node was claimed."""

    def operated(self, type_name: str, operation: str, outcome: str, seconds: float) -> None:
        """A call of a type's operation has ended. outcome: done, waits, asks, replaces, retries or
        failed. seconds: how long it took to compute, or to wait for what it waits for inside."""

    def restarted(self, type_name: str, operation: str) -> None:
        """An operation is called again, with the same key: the process that called it has ended."""

    def node_ended(self, operation: str, state: str) -> None:
        """state: done, failed, stopped or dropped."""

    def hook_opened(self, point: str, mode: str) -> None:
        """point: ``pre-create``; any that asks inside an operation is ``confirm``."""

    def hook_answered(self, door: str, decision: str) -> None:
        """An answer was taken: it decided, or is one of several that are needed."""

    def hooks_expired(self, count: int) -> None:
        """Nobody answered."""
