"""The interface of worker metrics. hub/metrics.py implements it; the methods here do nothing."""


class Measures:
    """Each method records one occurrence, after it is durable. Seconds are of a monotonic clock."""

    def claimed(self, seconds: float) -> None:
        """An operation starts. seconds: since its node was claimed."""

    def operated(self, type_name: str, operation: str, outcome: str, seconds: float) -> None:
        """A call of a type's operation has ended. outcome: done, waits, asks, replaces, retries,
        stopped or failed. seconds: how long the call took, including I/O.
        """

    def restarted(self, type_name: str, operation: str) -> None:
        """An operation is called again with the same key, because its process has ended."""

    def node_ended(self, operation: str, state: str) -> None:
        """A node has ended. state: done, failed, stopped or dropped."""

    def hook_opened(self, point: str, mode: str) -> None:
        """A hook has opened. point: ``pre-create``, ...; ``confirm`` inside any operation."""

    def hook_answered(self, door: str, decision: str) -> None:
        """An answer was accepted: it decided the hook, or is one of several required approvals."""

    def hooks_expired(self, count: int) -> None:
        """The deadline of so many hooks has passed."""
