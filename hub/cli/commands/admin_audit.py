"""headgate admin: verify-audit, sign-audit and audit-key."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from engine.errors import HeadgateError, Unavailable
from engine.words import uuid_or_none
from hub.cli.connection.client import is_prefix
from hub.cli.context import print_result, run_offline
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop
from hub.cli.options import OfflineOptions, with_options
from hub.cli.printing.renderables import styled_text

if TYPE_CHECKING:
    from engine.store.connection import Connection
    from hub.settings.settings import Settings

Json = Any
#: Number and hash of an entry of the audit log.
Entry = tuple[int, str]
app = typer.Typer()
_ENTRY = re.compile(r"([1-9]\d{0,8}):([0-9a-f]{64})")


def id_or_prefix(text: str) -> str:
    """Check the ID of a stack, or the beginning of one. Raises typer's usage error."""
    if uuid_or_none(text) is None and not is_prefix(text):
        raise typer.BadParameter(f'"{text}" is neither an ID nor at least 4 characters of one')
    return text


@app.command()
@with_options
def verify_audit(
    offline: OfflineOptions,
    stack: Annotated[
        str | None,
        typer.Argument(
            metavar="STACK_ID",
            help="ID of a stack, or a unique prefix of it. The stack may be deleted. Default: all"
            " stacks.",
            parser=id_or_prefix,
        ),
    ] = None,
    expect: Annotated[
        str,
        typer.Option(
            metavar="NUMBER:HASH",
            help="An entry that you noted earlier; the audit log must still contain it.",
        ),
    ] = "",
    signed: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Signed checkpoints; repeatable. Default: the server's own file, if it exists.",
        ),
    ] = [],  # noqa: B006
    public_key: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="A key of `headgate admin audit-key`; repeatable. Default: the server's own key.",
        ),
    ] = [],  # noqa: B006
) -> None:
    """Verify the hash chains and signatures of the audit log."""
    entry = read_entry(expect) if expect else None
    if entry is not None and stack is None:
        stop("--expect needs the ID of the stack", ExitCode.USAGE)

    async def work(settings: "Settings") -> tuple[list[Json], int]:
        return await _verify(settings, stack, entry, signed, public_key)

    results, projects = run_offline(offline, work)
    print_result(results, offline.format, lambda: styled_text("\n".join(report(results, projects))))
    raise typer.Exit(ExitCode.ERROR if any(one["error"] for one in results) else ExitCode.COMPLETE)


@app.command()
@with_options
def sign_audit(offline: OfflineOptions) -> None:
    """Sign the audit log now. The server does this every hour."""

    async def work(settings: "Settings") -> int:
        from engine.work.audit_signing import export_checkpoints, sign_heads
        from hub.checks.offline_database import open_offline
        from hub.keys.audit_key import checkpoint_exporter, signer_of

        audit, directory = settings.audit, settings.database.data_dir
        async with open_offline(settings.database) as conn:
            count = await sign_heads(conn, signer_of(audit.key_path(directory)))
            export = checkpoint_exporter(audit.checkpoints_path(directory))
            await export_checkpoints(conn, export)
        return count

    count = run_offline(offline, work)
    signed = styled_text(f"signed {count} checkpoints")
    print_result({"checkpoints": count}, offline.format, lambda: signed)


@app.command()
@with_options
def audit_key(offline: OfflineOptions) -> None:
    """Print the public key that verifies the signatures of the audit log."""

    async def work(settings: "Settings") -> str:
        from hub.keys.audit_key import public_pem

        return public_pem(settings.audit.key_path(settings.database.data_dir))

    key = run_offline(offline, work)
    print_result({"public_key": key}, offline.format, lambda: styled_text(key.rstrip("\n")))


