"""The trail of decisions of a stack: each entry's hash covers the entry and the hash before it.

An entry's `form` says which fields its hash covers: entries of earlier versions keep theirs.

So nobody changes, inserts or removes an entry in the middle without every later hash being wrong.
What was cut off at the end shows in the hash that somebody wrote down elsewhere, and in hooks that
were decided without an entry.
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
#: The form of entries that are written now. 1: without `form` and the fields of `ADDED`.
FORM = 2
#: By form: the fields that came with it.
ADDED: Mapping[int, Sequence[str]] = {2: ("principal", "token_id", "form")}


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision. number: 1, 2, ... within its stack. at: with microseconds, UTC.

    kind: the decision of an answer, ``expired-<decision>`` of a deadline, ``dry-<decision>`` of a
    rule that is tried out; or refused, handed-over, breakpoint-added, breakpoint-removed.
    hook_id: None where it is about no hook. hash: 64 hexadecimal digits.

    by: for display. principal: the stable identity; "": unknown. token_id: of what authenticated
    them: the API token, or the subscription that the hook's token was given to; "": none.
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
    principal: str = ""
    token_id: str = ""
    form: int = FORM
    number: int = 0
    hash: str = ""


_FIELDS = tuple(one.name for one in fields(Entry))


def columns_of(entry: Entry) -> dict[str, Json]:
    """By name; a deep copy of each, as `asdict` makes it, took longer than to write them."""
    return {name: getattr(entry, name) for name in _FIELDS}


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
    said = columns_of(entry)
    for name in ("hash", *_beyond(entry.form)):
        del said[name]
    said["at"] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    text = orjson.dumps(said, default=str, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(before.encode() + b"\n" + text).hexdigest()


def first_wrong(entries: Sequence[Entry]) -> str | None:
    """What is wrong with the whole trail of one stack, in words; None: nothing is."""
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


def _beyond(form: int) -> list[str]:
    """The fields that an entry's hash does not cover."""
    return [name for added, names in ADDED.items() if added > form for name in names]


def _not_covered(entry: Entry) -> str | None:
    """What no hash of this form can vouch for, in words."""
    if not 1 <= entry.form <= FORM:
        return f"is of form {entry.form}, which this version does not know"
    for name in _beyond(entry.form):
        if name != "form" and getattr(entry, name):
            return f"has a {name}, which its hash does not cover"
    return None
