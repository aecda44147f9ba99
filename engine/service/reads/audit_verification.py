"""Verifies the audit log against its hashes, the hooks and signed checkpoints. Needs only the
database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from engine.hooks.checkpoint import Checkpoint, Head, newest_heads
from engine.hooks.hash_chain import NOTHING, Entry, first_error
from engine.store.audit.audit_log import find_hook_without_entry, read_log, stacks_with_log
from engine.store.audit.checkpoints import hashes_of, purged_before
from engine.store.connection import Connection
from engine.store.stacks.stack_lists import stack_exists


@dataclass(frozen=True, slots=True)
class KnownEntry:
    """An entry that was recorded outside the database. hash: 64 hexadecimal digits."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class LogCheck:
    """The result for one stack. decisions: the number of entries. last: hash of the newest entry.
    error: the first error; None if there is none."""

    stack_id: UUID
    decisions: int
    last: str
    error: str | None


async def check_all_logs(conn: Connection) -> list[LogCheck]:
    """Check the audit logs of all stacks that have one, deleted ones included."""
    return [await check_log(conn, stack_id) for stack_id in await stacks_with_log(conn)]


async def check_log(conn: Connection, stack_id: UUID, known: KnownEntry | None = None) -> LogCheck:
    """Check the audit log of a stack: it must be complete, have an entry for each decided hook, and
    contain the known entry."""
    entries = await read_log(conn, stack_id)
    error = first_error(entries) or _mismatch(entries, known)
    if error is None and (hook := await find_hook_without_entry(conn, stack_id)) is not None:
        error = f"hook {hook} was decided, but has no entry"
    if error is None and not entries and not await stack_exists(conn, stack_id):
        error = "there is no stack and no audit log with this id"
    last = entries[-1].hash if entries else NOTHING
    return LogCheck(stack_id, len(entries), last, error)


def _mismatch(entries: list[Entry], known: KnownEntry | None) -> str | None:
    """How the entries differ from the known one; None if they match. entries: numbered from 1
    without gaps."""
    if known is None:
        return None
    if known.number > len(entries):
        return f"entry {known.number} is missing: the log ends at entry {len(entries)}"
    found = entries[known.number - 1].hash
    return None if found == known.hash else f"entry {known.number} has another hash: {found}"


async def check_heads(
    conn: Connection,
    checked: Sequence[LogCheck],
    checkpoints: Sequence[Checkpoint],
    kept_for: timedelta | None,
) -> list[LogCheck]:
    """Compare the logs with their signed heads; adds results for stacks without any rows left.

    kept_for: [retention] audit_logs, after which the log of a deleted stack may be purged; None:
    never.
    """
    signed = newest_heads(checkpoints)
    now = await hashes_of(conn, [head for heads in signed.values() for head in heads])
    gone = await purged_before(conn, kept_for) if kept_for is not None else None
    purged = {
        head.stack_id
        for one in checkpoints
        for head in one.heads
        if gone is not None and one.at < gone
    }
    found = {one.stack_id: one for one in checked}
    for stack_id, heads in signed.items():
        check = found.get(stack_id)
        if check is None and stack_id in purged:
            continue
        check = check or LogCheck(stack_id, 0, NOTHING, None)
        if check.error is None and (error := _signed_mismatch(heads, now)) is not None:
            check = replace(check, error=error)
        found[stack_id] = check
    return list(found.values())


def _signed_mismatch(
    heads: Sequence[Head], now: Mapping[tuple[UUID, int], str | None]
) -> str | None:
    """How the current entries differ from the signed heads; None if they match."""
    for head in heads:
        hash_now = now[head.stack_id, head.number]
        if hash_now is None:
            return f"entry {head.number}, which is signed, is missing"
        if hash_now != head.hash:
            return f"entry {head.number} is not the one that was signed"
    return None
