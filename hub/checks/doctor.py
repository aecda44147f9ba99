"""Is this installation well? Each check looks at one thing, changes nothing, and says what to do.

The table `CHECKS` is in the order in which one would look; a check that cannot look because an
earlier thing is wrong says nothing of its own.
"""

import shutil
import stat
import time
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

from channels.amqp.broker import Broker
from channels.store.backlog import read_backlog
from engine.errors import HeadgateError
from engine.store.backlog import server, work
from engine.store.connection import Connection
from engine.store.encryption import KEY_BYTES
from engine.store.schema_upgrade import outstanding
from hub.checks.database import (
    check_clock,
    check_passwords,
    check_pooler,
    check_routines,
    check_rules,
)
from hub.checks.keys import KeyFiles, check_keys
from hub.checks.offline_database import looked_into, reached
from hub.checks.results import Looked, State, fine, refused
from hub.program.resource_types import endpoints, lent, outbound_settings
from hub.program.wiring import broker_settings, signing_key, webhook_settings
from hub.settings.settings import Settings

#: The oldest PostgreSQL that works, as it numbers itself.
OLDEST = 150_000
#: Seconds that the clocks of this machine and the database may differ.
SKEW = 2.0
#: How long due work may wait before it counts as stuck.
PATIENCE = timedelta(minutes=1)
#: Bytes free below which there is a warning, and below which it is wrong.
LITTLE, NONE = 2 * 2**30, 200 * 2**20


async def run_checks(settings: Settings, config: Path | None) -> list[Looked]:
    """All checks. config: the file the settings were read from."""
    found = [
        fine("settings", "every setting is known and in its bounds"),
        *_files(settings, config),
        _room(settings),
        _guard(settings),
        await _broker(settings),
    ]
    keys = KeyFiles.of(settings)
    try:
        async with reached(settings.database) as url:
            found.append(await check_pooler(url))
            if found[-1].state is State.OK:
                async with looked_into(url) as conn:
                    found += [one async for one in _database(conn, keys)]
    except HeadgateError as error:
        found.append(refused("database", error))
    return found


async def _database(conn: Connection, keys: KeyFiles) -> AsyncIterator[Looked]:
    began = time.time()
    there = await server(conn)
    took = time.time() - began
    if there.number < OLDEST:
        yield Looked("database", State.WRONG, f"it is PostgreSQL {there.version}",
                     "Headgate needs PostgreSQL 15 or later")  # fmt: skip
    elif there.standby:
        yield Looked("database", State.WRONG, "it is a standby, which takes no changes",
                     "Name the primary in [database] url")  # fmt: skip
    else:
        yield fine("database", f"PostgreSQL {there.version}")
    yield clocks(there.now.timestamp() - began - took / 2, took)
    try:
        left = await outstanding(conn)
    except HeadgateError as error:
        yield refused("schema", error)
        return
    if left:
        yield Looked("schema", State.WRONG, f"it is older than this headgate: no {', '.join(left)}",
                     "Run `headgate admin migrate`")  # fmt: skip
        return
    yield fine("schema", "the schema is up to date")
    yield await check_routines(conn)
    yield await check_clock(conn)
    async for one in check_keys(conn, keys):
        yield one
    async for one in check_passwords(conn):
        yield one
    async for one in check_rules(conn, "Report it, with the log of the processes that run"):
        yield one
    async for one in _stuck(conn):
        yield one


def clocks(ahead: float, took: float) -> Looked:
    """ahead: seconds the database's clock is before ours, give or take half of what asking took."""
    if abs(ahead) <= SKEW + took / 2:
        return fine("clocks", f"this machine and the database differ by {abs(ahead):.1f} s")
    direction = "behind" if ahead > 0 else "ahead of"
    said = f"this machine is {abs(ahead):.1f} s {direction} the database"
    remedy = "Have both keep time by NTP: receivers refuse webhooks signed at another time"
    return Looked("clocks", State.WARNING, said, remedy)


#: What may be stuck -> how it is said, and what to do.
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
        "subscriptions are disabled; what they are to get is kept for them",
        "See why with `headgate subscription list`; enable or delete them",
    ),
}