async def _verify(
    settings: "Settings",
    stack: str | None,
    entry: Entry | None,
    signed: list[Path],
    public_keys: list[Path],
) -> tuple[list[Json], int]:
    """A result for each stack and, last, one for the checkpoints; and the number of projects with
    entries."""
    # Imported here, because it takes long, and most commands do not need it.
    from engine.hooks.checkpoint import first_fault
    from engine.service.reads.audit_verification import (
        KnownEntry,
        check_all_logs,
        check_heads,
        check_log,
    )
    from engine.store.audit.audit_log import count_projects
    from hub.checks.offline_database import open_offline
    from hub.keys.audit_key import merge_checkpoints, read_checkpoints, read_public

    audit, directory = settings.audit, settings.database.data_dir
    own = audit.checkpoints_path(directory)
    read = {path: read_checkpoints(path) for path in signed or ([own] if own.exists() else [])}
    checkpoints = merge_checkpoints(read.values())
    for path in signed:
        if not read[path]:
            raise Unavailable(
                f"{path} has no signed checkpoint, so it verifies nothing",
                place="--signed",
                remedy="Name a file of signed checkpoints.",
            )
    fault = None
    if checkpoints or public_keys:
        fault = first_fault(checkpoints, read_public(public_keys or [audit.key_path(directory)]))
    async with open_offline(settings.database) as conn:
        stack_id = None if stack is None else await _find_stack(conn, stack)
        if stack_id is None:
            found = await check_all_logs(conn)
        else:
            known = KnownEntry(*entry) if entry else None
            found = [await check_log(conn, stack_id, known)]
        found = await check_heads(conn, found, checkpoints, settings.retention.audit_logs)
        if stack_id is not None:
            found = [one for one in found if one.stack_id == stack_id]
        projects = await count_projects(conn, [one.stack_id for one in found])
    results = [asdict(one) | {"stack_id": str(one.stack_id)} for one in found]
    if checkpoints:
        results.append({"checkpoints": len(checkpoints), "error": fault})
    return results, projects


async def _find_stack(conn: "Connection", text: str) -> UUID:
    """A stack with an audit log, by the beginning of its ID. Raises HeadgateError."""
    from engine.store.audit.audit_log import stacks_with_log

    if (stack_id := uuid_or_none(text)) is not None:
        return stack_id
    found = [one for one in await stacks_with_log(conn) if str(one).startswith(text.lower())]
    if len(found) == 1:
        return found[0]
    several = f"is the beginning of {len(found)} IDs: {', '.join(map(str, found[:5]))}"
    raise HeadgateError(
        several if found else "no stack with an audit log has an ID that begins with it",
        place=text,
        remedy="Write more of the ID." if found else "`headgate admin verify-audit` lists them.",
    )


def read_entry(text: str) -> Entry:
    """``NUMBER:HASH``; raises typer's usage error."""
    match = _ENTRY.fullmatch(text)
    if match is None:
        raise typer.BadParameter(
            f'"{text}" is not an audit log entry; write NUMBER:HASH as verify-audit prints it'
        )
    return int(match[1]), match[2]


def report(found: Sequence[Json], projects: int) -> list[str]:
    """The lines to print: the stacks without errors first, then errors, then a summary.

    found: a result for each stack, and one for the checkpoints if there are any. projects: the
    number of projects with entries.
    """
    stacks = [one for one in found if "stack_id" in one]
    entries = sum(one["decisions"] for one in stacks)
    signatures = sum(one.get("checkpoints", 0) for one in found)
    problems = sum(bool(one["error"]) for one in found)
    summary = (
        f"checked {_count(entries, 'entry', 'entries')} of"
        f" {_count(len(stacks), 'stack')} in {_count(projects, 'project')}"
        f" and {_count(signatures, 'signed checkpoint')}:"
        f" {_count(problems, 'problem')}"
    )
    return [*map(_line, sorted(found, key=lambda one: bool(one["error"]))), summary]


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _line(one: Json) -> str:
    if "checkpoints" in one:
        error = one["error"]
        return f"checkpoints  error: {error}" if error else f"checkpoints  ok {one['checkpoints']}"
    if one["error"]:
        return f"{one['stack_id']}  error: {one['error']}"
    entries = _count(one["decisions"], "entry", "entries")
    return f"{one['stack_id']}  ok {entries}, last {one['last']}"
