"""A step or claim that the database refuses, or that times out, affects no other node."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.store.database import Database
from engine.store.database_errors import DataFault
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.work.nodes.internal_error import NodeContext
from engine.work.nodes.step_queue import StepQueue, WaitingStep
from engine.work.nodes.worker import TRIES
from tests.support.program import Http, Program, program, resource
from tests.support.receiver import until


class UnwritableType(ResourceType):
    """Returns what `attributes` creates, which may be impossible to store."""

    schema = TypeSchema(
        "Test::Poison",
        properties={"size": Property(Kind.INTEGER, default=1)},
        attributes={"given": Attribute(Kind.ANY)},
    )

    def create(self, call: Call) -> Outcome:
        return Done(f"made-{call.resource_name}", {"given": "x" * call.properties["size"]})

    def update(self, call: Call) -> Outcome:
        return Done(call.physical_id)

    def delete(self, call: Call) -> Outcome:
        return Done(None)


#: Triggers that refuse resources of one name, or end the statement as a timeout does.
REFUSING_TRIGGER = """
create function refuse() returns trigger language plpgsql as $$
begin
    if new.name = 'poison' and new.digest <> '' then {what}; end if;
    return new;
end $$;
create trigger refuse before update on resource for each row execute function refuse();
"""
RAISE_STATEMENT = "raise program_limit_exceeded"
TIMEOUT_STATEMENT = "raise query_canceled"
#: As for a damaged row; during an upgrade, it is an error of the statement.
DAMAGED_ROW = "raise exception 'could not open relation with OID 17' using errcode = 'XX000'"


@asynccontextmanager
async def run_program(url: str) -> AsyncIterator[Program]:
    async with program(url, {"engine.poll": "1s"}, types=[UnwritableType()]) as run:
        yield run


async def check_others(run: Program, name: str = "other") -> None:
    tenant = Http(run.session, run.url, "another")
    await tenant.create(name, {"a": resource(), "b": resource(depends_on="a")})
    assert await tenant.until_ended(name) == "CREATE_COMPLETE"


@pytest.mark.parametrize("what", [RAISE_STATEMENT, TIMEOUT_STATEMENT, DAMAGED_ROW])
async def test_a_step_that_cannot_be_written_fails_its_own_node(
    database_url: str, database: Database, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Other steps of the same batch are written."""
    monkeypatch.setitem(TRIES, DataFault.UNLIKELY, 3)
    async with database.connection() as conn:
        await conn.execute(REFUSING_TRIGGER.format(what=what))
    poison = {"type": "Test::Poison"}
    async with run_program(database_url) as run:
        with capture_logs() as logs:
            await run.create("s", {"poison": poison, "good": poison, "better": poison})
            await check_others(run)
            assert await run.until_ended("s") == "CREATE_FAILED"
        resources = await run.resources("s")
    assert resources["good"]["resource_status"] == "CREATE_COMPLETE"
    assert resources["better"]["resource_status"] == "CREATE_COMPLETE"
    assert resources["poison"]["resource_status"] == "CREATE_FAILED"
    assert resources["poison"]["physical_resource_id"] == "made-poison"
    assert "internal error" in resources["poison"]["resource_status_reason"]
    assert any(one.get("sqlstate") for one in logs)


def of_size(size: int) -> dict[str, object]:
    return {"type": "Test::Poison", "properties": {"size": size}}


async def test_an_error_that_no_step_causes_fails_no_node(
    database_url: str, database: Database
) -> None:
    """An error that no step causes, such as a missing permission, is retried."""
    async with run_program(database_url) as run:
        await run.create("warm", {"a": of_size(1)})
        assert await run.until_ended("warm") == "CREATE_COMPLETE"
        async with database.connection() as conn:
            await conn.execute(REFUSING_TRIGGER.format(what="raise undefined_function"))
        with capture_logs() as logs:
            await run.create("s", {"poison": of_size(1)})
            await until(lambda: [one for one in logs if one["event"] == "internal.error"])
            async with database.connection() as conn:
                await conn.execute("drop trigger refuse on resource")
            assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_errors_of_an_upgrade_fail_no_node(database_url: str, database: Database) -> None:
    """A step in a batch of its own is repeated more often than an upgrade can end it."""
    async with run_program(database_url) as run:
        await run.create("warm", {"a": of_size(1)})
        assert await run.until_ended("warm") == "CREATE_COMPLETE"
        async with database.connection() as conn:
            await conn.execute(REFUSING_TRIGGER.format(what=DAMAGED_ROW))
        with capture_logs() as logs:
            await run.create("s", {"poison": of_size(1)})

            def refused() -> int:
                return len([one for one in logs if one["event"] == "worker.unavailable"])

            await until(lambda: refused() > 2)
            async with database.connection() as conn:
                await conn.execute("drop trigger refuse on resource")
            assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_batch_of_steps_is_limited_in_bytes() -> None:
    queue = StepQueue(10, 1000)
    for name, size in (("a", 400), ("b", 400), ("c", 400), ("d", 5000), ("e", 1)):
        queue.add(WaitingStep({"node": name}, size, NodeContext(None)))  # type: ignore[arg-type]
    batches = []
    while queue:
        batch, alone = queue.take()
        assert not alone
        batches.append([one.step["node"] for one in batch])
    assert batches == [["a", "b"], ["c"], ["d"], ["e"]]


async def test_a_resource_with_attributes_above_the_quota_fails(database_url: str) -> None:
    few = {"engine.poll": "1s", "quotas.resource_bytes": 1000}
    async with program(database_url, few, types=[UnwritableType()]) as run:
        await run.create("s", {"small": of_size(100), "big": of_size(5000)})
        await run.create("t", {"long": resource("x" * 5000)})
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert await run.until_ended("t") == "CREATE_FAILED"
        resources = await run.resources("s")
        long = (await run.resources("t"))["long"]
        await run.stack_request("DELETE", "s")
    assert resources["small"]["resource_status"] == "CREATE_COMPLETE"
    assert resources["big"]["physical_resource_id"] == "made-big"
    for one, what in ((resources["big"], "properties and attributes"), (long, "properties")):
        reason = one["resource_status_reason"]
        assert reason.startswith(f"{what} of 5")
        assert "exceed the quota resource_bytes of 1000 bytes. Make them smaller" in reason


async def test_the_quota_of_a_project_is_its_own(database_url: str) -> None:
    own = {"quotas.resource_bytes": 1000, "quotas.projects": {"p": {"resource_bytes": 9000}}}
    async with program(database_url, own, types=[UnwritableType()]) as run:
        await run.create("s", {"big": of_size(5000)})
        assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_stacks_with_large_values_that_continue_at_once_complete(database_url: str) -> None:
    """All continue at once; together they exceed the size of one statement."""
    half = {"list_join": ["x", ["\U0001f600" * 100] * 40]}
    value = {"type": "OS::Heat::Value", "properties": {"value": half}}
    body = {"heat_template_version": "2018-08-31", "resources": {f"r{n}": value for n in range(8)}}
    breakpoints = {"hooks": [{"at": "r*", "on": ["pre-create"]}]}
    async with program(database_url, {"engine.poll": "1s"}) as run:
        for name in ("a", "b", "c"):
            await run.create(name, {}, template=body, environment=breakpoints)
        for name in ("a", "b", "c"):
            for hook in await run.waiting_hooks(name, 8):
                assert (await run.signal(hook))[0] == 200
        for name in ("a", "b", "c"):
            assert await run.until_ended(name) == "CREATE_COMPLETE"
