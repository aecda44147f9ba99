"""Credentials of a change are stored only while it has work; the commit that parks its last node
deletes them.
"""

from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from engine.errors import Unavailable
from engine.store.encryption.secret_values import DecryptionFailed, Keyring
from engine.store.traversals.traversal_credentials import scope
from engine.types.contract import Failed
from hub.keys.key_files import read_key
from tests.support.changes import LONG_WAIT, put, thing, until_deleted, until_started
from tests.support.program import Json, Program, eventually, template
from tests.support.scripted_type import World

TOKEN = {"X-Auth-Token": "planted-secret-71"}
TABLES = """
select format('select count(*) from %I t where t::text like $1', tablename) as query
  from pg_tables where schemaname = 'public'
"""


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def create(run: Program, resources: Json, **more: Json) -> None:
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    body = {"stack_name": "s", "template": template, **more}
    assert (await run.call("POST", "/stacks", body, headers=TOKEN))[0] == 201


async def stored_credentials(run: Program) -> int:
    async with run.database.connection() as conn:
        for row in await conn.fetch(TABLES):
            assert await conn.fetchval(row["query"], f"%{TOKEN['X-Auth-Token']}%") == 0
        return int(await conn.fetchval("select count(*) from credential"))


def used_credentials(world: World) -> list[tuple[str, str]]:
    return [(call.resource_name, call.credential) for call in world.calls]


AT_B = {"hooks": [{"at": "b", "on": "pre-create"}]}
CHAIN = {"a": thing(), "b": thing(depends_on="a"), "c": thing(depends_on="b")}


async def test_a_credential_is_deleted_at_the_hook_and_that_of_the_answer_is_used(
    run: Program, world: World
) -> None:
    await create(run, CHAIN, environment=AT_B)
    (hook,) = await run.waiting_hooks("s")
    assert await stored_credentials(run) == 0
    path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
    assert (await run.call("POST", path, body, headers={"X-Auth-Token": "another"}))[0] == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    secret = TOKEN["X-Auth-Token"]
    assert used_credentials(world) == [("a", secret), ("b", "another"), ("c", "another")]
    assert await stored_credentials(run) == 0


async def test_a_credential_stays_while_another_operation_runs(run: Program, world: World) -> None:
    world.script("create", "slow", LONG_WAIT)
    await create(run, {**CHAIN, "slow": thing()}, environment=AT_B)
    await run.waiting_hooks("s")
    await until_started(world, "create", "slow")
    assert await stored_credentials(run) == 1
    await run.act("s", "cancel_without_rollback")
    await run.until_ended("s")
    assert await stored_credentials(run) == 1  # for the operation in progress


async def test_a_change_that_begins_with_a_wait_for_an_earlier_operation_keeps_its_credential(
    run: Program, world: World
) -> None:
    """Everything that a delete does waits for the end of a create, which waits once more."""
    world.script("create", "w", LONG_WAIT, LONG_WAIT)
    await run.create("s", {"a": thing(), "w": thing(depends_on="a")})
    await until_started(world, "create", "w")
    path = f"/stacks/s/{(await run.stack('s'))['id']}"
    assert (await run.call("DELETE", path, headers=TOKEN))[0] == 204
    for count in (2, 3):
        assert (await run.call("POST", f"{path}/resources/w/signal", {}))[0] == 200
        await eventually(partial(has_called, world, "w", count))
    await until_deleted(run, "s")
    secret = TOKEN["X-Auth-Token"]
    assert used_credentials(world)[-2:] == [("w", secret), ("a", secret)]
    assert await stored_credentials(run) == 0


async def has_called(world: World, name: str, count: int) -> bool:
    return len(world.operations(name)) >= count


async def test_a_superseded_change_that_waited_for_an_earlier_operation_keeps_no_credential(
    run: Program, world: World
) -> None:
    """Three changes: the create of w is under way, and each update waits for its end."""
    world.script("create", "w", LONG_WAIT)
    await create(run, {"w": thing()})
    await until_started(world, "create", "w")
    path = f"/stacks/s/{(await run.stack('s'))['id']}"
    for size in (2, 3):
        update = template({"w": thing(size), f"other-{size}": thing()})
        assert (await run.call("PUT", path, {"template": update}, headers=TOKEN))[0] == 202
        await until_started(world, "create", f"other-{size}")
    await eventually(partial(has_credentials_of, run, [1, 3]))
    assert (await run.call("POST", f"{path}/resources/w/signal", {}))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await eventually(partial(has_credentials_of, run, []))


async def has_credentials_of(run: Program, traversals: list[int]) -> bool:
    async with run.database.connection() as conn:
        rows = await conn.fetch("select traversal from credential order by traversal")
    return [row["traversal"] for row in rows] == traversals


async def test_a_change_continues_without_a_credential_if_the_answer_has_none(
    run: Program, world: World
) -> None:
    await create(run, CHAIN, environment=AT_B)
    (hook,) = await run.waiting_hooks("s")
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert used_credentials(world)[1:] == [("b", ""), ("c", "")]


async def test_a_rollback_uses_the_credential_of_the_change(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    world.script("create", "b", Failed("no"))
    stack = await run.stack("s")
    template = {"heat_template_version": "2018-08-31",
                "resources": {"a": thing(2), "b": thing(depends_on="a")}}  # fmt: skip
    body = {"template": template, "disable_rollback": False}
    path = f"/stacks/s/{stack['id']}"
    assert (await run.call("PUT", path, body, headers=TOKEN))[0] == 202
    assert await run.until_ended("s") == "ROLLBACK_COMPLETE"
    assert {token for _, token in used_credentials(world)[1:]} == {TOKEN["X-Auth-Token"]}
    assert await stored_credentials(run) == 0


async def test_a_change_without_work_stores_no_credential(run: Program, world: World) -> None:
    await create(run, {"a": thing()}, environment={"hooks": [{"on": "pre-stack-create"}]})
    await run.waiting_hooks("s")
    assert await stored_credentials(run) == 0
    await put(run, "s", {"a": thing()}, hooks={"clear": ["*"]})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await stored_credentials(run) == 0


def test_a_credential_is_decrypted_only_with_its_project_stack_column_and_key() -> None:
    one = Keyring(b"k" * 32, random_bytes=lambda count: b"n" * count)
    own = scope("p", uuid4())
    encrypted = one.encrypt(own, "secret")
    assert b"secret" not in encrypted and one.decrypt(own, encrypted) == "secret"
    other = Keyring(b"o" * 32, random_bytes=lambda count: b"n" * count)
    moved = [own._replace(project="q"), own._replace(owner=UUID(int=1)),
             own._replace(column="resource.data")]  # fmt: skip
    for keyring, other_scope in ((other, own), *((one, at) for at in moved)):
        with pytest.raises(DecryptionFailed, match="another key"):
            keyring.decrypt(other_scope, encrypted)
    both = Keyring(b"o" * 32, random_bytes=lambda count: b"n" * count, fallbacks=[b"k" * 32])
    assert both.decrypt(own, encrypted) == "secret" and not both.is_current(encrypted)
    assert both.is_current(both.encrypt(own, "secret"))


def test_the_key_is_created_once_and_an_invalid_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "key"
    assert read_key(file, b"1" * 32) == read_key(file, b"2" * 32) == b"1" * 32
    assert file.stat().st_mode & 0o77 == 0
    file.write_bytes(b"short")
    with pytest.raises(Unavailable, match="5 bytes"):
        read_key(file, b"1" * 32)
    with pytest.raises(Unavailable, match="key_file"):
        read_key(tmp_path / "folder", b"1" * 32)
