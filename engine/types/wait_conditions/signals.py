"""Signals to handles: their formats, and the stored id, status, reason and data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.errors import Findings, nearest
from engine.words import Json

SUCCESS, FAILURE = "SUCCESS", "FAILURE"
STATUSES = (SUCCESS, FAILURE)


@dataclass(frozen=True, slots=True)
class SignalFormat:
    """The field names of a signal. whole: all fields are required. loose: unknown fields are
    ignored."""

    id: str
    status: str
    reason: str
    data: str
    whole: bool = False
    loose: bool = False

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.status, self.reason, self.id, self.data)


HEAT = SignalFormat("id", "status", "reason", "data")
CFN = SignalFormat("UniqueId", "Status", "Reason", "Data", whole=True)
SWIFT = SignalFormat("id", "status", "reason", "data", loose=True)


def read_signal(sent: Mapping[str, Json], form: SignalFormat, number: int) -> dict[str, Json]:
    """Validate a signal. number: the default of the ID. Raises Invalid."""
    findings = Findings()
    known = f"Known: {', '.join(form.parts)}."
    if not form.loose:
        for name in sorted(sent.keys() - set(form.parts)):
            remedy = nearest(name, form.parts) or known
            findings.add(name, "is not a field of a signal", remedy, "Invalid")
    if form.whole:
        for name in (name for name in form.parts if name not in sent):
            findings.add(
                name, "is missing", f"Required fields: {', '.join(form.parts)}.", "Invalid"
            )
    status = _or(sent.get(form.status), SUCCESS)
    if status not in STATUSES:
        findings.add(form.status, "is not known", "Send SUCCESS or FAILURE.", "Invalid")
    key = _or(sent.get(form.id), number)
    if isinstance(key, dict | list):
        findings.add(form.id, "must be a string or a number", "Correct its type.", "Invalid")
    reason = _or(sent.get(form.reason), f"Signal {number} received")
    if not isinstance(reason, str):
        findings.add(form.reason, "must be a string", "Correct its type.", "Invalid")
    findings.raise_if_any()
    return {"id": str(key), "status": status, "reason": reason, "data": sent.get(form.data)}


def _or(value: Json, default: Json) -> Json:
    """The value; the default for null."""
    return default if value is None else value


class Tally:
    """The stored signals by ID: the last one of each ID counts."""

    def __init__(self, kept: Iterable[Mapping[str, Json]]) -> None:
        self._by_id = {one["id"]: one for one in kept}

    def __len__(self) -> int:
        return len(self._by_id)

    def reasons(self, status: str) -> Sequence[str]:
        return [one["reason"] for one in self._by_id.values() if one["status"] == status]

    def data(self) -> dict[str, Json]:
        """The data by ID."""
        return {key: one["data"] for key, one in self._by_id.items()}
