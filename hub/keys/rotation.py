"""Rotation of the encryption key while servers run: every stored value is encrypted anew with
[credentials] key_file, page by page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.errors import Conflict, Unavailable
from engine.store.connection import Connection
from engine.store.encrypted_columns import TABLES
from engine.store.encryption import Sealer
from engine.store.installation import key_check, reencrypt_instance
from engine.store.processes import ProcessRecord, list_processes
from engine.store.reencryption import Reencrypted, reencrypt_table

#: How often all tables are gone through, until nothing with another key is found.
MOST_PASSES = 5

Report = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class Rotation:
    """What came of it. complete: nothing needs another key any more. encrypting: processes that
    still encrypt with another key."""

    key_id: str
    rows: int
    undecryptable: Sequence[str]
    failures: int
    encrypting: Sequence[str]
    complete: bool


async def rotate_encryption_key(
    conn: Connection, sealer: Sealer, report: Report = lambda *_: None
) -> Rotation:
    """Encrypt everything with the sealer's key. report: is called with table and rows written.

    Raises Conflict when a running process does not have the key.
    """
    await check_key(conn, sealer)
    _check_known(await list_processes(conn), sealer)
    rows, done = 0, Reencrypted()
    for _ in range(MOST_PASSES):
        done = Reencrypted()
        for table in TABLES:
            written = await reencrypt_table(conn, sealer, table)
            report(table.name, written.rows)
            done.add(written)
        rows += done.rows
        if not done.rows:
            break
    async with conn.transaction():
        await reencrypt_instance(conn, sealer)
    encrypting = [
        f"{one.id} on {one.host}"
        for one in await list_processes(conn)
        if one.up and list(one.key_ids)[:1] != [sealer.key_id]
    ]
    complete = not (done.rows or done.failures or encrypting)
    return Rotation(
        sealer.key_id, rows, done.undecryptable, done.failures, encrypting, complete
    )  # fmt: skip


async def check_key(conn: Connection, sealer: Sealer) -> None:
    """Raises Unavailable unless the key that the database has is one of the sealer's."""
    check = await key_check(conn)
    if check is not None and check not in sealer.checks:
        raise Unavailable(
            "this database is encrypted with a key that is not configured",
            place="[credentials]",
            remedy="Name the file with the key it had so far in fallback_key_files.",
        )


def _check_known(processes: Sequence[ProcessRecord], sealer: Sealer) -> None:
    """They would not be able to read what is encrypted now."""
    missing = [one for one in processes if one.up and sealer.key_id not in one.key_ids]
    if missing:
        raise Conflict(
            f"process {missing[0].id} on {missing[0].host} does not have the key {sealer.key_id}",
            place="[credentials]",
            remedy="First name the new key in fallback_key_files of every process and restart it.",
            code="KeyUnknown",
        )
