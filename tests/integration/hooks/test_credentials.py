"""Credentials are there while a change has work, and gone in the commit in which its last parks."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from engine.errors import Unavailable
from engine.store.credentials import scope
from engine.store.encryption import Sealed, Sealer
from engine.store.key_files import read_key
from engine.types.contract import Failed
from tests.support.changes import FAR, begun, put, thing
from tests.support.program import Json, Program
from tests.support.things import World

TOKEN = {"X-Auth-Token": "planted-secret-71"}
TABLES = """
select format('select count(*) from %I t where t::text like $1', tablename) as query
  from pg_tables where schemaname = 'public'
"""


async def create(run: Program, resources: Json, **more: Json) -> None:
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    body = {"stack_name": "s", "template": template, **more}
    assert (await run.call("POST", "/stacks", body, headers=TOKEN))[0] == 201


async def kept(run: Program) -> int:
    async with run.database.connection() as conn:
        for row in await conn.fetch(TABLES):
            assert await conn.fetchval(row["query"], f"%{TOKEN['X-Auth-Token']}%") == 0
        return int(await conn.fetchval("select count(*) from credential"))


def given(world: World) -> list[tuple[str, str]]:
    return [(call.resource_name, call.credential) for call in world.calls]


AT_B = {"hooks": [{"at": "b", "on": "pre-create"}]}
CHAIN = {"a": thing(), "b": thing(depends_on="a"), "c": thing(depends_on="b")}


async def test_what_came_with_the_request_is_gone_at_the_hook_and_comes_with_the_answer(
    run: Program, world: World
) -> None:
    await create(run, CHAIN, environment=AT_B)
    (hook,) = await run.waiting("s")
    assert await kept(run) == 0
    path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
    assert (await run.call("POST", path, body, headers={"X-Auth-Token": "another"}))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    secret = TOKEN["X-Auth-Token"]
    assert given(world) == [("a", secret), ("b", "another"), ("c", "another")]
    assert await kept(run) == 0


async def test_it_stays_while_anything_else_goes_on(run: Program, world: World) -> None:
    world.will("create", "slow", FAR)
    await create(run, {**CHAIN, "slow": thing()}, environment=AT_B)
    await run.waiting("s")
    await begun(world, "create", "slow")
    assert await kept(run) == 1
    await run.act("s", "cancel_without_rollback")
    await run.until_ended("s")
    assert await kept(run) == 1  # for what still acts


async def test_an_answer_without_one_goes_on_without(run: Program, world: World) -> None:
    await create(run, CHAIN, environment=AT_B)
    (hook,) = await run.waiting("s")
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert given(world)[1:] == [("b", ""), ("c", "")]


async def test_a_rollback_acts_with_what_the_change_acted_with(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.will("create", "b", Failed("no"))
    stack = await run.stack("s")
    template = {"heat_template_version": "2018-08-31",
                "resources": {"a": thing(2), "b": thing(depends_on="a")}}  # fmt: skip
    body = {"template": template, "disable_rollback": False}
    path = f"/stacks/s/{stack['id']}"
    assert (await run.call("PUT", path, body, headers=TOKEN))[0] == 202
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert {token for _, token in given(world)[1:]} == {TOKEN["X-Auth-Token"]}
    assert await kept(run) == 0


async def test_a_change_without_work_keeps_none(run: Program, world: World) -> None:
    await create(run, {"a": thing()}, environment={"hooks": [{"on": "pre-stack-create"}]})
    await run.waiting("s")
    assert await kept(run) == 0
    await put(run, "s", {"a": thing()}, hooks={"clear": ["*"]})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await kept(run) == 0


def test_what_is_sealed_opens_for_its_project_stack_column_and_key_only() -> None:
    one = Sealer(b"k" * 32, random_bytes=lambda count: b"n" * count)
    own = scope("p", uuid4())
    sealed = one.seal(own, "secret")
    assert b"secret" not in sealed and one.open(own, sealed) == "secret"
    other = Sealer(b"o" * 32, random_bytes=lambda count: b"n" * count)
    moved = [own._replace(project="q"), own._replace(owner=UUID(int=1)),
             own._replace(column="resource.data")]  # fmt: skip
    for sealer, elsewhere in ((other, own), *((one, at) for at in moved)):
        with pytest.raises(Sealed, match="another key"):
            sealer.open(elsewhere, sealed)
    both = Sealer(b"o" * 32, random_bytes=lambda count: b"n" * count, fallbacks=[b"k" * 32])
    assert both.open(own, sealed) == "secret" and not both.is_current(sealed)
    assert both.is_current(both.seal(own, "secret"))


def test_the_key_is_made_once_and_refused_when_it_is_none(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "key"
    assert read_key(file, b"1" * 32) == read_key(file, b"2" * 32) == b"1" * 32
    assert file.stat().st_mode & 0o77 == 0
    file.write_bytes(b"short")
    with pytest.raises(Unavailable, match="5 bytes"):
        read_key(file, b"1" * 32)
    with pytest.raises(Unavailable, match="key_file"):
        read_key(tmp_path / "folder", b"1" * 32)
