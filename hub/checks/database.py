"""Checks of a database: pooler, routines, clock, rules of its rows, passwords and keys; and, for
`headgate admin backup-check`, whether a restored database is complete and consistent."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from engine.errors import Conflict, HeadgateError
from engine.service.reads.audit_verification import check_all_logs
from engine.store.access.token_keys import key_check
from engine.store.access.tokens import weak_passwords
from engine.store.connection import Connection
from engine.store.encryption.secret_values import KEY_BYTES, DecryptionFailed, Keyring, Scope
from engine.store.maintenance.clock_correction import read_last_set_back, was_set_back_within
from engine.store.maintenance.invariants import INVARIANTS, find_violations
from engine.store.maintenance.monitoring import count_rows, newest_event_age
from engine.store.maintenance.reencryption import forms_in_use
from engine.store.pooler_check import Pooling, check_pooling
from engine.store.schema.routine_versions import database_version, own_version
from engine.store.schema.upgrade import read_pending
from engine.store.traversals.traversal_credentials import read_encrypted_credentials
from engine.words import Json
from hub.auth.secrets import full_cost
from hub.settings.settings import Settings


class CheckState(StrEnum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """check: its name. remedy: empty if the state is ok."""

    check: str
    state: CheckState
    reason: str
    remedy: str = ""

    @property
    def document(self) -> dict[str, Json]:
        return asdict(self)


def ok_result(check: str, reason: str) -> CheckResult:
    return CheckResult(check, CheckState.OK, reason)


def error_result(check: str, error: HeadgateError) -> CheckResult:
    one = error.finding
    place = f"{one.place}: " if one.place else ""
    return CheckResult(check, CheckState.ERROR, f"{place}{one.reason}", one.remedy)


#: The smallest jump of the database's clock that causes a warning, and the duration of the warning.
SET_BACK, RECENT = timedelta(seconds=5), timedelta(days=1)
#: Maximum number of rows named for each rule.
MAX_NAMED = 5
#: Maximum rows of each table that are checked for keys.
MAX_ROWS = 5_000
_ROTATE = "Run `headgate admin rotate-encryption-key`; docs/how-to/rotate-keys.md has the steps"
_MIGRATE = "Run `headgate admin migrate`, or restart a process of this version"


async def check_pooler(url: str) -> CheckResult:
    """Whether a pooler in front of PostgreSQL uses session mode. Raises Unavailable."""
    try:
        pooling = await check_pooling(url)
    except Conflict as error:
        return error_result("pooler", error)
    if pooling is Pooling.NONE:
        return ok_result("pooler", "there is no connection pooler in front of PostgreSQL")
    return ok_result("pooler", "the connection pooler in front of PostgreSQL uses session mode")


async def check_routines(conn: Connection) -> CheckResult:
    """Whether this program works with the functions and views of the database, whose migrations it
    works with."""
    there, own = await database_version(conn), own_version()
    if there is not None and own < there:
        reason = f"the functions and views have {there}, later than {own} of this headgate"
        return ok_result("routines", f"{reason}, which works with them")
    if there == own:
        return ok_result("routines", f"the functions and views have {own} of this headgate")
    if there is None or there < own:
        found = "missing" if there is None else f"{there}, older than {own} of this headgate"
        return CheckResult("routines", CheckState.ERROR, f"they are {found}", _MIGRATE)
    reason = f"the database has another build of {own} than this headgate"
    return CheckResult("routines", CheckState.ERROR, reason, _MIGRATE)


async def check_clock(conn: Connection) -> CheckResult:
    """Whether the database's clock was set back recently, or is behind an earlier reading."""
    seen = await read_last_set_back(conn)
    remedy = "Use NTP on the machine of the database; it corrects the time in small steps"
    if seen.behind >= SET_BACK:
        reason = f"the database's clock is {seen.behind} behind an earlier reading"
        more = "; a running process corrects the affected deadlines within a minute"
        return CheckResult("timekeeping", CheckState.WARNING, reason + more, remedy)
    if seen.set_back_by is not None and await was_set_back_within(conn, RECENT):
        reason = f"the database's clock was set back by {seen.set_back_by} at {seen.set_back_at}"
        more = "; the deadlines of hooks that were open then are later by this time"
        return CheckResult("timekeeping", CheckState.WARNING, reason + more, remedy)
    return ok_result("timekeeping", "the database's clock was not set back")


async def check_rules(conn: Connection, remedy: str) -> AsyncIterator[CheckResult]:
    """Whether the rules of engine/store/maintenance/invariants.py hold. remedy: if one does not."""
    try:
        broken = await find_violations(conn)
    except HeadgateError as error:
        found = error.finding
        yield CheckResult("rules", CheckState.WARNING, found.reason, found.remedy)
        return
    for rule, found_rows in broken.items():
        some = "; ".join(found_rows[:MAX_NAMED])
        reason = f"{rule}: {len(found_rows)} rows break this rule: {some}"
        yield CheckResult("rules", CheckState.ERROR, reason, remedy)
    if not broken:
        yield ok_result("rules", f"all {len(INVARIANTS)} rules hold")


