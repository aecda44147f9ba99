"""headgate admin doctor: checks of an installation, each with a remedy. They change nothing."""

import shutil
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

from channels.amqp.connection import BrokerConnection, ConnectionSettings
from channels.store.backlog import read_backlog
from engine.errors import Conflict, HeadgateError
from engine.hooks.operator import Gap, Overlap, gaps, overlaps
from engine.store.access.token_copies import TokenState, compare_cells, read_shared
from engine.store.access.tokens import MODE
from engine.store.connection import Connection
from engine.store.encryption.secret_values import KEY_BYTES
from engine.store.hosts import hosts_of
from engine.store.maintenance.failover_losses import read_losses
from engine.store.maintenance.monitoring import read_server_status, read_waiting_work
from engine.store.maintenance.processes import read_served_labels, read_unserved_labels
from engine.store.projects.cells import CellRecord, read_cell
from engine.store.schema.compatibility import list_running
from engine.store.schema.upgrade import read_pending
from engine.store.server_check import check_pooler_url, check_replicas, check_servers
from hub.checks.database import (
    MAX_NAMED,
    CheckResult,
    CheckState,
    KeyFiles,
    check_clock,
    check_keys,
    check_passwords,
    check_pooler,
    check_routines,
    check_rules,
    error_result,
    ok_result,
)
from hub.checks.moving_projects import check_moves
from hub.checks.offline_database import connect, locate_database
from hub.checks.upgrade import check_processes
from hub.program.resource_type_registry import endpoints, outbound_settings, read_credentials
from hub.program.wiring import broker_settings, notification_connection, webhook_settings
from hub.settings.cells import CellsSection
from hub.settings.settings import DatabaseSettings, Settings

#: The oldest supported version of PostgreSQL, as `server_version_num`.
OLDEST = 150_000
#: Seconds that the clocks of this machine and the database may differ.
SKEW = 2.0
#: How long a failover with losses causes a warning.
LOSS_AGE = timedelta(days=7)
#: How long due work may wait before it counts as stuck.
PATIENCE = timedelta(minutes=1)
#: Free bytes below which the check warns, and below which it fails.
LOW_SPACE, NONE = 2 * 2**30, 200 * 2**20


async def run_checks(settings: Settings, config: Path | None) -> list[CheckResult]:
    """All checks. config: the file the settings were read from."""
    found = [
        ok_result("settings", "all settings are known and valid"),
        *_check_files(settings, config),
        *_check_hook_rules(settings),
        _check_disk(settings),
        _check_egress(settings),
        *await _check_brokers(settings),
    ]
    if not settings.cells.databases:
        return found + await _check_database_of(settings)
    for cell in settings.cells.databases:
        of_cell = await _check_database_of(settings.of_cell(cell), cell.name)
        found += [replace(one, check=f"{cell.name}: {one.check}") for one in of_cell]
    found += await check_moves(settings)
    if settings.auth.mode == MODE:
        found.append(await _check_tokens(settings))
    return found


async def _check_tokens(settings: Settings) -> CheckResult:
    """Whether the cells that respond have the same tokens of every project."""
    states: dict[str, Mapping[UUID, TokenState]] = {}
    for cell in settings.cells.databases:
        with suppress(HeadgateError):
            async with connect(cell.url.get_secret_value()) as conn:
                if not await read_pending(conn):
                    states[cell.name] = await read_shared(conn)
    behind = [
        name
        for name, difference in compare_cells(states).items()
        if difference.missing or difference.revoked
    ]
    if behind:
        reason = f"these cells lack tokens of every project, or revocations: {', '.join(behind)}"
        remedy = "Start a process with the role api and these settings, which copies them"
        return CheckResult("tokens", CheckState.WARNING, reason, remedy)
    return ok_result("tokens", f"{len(states)} cells have the same tokens of every project")


async def _check_database_of(settings: Settings, cell: str = "") -> list[CheckResult]:
    """cell: its name, if the database should be a cell."""
    found: list[CheckResult] = []
    keys = KeyFiles.from_settings(settings)
    try:
        async with locate_database(settings.database) as url:
            found.append(await _check_servers(url))
            found += await _check_replicas(url, settings.database)
            pooler = await check_pooler(url)
            found += [pooler, *await _check_pooler(url, settings.database)]
            if pooler.state is CheckState.OK:
                async with connect(url) as conn:
                    found += [one async for one in _check_database(conn, keys)]
                    if cell and not await read_pending(conn):
                        found.append(check_cell(await read_cell(conn), cell, settings.cells))
    except HeadgateError as error:
        found.append(error_result("database", error))
    return found


