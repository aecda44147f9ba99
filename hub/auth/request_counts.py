"""What the limits on clients count, in all processes of one server."""

from hub.auth.shared_counts import SharedCounts
from hub.auth.shared_open_counts import SharedOpenCounts


class RequestCounts:
    """Each limit has a table of its own. processes: how many count at the same time."""

    def __init__(self, *, processes: int = 1) -> None:
        locked = processes > 1
        self.by_address = SharedCounts(locked=locked)
        self.by_token = SharedCounts(locked=locked)
        self.unknown_ids = SharedCounts(locked=locked)
        self.wrong_tokens = SharedCounts(locked=locked)
        self.connections = SharedOpenCounts(processes=processes, locked=locked)
        self.forwarded = SharedOpenCounts(processes=processes, locked=locked)
        self.bodies = SharedOpenCounts(processes=processes, locked=locked)
        self.streams = SharedOpenCounts(processes=processes, locked=locked)
