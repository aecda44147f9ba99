"""The trail of decisions of a stack: each entry's hash covers the entry and the hash before it.

So nobody changes, inserts or removes an entry in the middle without every later hash being wrong.
What was cut off at the end shows in the hash that somebody wrote down elsewhere, and in hooks that
were decided without an entry.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

import orjson

from engine.words import Json

#: The hash before the first entry.
NOTHING = "0" * 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision. number: 1, 2, ... within its stack. at: with microseconds, UTC.

    kind: the decision of an answer, ``expired-<decision>`` of a deadline, ``dry-<decision>`` of a
    rule that is tried out; or refused, handed-over, breakpoint-added, breakpoint-removed.
    hook_id: None where it is about no hook. hash: 64 hexadecimal digits.
    """

    stack_id: UUID
    hook_id: UUID | None
    kind: str
    by: str
    door: str
    at: datetime
    address: str = ""
    reason: str = ""
    digest: str = ""
    data: Json = None
    number: int = 0
    hash: str = ""


def chained(entries: Iterable[Entry], last: Mapping[UUID, tuple[int, str]]) -> list[Entry]:
    """Entries with numbers and hashes. last: (number, hash) of each stack's newest entry."""
    ends = dict(last)
    made: list[Entry] = []
    for entry in entries:
        number, before = ends.get(entry.stack_id, (0, NOTHING))
        numbered = replace(entry, number=number + 1)
        whole = replace(numbered, hash=hash_of(numbered, before))
        ends[entry.stack_id] = (whole.number, whole.hash)
        made.append(whole)
    return made


def hash_of(entry: Entry, before: str) -> str:
    """SHA-256 of the hash before, a newline, and the entry as JSON with its keys in order."""
    said = asdict(entry)
    del said["hash"]
    said["at"] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    text = orjson.dumps(said, default=str, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(before.encode() + b"\n" + text).hexdigest()


def first_wrong(entries: Sequence[Entry]) -> str | None:
    """What is wrong with the whole trail of one stack, in words; None: nothing is."""
    before = NOTHING
    for place, entry in enumerate(entries, start=1):
        if entry.number != place:
            return f"entry {place} is missing"
        if hash_of(entry, before) != entry.hash:
            return f"entry {place} is not what was written, or the one before it is not"
        before = entry.hash
    return None
