"""Results of the checks in hub.checks.doctor and hub.checks.backup_check."""

from dataclasses import asdict, dataclass
from enum import StrEnum

from engine.errors import HeadgateError
from engine.words import Json


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Looked:
    """What a check found. said: the reason, also of what is well. remedy: empty when it is."""

    what: str
    state: State
    said: str
    remedy: str = ""

    @property
    def document(self) -> dict[str, Json]:
        return asdict(self)


def fine(what: str, said: str) -> Looked:
    return Looked(what, State.OK, said)


def refused(what: str, error: HeadgateError) -> Looked:
    one = error.finding
    place = f"{one.place}: " if one.place else ""
    return Looked(what, State.WRONG, f"{place}{one.reason}", one.remedy)