def check_cell(record: CellRecord | None, name: str, settings: CellsSection) -> CheckResult:
    """Whether the database is the cell that the settings name, with their revision."""
    if record is None:
        reason = "the database is no cell yet; the first start of a process with [cells] makes it"
        return ok_result("cell", reason)
    if record.name != name:
        reason = f'the database is that of the cell "{record.name}"'
        return CheckResult("cell", CheckState.ERROR, reason, "Give each cell its own database")
    if record.announced > settings.revision:
        reason = f"the cell has revision {record.announced} of [cells], which is later than this"
        return CheckResult("cell", CheckState.ERROR, reason, "Use the current settings")
    if record.agreed < settings.revision:
        reason = f"the cells have not agreed to revision {settings.revision} of [cells] yet"
        remedy = "Start a process with these settings while all cells are available"
        return CheckResult("cell", CheckState.WARNING, reason, remedy)
    return ok_result("cell", f"the cells have agreed to revision {record.agreed} of [cells]")


async def _check_servers(url: str) -> CheckResult:
    """Whether a process may use the servers of the URL. Raises Unavailable."""
    try:
        await check_servers(url, time.time)
    except Conflict as error:
        return error_result("servers", error)
    hosts = hosts_of(url)
    if len(hosts) < 2:
        return ok_result("servers", "the database has one server")
    return ok_result("servers", f"one of {len(hosts)} hosts accepts writes")


async def _check_pooler(url: str, settings: DatabaseSettings) -> list[CheckResult]:
    """Whether the pooler that the settings name leads to the database. Raises Unavailable."""
    pooler_url = settings.pooler_url.get_secret_value()
    try:
        await check_pooler_url(url, pooler_url)
    except Conflict as error:
        return [error_result("pooler", error)]
    reason = "pooler_url leads to the database, and has transactions"
    return [ok_result("pooler", reason)] if pooler_url else []


async def _check_replicas(url: str, settings: DatabaseSettings) -> list[CheckResult]:
    """Whether the replicas that the settings name serve reads. Raises Unavailable."""
    try:
        states = await check_replicas(url, settings.read_url.get_secret_value(), settings.read_lag)
    except Conflict as error:
        return [error_result("replicas", error)]
    unusable = [f"{host}: {reason}" for host, reason in states.items() if reason]
    if unusable:
        reason = f"[database] read_url: the primary serves the reads of {'; '.join(unusable)}"
        remedy = "docs/how-to/run-at-scale.md#read-from-replicas lists the reasons"
        return [CheckResult("replicas", CheckState.WARNING, reason, remedy)]
    if not states:
        return []
    count = "one replica serves" if len(states) == 1 else f"{len(states)} replicas serve"
    return [ok_result("replicas", f"{count} lists and histories")]


async def _check_database(conn: Connection, keys: KeyFiles) -> AsyncIterator[CheckResult]:
    began = time.time()
    status = await read_server_status(conn)
    took = time.time() - began
    if status.number < OLDEST:
        reason, remedy = f"it is PostgreSQL {status.version}", "Upgrade to PostgreSQL 15 or later"
        yield CheckResult("database", CheckState.ERROR, reason, remedy)
    elif status.standby:
        reason, remedy = "it is a read-only standby", "Name the primary in [database] url"
        yield CheckResult("database", CheckState.ERROR, reason, remedy)
    else:
        yield ok_result("database", f"PostgreSQL {status.version}")
    yield clocks(status.now.timestamp() - began - took / 2, took)
    try:
        pending = await read_pending(conn)
    except HeadgateError as error:
        yield error_result("schema", error)
        return
    if pending:
        reason = f"the schema is older than this headgate; pending: {', '.join(pending)}"
        yield CheckResult("schema", CheckState.ERROR, reason, "Run `headgate admin migrate`")
        return
    yield ok_result("schema", "the schema is up to date")
    yield await check_routines(conn)
    yield check_processes(await list_running(conn))
    yield await check_clock(conn)
    for checks in (
        _check_failovers(conn),
        check_keys(conn, keys),
        check_passwords(conn),
        check_rules(conn, "Report it, with the logs of the running processes"),
        _check_work(conn),
        check_labels(conn),
    ):
        async for one in checks:
            yield one


