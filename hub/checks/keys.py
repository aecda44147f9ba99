"""Whether the encryption keys that are configured are those that the database needs."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.store.connection import Connection
from engine.store.credentials import sealed_ones
from engine.store.encryption import KEY_BYTES, Scope, Sealed, Sealer
from engine.store.installation import key_check
from engine.store.reencryption import forms_in_use
from hub.checks.results import Looked, State, fine
from hub.settings.settings import Settings

#: Rows of each table whose keys are looked at.
MOST_ROWS = 5_000
_ROTATE = "Run `headgate admin rotate-encryption-key`; docs/how-to/rotate-keys.md has the steps"


class KeyFiles(NamedTuple):
    """The file with the key that encrypts, and those with keys that only decrypt."""

    key: Path
    fallbacks: Sequence[Path] = ()

    @classmethod
    def of(cls, settings: Settings) -> "KeyFiles":
        credentials = settings.credentials
        key = credentials.path(settings.database.data_dir)
        return cls(key, [Path(one) for one in credentials.fallback_key_files])


async def check_keys(conn: Connection, files: KeyFiles) -> AsyncIterator[Looked]:
    check = await key_check(conn)
    if check is None:
        yield fine("key", "no value is encrypted yet")
        return
    remedy = "Restore the key of [credentials] key_file that belongs to this database"
    try:
        sealer = Sealer(
            _key(files.key), random_bytes=bytes, fallbacks=[_key(one) for one in files.fallbacks]
        )
    except (OSError, ValueError) as error:
        yield Looked("key", State.WRONG, f"no key is in {files.key}: {error}", remedy)
        return
    if check not in sealer.checks:
        said = f"this database is not encrypted with {files.key}"
        yield Looked("key", State.WRONG, said, remedy)
        return
    yield await _fitting(conn, sealer, files, rotated=check == sealer.check)
    if missing := await _missing(conn, sealer):
        said = f"values are encrypted with keys that are not configured: {', '.join(missing)}"
        remedy = "Name their files in [credentials] fallback_key_files"
        yield Looked("key", State.WRONG, said, remedy)


async def _fitting(conn: Connection, sealer: Sealer, files: KeyFiles, *, rotated: bool) -> Looked:
    closed = [one for one in await sealed_ones(conn) if not _opens(sealer, *one)]
    if closed:
        said = f"{len(closed)} credentials cannot be decrypted with {files.key}"
        return Looked(
            "key", State.WARNING, said, "Affected changes request new credentials or fail"
        )
    if not rotated:
        said = f"this database is being rotated to {files.key}, and is not through"
        return Looked("key", State.WARNING, said, _ROTATE)
    return fine("key", f"this database is encrypted with {files.key}")


async def _missing(conn: Connection, sealer: Sealer) -> list[str]:
    return sorted(await forms_in_use(conn, MOST_ROWS) - set(sealer.forms))


def _key(file: Path) -> bytes:
    """Raises OSError, ValueError."""
    key = file.read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"{file} has {len(key)} bytes, not {KEY_BYTES}")
    return key


def _opens(sealer: Sealer, scope: Scope, sealed: bytes) -> bool:
    try:
        sealer.open(scope, sealed)
    except Sealed:
        return False
    return True