async def _stuck(conn: Connection) -> AsyncIterator[Looked]:
    doing, telling_now = await work(conn, PATIENCE), await read_backlog(conn, PATIENCE)
    waits = telling_now.oldest_unpublished or 0.0
    counts = {name: getattr(doing, name, None) for name in STUCK}
    counts |= {"overdue": telling_now.overdue, "disabled": telling_now.disabled}
    counts["unpublished"] = telling_now.unpublished if waits > PATIENCE.total_seconds() else 0
    stuck = {name: count for name, count in counts.items() if count}
    if not stuck:
        yield fine("work", f"no work is stuck; {doing.hooks_waiting} hooks are waiting")
    for name, count in stuck.items():
        said, remedy = STUCK[name]
        yield Looked("work", State.WARNING, f"{count} {said}", remedy)


def _files(settings: Settings, config: Path | None) -> Iterator[Looked]:
    """Keys that others may read, and keys that are none."""
    key = settings.credentials.path(settings.database.data_dir)
    if not key.exists():
        remedy = "A server creates one at its first start; all processes need the same key"
        yield Looked("files", State.WARNING, f"there is no key of credentials {key} yet", remedy)
    elif key.stat().st_size != KEY_BYTES:
        said = f"the key of credentials {key} has {key.stat().st_size} bytes, not {KEY_BYTES}"
        yield Looked("files", State.WRONG, said, "Restore it from your backup")
    webhook, amqp = settings.channels.webhook, settings.channels.amqp
    http = settings.resource_types.http
    named = [webhook.signing_key_file, webhook.key_file, amqp.key_file, settings.server.key_file]
    named += [http.key_file, *(one.secret_file for one in http.credentials.values())]
    named += settings.credentials.fallback_key_files
    audit = settings.audit.key_path(settings.database.data_dir)
    secret = [key, audit, *(Path(name) for name in named if name), *([config] if config else [])]
    bare = [path for path in secret if path.exists() and _open_to_others(path)]
    for path in bare:
        yield Looked("files", State.WARNING, f"others than its owner may read {path}",
                     f"chmod 600 {path}")  # fmt: skip
    if not bare:
        yield fine("files", "key and settings files are readable by their owner only")
    for look in (
        lambda: signing_key(webhook.signing_key_file),
        lambda: webhook_settings(webhook),
        lambda: outbound_settings(http),
        lambda: lent(http.credentials),
        lambda: endpoints(settings.resource_types.remote_stack),
    ):
        try:
            look()
        except HeadgateError as error:
            yield refused("files", error)
            return


def _open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _room(settings: Settings) -> Looked:
    if settings.database.url.get_secret_value():
        return fine("disk", "the database's volume is another server's to watch")
    directory = settings.database.data_dir.absolute()
    there = next(one for one in (directory, *directory.parents) if one.exists())
    return roomy(shutil.disk_usage(there).free, there)


def roomy(free: int, there: Path) -> Looked:
    """free: bytes in a directory's volume."""
    said = f"{free / 2**30:.1f} GiB are free in {there}"
    if free < LITTLE:
        state = State.WRONG if free < NONE else State.WARNING
        return Looked("disk", state, said, "Make room, or keep less: [retention]")
    return fine("disk", said)


def _guard(settings: Settings) -> Looked:
    allowed = settings.channels.webhook.allow
    for section, networks in (
        ("[channels.webhook]", allowed),
        ("[resource_types.http]", settings.resource_types.http.allow),
    ):
        whole = [str(one) for one in networks if one.prefixlen == 0]
        if whole:
            return Looked("webhooks", State.WARNING,
                          f"{section} allows every address ({whole[0]})",
                          f"Name the networks that are meant in {section} allow")  # fmt: skip
    named = ", ".join(map(str, allowed)) or "none besides"
    return fine("webhooks", f"they reach public addresses, and: {named}")


async def _broker(settings: Settings) -> Looked:
    try:
        broker = broker_settings(settings.channels.amqp)
    except HeadgateError as error:
        return refused("broker", error)
    if broker is None:
        return fine("broker", "no broker is configured")
    why = await Broker(broker).probe()
    if why is None:
        return fine("broker", "it can be reached")
    return Looked("broker", State.WRONG, f"no node of [channels.amqp] url can be reached: {why}",
                  "See whether RabbitMQ runs, and whether name and password are right")  # fmt: skip