async def check_passwords(conn: Connection) -> AsyncIterator[CheckResult]:
    """Whether passwords have the current scrypt parameters."""
    if weak := await weak_passwords(conn, full_cost()):
        reason = f"{weak} passwords are hashed with scrypt parameters of an earlier version"
        remedy = "Each is replaced at the next sign-in; revoke unused ones"
        yield CheckResult("passwords", CheckState.WARNING, reason, remedy)


class KeyFiles(NamedTuple):
    """key: the file of the key that encrypts. fallbacks: of keys that only decrypt."""

    key: Path
    fallbacks: Sequence[Path] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> "KeyFiles":
        credentials = settings.credentials
        key = credentials.path(settings.database.data_dir)
        return cls(key, [Path(one) for one in credentials.fallback_key_files])


async def check_keys(conn: Connection, files: KeyFiles) -> AsyncIterator[CheckResult]:
    """Whether the configured keys are those that encrypt the database."""
    check = await key_check(conn)
    if check is None:
        yield ok_result("key", "no value is encrypted yet")
        return
    remedy = "Restore the key of [credentials] key_file that belongs to this database"
    try:
        keyring = Keyring(
            _read_key(files.key),
            random_bytes=bytes,
            fallbacks=[_read_key(one) for one in files.fallbacks],
        )
    except (OSError, ValueError) as error:
        yield CheckResult(
            "key", CheckState.ERROR, f"cannot read the key {files.key}: {error}", remedy
        )
        return
    if check not in keyring.checks:
        reason = f"this database is not encrypted with {files.key}"
        yield CheckResult("key", CheckState.ERROR, reason, remedy)
        return
    yield await _check_credentials(conn, keyring, files, rotated=check == keyring.check)
    if missing := await _missing_keys(conn, keyring):
        reason = f"values are encrypted with keys that are not configured: {', '.join(missing)}"
        remedy = "Name their files in [credentials] fallback_key_files"
        yield CheckResult("key", CheckState.ERROR, reason, remedy)


async def _check_credentials(
    conn: Connection, keyring: Keyring, files: KeyFiles, *, rotated: bool
) -> CheckResult:
    undecryptable = [
        one for one in await read_encrypted_credentials(conn) if not _opens(keyring, *one)
    ]
    if undecryptable:
        reason = f"{len(undecryptable)} credentials cannot be decrypted with {files.key}"
        return CheckResult(
            "key", CheckState.WARNING, reason, "Affected changes request new credentials or fail"
        )
    if not rotated:
        reason = (
            f"this database is only partly encrypted with {files.key}: the rotation has not ended"
        )
        return CheckResult("key", CheckState.WARNING, reason, _ROTATE)
    return ok_result("key", f"this database is encrypted with {files.key}")


async def _missing_keys(conn: Connection, keyring: Keyring) -> list[str]:
    return sorted(await forms_in_use(conn, MAX_ROWS) - set(keyring.forms))


def _read_key(file: Path) -> bytes:
    """Raises OSError, ValueError."""
    key = file.read_bytes()
    if len(key) != KEY_BYTES:
        raise ValueError(f"{file} has {len(key)} bytes, not {KEY_BYTES}")
    return key


def _opens(keyring: Keyring, scope: Scope, encrypted: bytes) -> bool:
    try:
        keyring.decrypt(scope, encrypted)
    except DecryptionFailed:
        return False
    return True


_INCOMPLETE = "Restore another backup: this one is inconsistent or incomplete"


async def check_backup(conn: Connection, keys: KeyFiles) -> list[CheckResult]:
    """All checks. keys: the files of the keys that encrypt the database."""
    try:
        left = await read_pending(conn)
    except HeadgateError as error:
        return [error_result("schema", error)]
    if left:
        reason = f"the schema is older than this version; pending: {', '.join(left)}"
        remedy = "Run `headgate admin migrate` on it, and check again"
        return [CheckResult("schema", CheckState.WARNING, reason, remedy)]
    return [
        ok_result("schema", "the schema is up to date"),
        *[one async for one in check_rules(conn, _INCOMPLETE)],
        *[one async for one in _check_audit_logs(conn)],
        *[one async for one in check_keys(conn, keys)],
        *[one async for one in _count_contents(conn)],
    ]


async def _check_audit_logs(conn: Connection) -> AsyncIterator[CheckResult]:
    logs = await check_all_logs(conn)
    inconsistent = [log for log in logs if log.error]
    for log in inconsistent:
        remedy = "Compare with the signed checkpoints and the entries that you noted"
        yield CheckResult("audit", CheckState.ERROR, f"stack {log.stack_id}: {log.error}", remedy)
    if not inconsistent:
        decisions = sum(one.decisions for one in logs)
        yield ok_result(
            "audit", f"the audit logs are unchanged (stacks: {len(logs)}, entries: {decisions})"
        )


async def _count_contents(conn: Connection) -> AsyncIterator[CheckResult]:
    rows = await count_rows(conn)
    text = ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in rows.items())
    yield ok_result("contents", text)
    age = await newest_event_age(conn)
    if age is not None:
        yield ok_result("age", f"the newest commit is {age / 60:.0f} minutes old")
