"""Rotation of the encryption key while servers run: re-encrypts every stored value with
[credentials] key_file, page by page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.errors import Conflict, Unavailable
from engine.store.access.token_keys import key_check, reencrypt_instance
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance.processes import ProcessRecord, list_processes
from engine.store.maintenance.project_moves import (
    list_unfinished,
    lock_key,
    move_command,
    unlock_key,
)
from engine.store.maintenance.reencryption import TABLES, ReencryptionResult, reencrypt_table
from engine.store.projects.cells import read_cell

#: Maximum passes over all tables until no value has another key.
MAX_PASSES = 5

Report = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Rotation:
    """The result. complete: all values have the current key. encrypting: processes that still
    encrypt with another key."""

    key_id: str
    rows: int
    undecryptable: Sequence[str]
    failures: int
    encrypting: Sequence[str]
    complete: bool


async def rotate_encryption_key(
    conn: Connection, keyring: Keyring, report: Report = lambda *_: None
) -> Rotation:
    """Encrypt all values with the keyring's key. report: called with the table and the number of
    rows written.

    Raises Conflict if a running process does not have the key, or a project moves between
    cells.
    """
    await check_key(conn, keyring)
    _check_known(await list_processes(conn), keyring)
    if not await lock_key(conn):
        raise Conflict(
            "a project is being moved between cells, or another command rotates the key",
            place="[credentials]",
            remedy="Wait until the other command ends",
            code="MoveUnderWay",
        )
    try:
        await _check_moves(conn)
        return await _rotate(conn, keyring, report)
    finally:
        await unlock_key(conn)


async def _check_moves(conn: Connection) -> None:
    """Raises Conflict if rows move: they are not re-encrypted on the way."""
    if not (unfinished := await list_unfinished(conn)):
        return
    move, cell = unfinished[0], await read_cell(conn)
    target = move.moving_to or (cell.name if cell else "CELL")
    more = f", and of {len(unfinished) - 1} others" if len(unfinished) > 1 else ""
    raise Conflict(
        f'the move of the project "{move.project}" to the cell "{target}"{more} is not finished,'
        " and rows that move are not encrypted again",
        place="[credentials]",
        remedy=f"First finish it with `{move_command(move.project, target)}`,"
        " or end it with --undo",
        code="MoveUnderWay",
    )


async def _rotate(conn: Connection, keyring: Keyring, report: Report) -> Rotation:
    rows, done = 0, ReencryptionResult()
    for _ in range(MAX_PASSES):
        done = ReencryptionResult()
        for table in TABLES:
            written = await reencrypt_table(conn, keyring, table)
            report(table.name, written.rows)
            done.add(written)
        rows += done.rows
        if not done.rows:
            break
    async with conn.transaction():
        await reencrypt_instance(conn, keyring)
    encrypting = [
        f"{one.id} on {one.host}"
        for one in await list_processes(conn)
        if one.up and list(one.key_ids)[:1] != [keyring.key_id]
    ]
    complete = not (done.rows or done.failures or encrypting)
    return Rotation(
        keyring.key_id, rows, done.undecryptable, done.failures, encrypting, complete
    )  # fmt: skip


async def check_key(conn: Connection, keyring: Keyring) -> None:
    """Raise Unavailable unless the keyring has the encryption key of the database."""
    check = await key_check(conn)
    if check is not None and check not in keyring.checks:
        raise Unavailable(
            "this database is encrypted with a key that is not configured",
            place="[credentials]",
            remedy="Name the file with its current key in fallback_key_files.",
        )


def _check_known(processes: Sequence[ProcessRecord], keyring: Keyring) -> None:
    """Raise Conflict unless every running process has the key and can read new values."""
    missing = [one for one in processes if one.up and keyring.key_id not in one.key_ids]
    if missing:
        raise Conflict(
            f"process {missing[0].id} on {missing[0].host} does not have the key {keyring.key_id}",
            place="[credentials]",
            remedy="First add the new key to fallback_key_files of all processes; restart them.",
            code="KeyUnknown",
        )