def clocks(ahead: float, took: float) -> CheckResult:
    """Whether both clocks agree. ahead: seconds that the database's clock is ahead of this
    machine's. took: seconds of the query; half of them is the accuracy."""
    if abs(ahead) <= SKEW + took / 2:
        return ok_result("clocks", f"this machine and the database differ by {abs(ahead):.1f} s")
    direction = "behind" if ahead > 0 else "ahead of"
    reason = f"this machine is {abs(ahead):.1f} s {direction} the database"
    remedy = "Use NTP on both: receivers reject webhooks whose timestamp is wrong"
    return CheckResult("clocks", CheckState.WARNING, reason, remedy)


async def _check_failovers(conn: Connection) -> AsyncIterator[CheckResult]:
    """What promoted servers lacked."""
    losses = await read_losses(conn, LOSS_AGE)
    for loss in losses:
        operations = [
            f"{one['operation']} of {one['resource']} ({one['type']}) of stack {one['stack']} in"
            f" project {one['project']}"
            for one in loss.operations[:MAX_NAMED]
        ]
        more = len(loss.operations) - len(operations)
        operations += [f"{more} more"] if more > 0 else []
        reason = (
            f"the server that was promoted before {loss.detected_at:%Y-%m-%d %H:%M:%S} UTC lacked"
            f" at least {loss.commits} commits; process {loss.process} had called operations that"
            f" it does not know: {'; '.join(operations) or 'none'}"
        )
        remedy = "See docs/how-to/run-at-scale.md: find what these operations have made outside"
        yield CheckResult("failovers", CheckState.WARNING, reason, remedy)
    if not losses:
        yield ok_result("failovers", "no promoted server lacked commits")


#: Text and remedy for each kind of stuck work.
STUCK = {
    "unclaimed": (
        "work is due that no worker claims",
        "Start processes with the role engine, or more of them; see their logs",
    ),
    "expired_leases": (
        "traversals have nodes with an expired lease that no worker claims",
        "Start processes with the role engine; see their logs",
    ),
    "unended": (
        "traversals have no unfinished nodes and were not ended",
        "Start processes with the role engine; see their logs",
    ),
    "hooks_overdue": (
        "hooks are past their deadline and have not expired",
        "Start processes with the role engine; see their logs",
    ),
    "unpublished": (
        "commits have events that were not published",
        "Start processes with the role dispatch; see their logs",
    ),
    "overdue": (
        "deliveries are due and not attempted",
        "Start processes with the role dispatch, or more of them; see their logs",
    ),
    "disabled": (
        "subscriptions are disabled; their deliveries are kept",
        "See why with `headgate subscription list`; enable or delete them",
    ),
}


async def _check_work(conn: Connection) -> AsyncIterator[CheckResult]:
    work, backlog = await read_waiting_work(conn, PATIENCE), await read_backlog(conn, PATIENCE)
    unpublished_for = backlog.oldest_unpublished or 0.0
    counts = {name: getattr(work, name, None) for name in STUCK}
    counts |= {"overdue": backlog.overdue, "disabled": backlog.disabled}
    late = unpublished_for > PATIENCE.total_seconds()
    counts["unpublished"] = backlog.unpublished if late else 0
    stuck = {name: count for name, count in counts.items() if count}
    if not stuck:
        yield ok_result("work", f"no work is stuck (hooks waiting: {work.hooks_waiting})")
    for name, count in stuck.items():
        text, remedy = STUCK[name]
        yield CheckResult("work", CheckState.WARNING, f"{count} {text}", remedy)


async def check_labels(conn: Connection) -> AsyncIterator[CheckResult]:
    """Whether running processes have the labels of all due work, if some use labels."""
    served = await read_served_labels(conn)
    unserved = await read_unserved_labels(conn)
    for one in unserved:
        nodes = "1 node waits" if one.nodes == 1 else f"{one.nodes} nodes wait"
        reason = (
            f"{nodes} for a worker with the label {one.label} since"
            f" {one.since:%Y-%m-%d %H:%M:%S} UTC, and no running process has it"
        )
        remedy = f'Start a process with the role engine and [engine] labels = ["{one.label}"]'
        yield CheckResult("labels", CheckState.WARNING, reason, remedy)
    if served and "" not in served:
        reason = "all running engines have labels, so none executes what has no label"
        remedy = "Start a process with the role engine without labels, or set unlabelled"
        yield CheckResult("labels", CheckState.WARNING, reason, remedy)
    elif not unserved:
        named = ", ".join(sorted(served - {""})) or "none"
        yield ok_result("labels", f"no label is missing; running processes have: {named}")


