"""A replica that lacks commits is promoted: engines stop what it does not know, and doctor names
it.
"""

import asyncio
import re
from collections.abc import Sequence

from structlog.testing import capture_logs

from engine.store.maintenance.failover_losses import read_position
from engine.types.contract import Call, Outcome
from engine.work.failover_check import FailoverCheck
from hub.checks.doctor import run_checks
from hub.settings.settings import load_settings
from tests.support.changes import thing, until_started
from tests.support.keys import key_file
from tests.support.program import PATIENCE, Program, eventually, program
from tests.support.replication import ReplicatedPair, running_pair
from tests.support.scripted_type import Thing, World

CAUGHT_UP = """
select coalesce(bool_and(replay_lsn >= pg_current_wal_lsn()), false) from pg_stat_replication
"""


class BlockedThing(Thing):
    """Its create waits until it is cancelled."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.cancelled = asyncio.Event()

    async def create(self, call: Call) -> Outcome:  # type: ignore[override]
        if call.resource_name != "blocked":
            return super().create(call)
        self.world.done.append(("create", call.resource_name))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError


async def test_operations_that_the_promoted_server_does_not_know_are_stopped_and_named() -> None:
    world = World()
    blocked = BlockedThing(world)
    async with running_pair(synchronous=False) as pair:
        async with program(pair.url, {"engine.poll": "1s"}, types=[blocked]) as run:
            await run.create("kept", {"a": thing()})
            assert await run.until_ended("kept") == "CREATE_COMPLETE"
            await eventually(lambda: pair.first.execute(CAUGHT_UP))
            with capture_logs() as logs:
                await _lose(pair, run, world, blocked)
                assert await run.until_ended("kept") == "CREATE_COMPLETE"
            status, _ = await run.call("GET", "/stacks/lost")
            assert status == 404
            await run.update("kept", tags="new")
            assert await run.until_ended("kept") == "UPDATE_COMPLETE"
        (named,) = [one for one in logs if one["event"] == "failover.operation_unknown"]
        assert (named["stack"], named["resource"], named["operation"]) == (
            "lost",
            "blocked",
            "create",
        )
        values = {"database.url": pair.url, "credentials.key_file": str(key_file())}
        pair.first.relay.cut()
        results = await run_checks(load_settings(None, values, environment={}), None)
        warnings = [one for one in results if one.check == "failovers"]
        assert {one.state for one in warnings} == {"warning"}
        assert any(
            "create of blocked (Test::Thing) of stack lost in project p" in one.reason
            for one in warnings
        )
        counts = [re.findall(r"lacked at least (\d+) commits", one.reason) for one in warnings]
        assert any(int(count) for found in counts for count in found), warnings
        assert all(one.remedy for one in warnings)


async def _lose(pair: ReplicatedPair, run: Program, world: World, blocked: BlockedThing) -> None:
    """Commits are acknowledged that the replica does not get; then it is promoted."""
    counting = FailoverCheck(run.database, "counting", started=list, stop=_stop_none)
    before = await _position(run)
    pair.link.silence()
    await run.create("lost", {"blocked": thing()})
    await until_started(world, "create", "blocked")

    async def published() -> bool:
        return await _position(run) > before

    await eventually(published)
    await counting.note_position()
    pair.first.kill()
    await pair.second.promote()
    async with asyncio.timeout(PATIENCE):
        await blocked.cancelled.wait()


def _stop_none(operations: Sequence[object]) -> None:
    assert not operations


async def _position(run: Program) -> int:
    async with run.database.connection() as conn:
        return await read_position(conn)
