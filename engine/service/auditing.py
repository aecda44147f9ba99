"""Is the audit trail what was written? Read with the database alone, by whoever runs a server."""

from dataclasses import dataclass
from uuid import UUID

from engine.hooks.audit import NOTHING, Entry, first_wrong
from engine.store.audit import decided_without_entry, read_trail, stacks_with_trail
from engine.store.connection import Connection
from engine.store.read import stack_exists


@dataclass(frozen=True, slots=True)
class Written:
    """An entry as somebody wrote it down elsewhere. hash: 64 hexadecimal digits."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a check. last: the newest entry's hash. wrong: in words; None: nothing is."""

    stack_id: UUID
    decisions: int
    last: str
    wrong: str | None


async def check_trails(conn: Connection) -> list[Checked]:
    """The trail of every stack of which somebody decided something, deleted ones among them."""
    return [await check_trail(conn, stack_id) for stack_id in await stacks_with_trail(conn)]


async def check_trail(conn: Connection, stack_id: UUID, written: Written | None = None) -> Checked:
    """A stack's trail: whole, with an entry for each hook that somebody decided, and with the one
    that was written down elsewhere."""
    entries = await read_trail(conn, stack_id)
    wrong = first_wrong(entries) or _unlike(entries, written)
    if wrong is None and (hook := await decided_without_entry(conn, stack_id)) is not None:
        wrong = f"hook {hook} was decided, and no entry says so"
    if wrong is None and not entries and not await stack_exists(conn, stack_id):
        wrong = "there is neither a stack nor a trail of this id"
    last = entries[-1].hash if entries else NOTHING
    return Checked(stack_id, len(entries), last, wrong)


def _unlike(entries: list[Entry], written: Written | None) -> str | None:
    """entries: numbered from 1 without a gap."""
    if written is None:
        return None
    if written.number > len(entries):
        return f"entry {written.number} is missing: the trail ends at {len(entries)}"
    found = entries[written.number - 1].hash
    return None if found == written.hash else f"entry {written.number} is another: {found}"