def _check_files(settings: Settings, config: Path | None) -> Iterator[CheckResult]:
    """Whether key files are valid, and readable by their owner only."""
    key = settings.credentials.path(settings.database.data_dir)
    if not key.exists():
        remedy = "A server creates one at its first start; all processes need the same key"
        yield CheckResult(
            "files", CheckState.WARNING, f"there is no encryption key {key} yet", remedy
        )
    elif key.stat().st_size != KEY_BYTES:
        reason = f"the encryption key {key} has {key.stat().st_size} bytes, not {KEY_BYTES}"
        yield CheckResult("files", CheckState.ERROR, reason, "Restore it from your backup")
    secret = [*settings.key_files, *([config] if config else [])]
    readable = [path for path in secret if path.exists() and _open_to_others(path)]
    for path in readable:
        reason = f"accounts other than the owner can read {path}"
        yield CheckResult("files", CheckState.WARNING, reason, f"chmod 600 {path}")
    if not readable:
        yield ok_result("files", "key and settings files are readable by their owner only")
    types = settings.resource_types
    for read in (
        lambda: webhook_settings(settings.channels.webhook),
        lambda: outbound_settings(types.http),
        lambda: read_credentials(types.http.credentials),
        lambda: endpoints(types.remote_stack),
    ):
        try:
            read()
        except HeadgateError as error:
            yield error_result("files", error)
            return


def _check_hook_rules(settings: Settings) -> Iterator[CheckResult]:
    rules = settings.hooks.operator_rules()
    found: list[Overlap | Gap] = [*overlaps(rules), *gaps(rules)]
    for one in found:
        yield CheckResult("hooks", CheckState.WARNING, one.reason, one.remedy)
    if not found:
        yield ok_result("hooks", f"no two of {len(rules)} operator rules block at the same point")


def _open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _check_disk(settings: Settings) -> CheckResult:
    if settings.database.url.get_secret_value():
        return ok_result("disk", "the database is on another server")
    directory = settings.database.data_dir.absolute()
    existing = next(one for one in (directory, *directory.parents) if one.exists())
    return check_space(shutil.disk_usage(existing).free, existing)


def check_space(free: int, directory: Path) -> CheckResult:
    """free: bytes on the volume of the directory."""
    reason = f"{free / 2**30:.1f} GiB are free in {directory}"
    if free < LOW_SPACE:
        state = CheckState.ERROR if free < NONE else CheckState.WARNING
        return CheckResult("disk", state, reason, "Free space, or lower [retention]")
    return ok_result("disk", reason)


def _check_egress(settings: Settings) -> CheckResult:
    allowed = settings.channels.webhook.allow
    for section, networks in (
        ("[channels.webhook]", allowed),
        ("[resource_types.http]", settings.resource_types.http.allow),
    ):
        whole = [str(one) for one in networks if one.prefixlen == 0]
        if whole:
            reason = f"{section} allows every address ({whole[0]})"
            remedy = f"List only the required networks in {section} allow"
            return CheckResult("webhooks", CheckState.WARNING, reason, remedy)
    named = ", ".join(map(str, allowed)) or "no other networks"
    return ok_result("webhooks", f"webhooks can reach public addresses and {named}")


async def _check_brokers(settings: Settings) -> list[CheckResult]:
    """The broker of events and answers and, if one is configured, that of notifications."""
    amqp, observer = settings.channels.amqp, settings.observer.amqp
    found = [await _check_broker("broker", "[channels.amqp] url", partial(broker_settings, amqp))]
    if observer.url:
        place = "[observer.amqp] url"
        connection = partial(notification_connection, observer)
        found.append(await _check_broker("notifications", place, connection))
    return found


async def _check_broker(
    name: str, place: str, read: Callable[[], ConnectionSettings | None]
) -> CheckResult:
    try:
        broker = read()
    except HeadgateError as error:
        return error_result(name, error)
    if broker is None:
        return ok_result(name, "no broker is configured")
    problem = await BrokerConnection(broker).probe()
    if problem is None:
        return ok_result(name, "it is reachable")
    reason = f"no node of {place} is reachable: {problem}"
    remedy = "Check that RabbitMQ runs, and the user name and password"
    return CheckResult(name, CheckState.ERROR, reason, remedy)
