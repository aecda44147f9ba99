"""The hash chain of a stack's audit log: each hash covers its entry and the hash before it.

An entry's `form` defines the fields that its hash covers: entries of earlier releases keep theirs.

A changed, inserted or removed entry makes the next hash wrong. Entries removed at the end are
detected by a hash recorded elsewhere, and by decided hooks without an entry.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from uuid import UUID

import orjson

from engine.words import Json

#: The hash before the first entry.
NOTHING = "0" * 64
#: The form of new entries. 1: without `form` and the fields in `ADDED`.
FORM = 2
#: The fields that a form added.
ADDED: Mapping[int, Sequence[str]] = {2: ("principal", "token_id", "form")}
#: The answer channel's key in the hashed JSON: its earlier name, on which the hashes depend.
CHANNEL_KEY = "door"


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision. number: 1, 2, ... within its stack. at: with microseconds, UTC.

    kind: the decision of an answer, ``expired-<decision>`` of a deadline, ``dry-<decision>`` of a
    dry-run rule; or refused, handed-over, breakpoint-added, breakpoint-removed; or, with the ID of
    an observation credential as stack_id, observation-credential-set and -deleted.
    hook_id: None if it concerns no hook. hash: 64 hexadecimal digits.

    by: for display. principal: the stable identity; "": unknown. token_id: of the API
    token or, for a hook's token, of its subscription; "": none.
    """

    stack_id: UUID
    hook_id: UUID | None
    kind: str
    by: str
    channel: str
    at: datetime
    address: str = ""
    reason: str = ""
    digest: str = ""
    data: Json = None
    principal: str = ""
    token_id: str = ""
    form: int = FORM
    number: int = 0
    hash: str = ""


_FIELDS = tuple(one.name for one in fields(Entry))


def columns_of(entry: Entry) -> dict[str, Json]:
    """Return the fields by name, without the deep copy of `asdict`, which is slow."""
    return {name: getattr(entry, name) for name in _FIELDS}


def chain_entries(entries: Iterable[Entry], last: Mapping[UUID, tuple[int, str]]) -> list[Entry]:
    """Return entries with numbers and hashes. last: (number, hash) of each stack's newest entry."""
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
    """Return SHA-256 of the previous hash, a newline, and the entry as JSON with sorted keys."""
    document = columns_of(entry)
    for name in ("hash", *_uncovered_fields(entry.form)):
        del document[name]
    document[CHANNEL_KEY] = document.pop("channel")
    document["at"] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    text = orjson.dumps(document, default=str, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(before.encode() + b"\n" + text).hexdigest()


def first_error(entries: Sequence[Entry]) -> str | None:
    """Return the first error in the complete log of one stack, or None."""
    before = NOTHING
    for place, entry in enumerate(entries, start=1):
        if entry.number != place:
            return f"entry {place} is missing"
        if (why := _not_covered(entry)) is not None:
            return f"entry {place} {why}"
        if hash_of(entry, before) != entry.hash:
            return f"entry {place} or the entry before it was modified"
        before = entry.hash
    return None


def _uncovered_fields(form: int) -> list[str]:
    """Return the fields that a hash of this form does not cover."""
    return [name for added, names in ADDED.items() if added > form for name in names]


def _not_covered(entry: Entry) -> str | None:
    """Return why the hash does not cover the whole entry, or None."""
    if not 1 <= entry.form <= FORM:
        return f"is of form {entry.form}, which this version does not know"
    for name in _uncovered_fields(entry.form):
        if name != "form" and getattr(entry, name):
            return f"has a {name}, which its hash does not cover"
    return None
