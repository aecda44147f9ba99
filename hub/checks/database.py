"""Checks of a database beyond its schema: its routines, and the rules that its rows obey."""

from collections.abc import AsyncIterator
from datetime import timedelta

from engine.errors import Conflict, HeadgateError
from engine.store.clock_correction import last_set_back, set_back_lately
from engine.store.connection import Connection
from engine.store.invariants import INVARIANTS, breaches
from engine.store.pooler_check import Pooling, check_pooling
from engine.store.routine_versions import check_not_newer, database_version, own_version
from engine.store.tokens import weak_passwords
from hub.auth.secrets import full_cost
from hub.checks.results import Looked, State, fine, refused

#: How far the database's clock may be behind, and how long a jump is reported.
SET_BACK, LATELY = timedelta(seconds=5), timedelta(days=1)
#: How many breaches of a rule are named.
NAMED = 5
_MIGRATE = "Run `headgate admin migrate`, or restart a process of this version"


async def check_pooler(url: str) -> Looked:
    """Whether a pooler in front of PostgreSQL pools sessions. Raises Unavailable."""
    try:
        pooling = await check_pooling(url)
    except Conflict as error:
        return refused("pooler", error)
    if pooling is Pooling.NONE:
        return fine("pooler", "connections reach PostgreSQL directly")
    return fine("pooler", "the connection pooler in front of PostgreSQL pools sessions")


async def check_routines(conn: Connection) -> Looked:
    """Whether the functions and views of the database are those of this program."""
    there, own = await database_version(conn), own_version()
    try:
        check_not_newer(there, own)
    except HeadgateError as error:
        return refused("routines", error)
    if there == own:
        return fine("routines", f"they are of this version: {own}")
    if there is None or there < own:
        found = "missing" if there is None else f"{there}, older than {own} of this headgate"
        return Looked("routines", State.WRONG, f"they are {found}", _MIGRATE)
    said = f"the database has another build of {own} than this headgate"
    return Looked("routines", State.WRONG, said, _MIGRATE)


async def check_clock(conn: Connection) -> Looked:
    """Whether the database's clock was set back a short while ago, or is behind what was seen."""
    seen = await last_set_back(conn)
    remedy = "Have the database's machine keep time by NTP, which changes it in small steps"
    if seen.behind >= SET_BACK:
        said = f"the database's clock is {seen.behind} behind an earlier reading"
        more = "; a process that runs corrects within a minute what waits for it"
        return Looked("timekeeping", State.WARNING, said + more, remedy)
    if seen.set_back_by is not None and await set_back_lately(conn, LATELY):
        said = f"the database's clock was set back by {seen.set_back_by} at {seen.set_back_at}"
        more = "; deadlines of hooks that were open already come so much later"
        return Looked("timekeeping", State.WARNING, said + more, remedy)
    return fine("timekeeping", "it has not been set back")


async def check_rules(conn: Connection, remedy: str) -> AsyncIterator[Looked]:
    """Whether the rules of engine/store/invariants.py hold. remedy: for the rules that do not."""
    try:
        broken = await breaches(conn)
    except HeadgateError as error:
        found = error.finding
        yield Looked("rules", State.WARNING, found.reason, found.remedy)
        return
    for rule, found_rows in broken.items():
        some = "; ".join(found_rows[:NAMED])
        said = f"{rule}: {len(found_rows)} rows break this rule: {some}"
        yield Looked("rules", State.WRONG, said, remedy)
    if not broken:
        yield fine("rules", f"all {len(INVARIANTS)} hold")


async def check_passwords(conn: Connection) -> AsyncIterator[Looked]:
    """Whether passwords are hashed as they would be now."""
    if weak := await weak_passwords(conn, full_cost()):
        reason = f"{weak} passwords are hashed with scrypt parameters of an earlier version"
        remedy = "Each is replaced at the next sign-in; revoke unused ones"
        yield Looked("passwords", State.WARNING, reason, remedy)
