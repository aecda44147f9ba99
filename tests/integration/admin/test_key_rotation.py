"""The encryption key is rotated while servers run; a killed rotation is repeated."""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.store.connection import connect
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance.reencryption import TABLES
from hub.checks.database import CheckResult, CheckState, KeyFiles, check_keys
from tests.support.admin_command import CommandOutput, run_admin
from tests.support.program import Program, program

Json = Any
OLD, NEW = b"o" * 32, b"n" * 32
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "parameters": {"p": {"type": "string", "hidden": True}},
    "resources": {
        "a": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}},
        "b": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["a", "value"]}}},
    },
    "outputs": {"o": {"value": {"get_attr": ["b", "value"]}}},
}


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str]:
    for name, key in (("old", OLD), ("new", NEW)):
        (tmp_path / name).write_bytes(key)
        (tmp_path / name).chmod(0o600)
    return str(tmp_path / "old"), str(tmp_path / "new")


@asynccontextmanager
async def server(url: str, key: str, *fallbacks: str) -> AsyncIterator[Program]:
    settings = {"credentials.key_file": key, "credentials.fallback_key_files": list(fallbacks)}
    async with program(url, settings) as run:
        yield run


async def rotate(url: str, key: str, *fallbacks: str, **more: str) -> CommandOutput:
    listed = "[" + ", ".join(f'"{one}"' for one in fallbacks) + "]"
    config = Path(f"{key}.toml")
    config.write_text(f'[credentials]\nkey_file = "{key}"\nfallback_key_files = {listed}\n')
    return await run_admin("rotate-encryption-key", "--config", str(config), url=url, **more)


async def create_stack(run: Program, name: str) -> None:
    body = {"stack_name": name, "template": TEMPLATE, "parameters": {"p": f"secret-{name}"}}
    assert (await run.call("POST", "/stacks", body))[0] == 201
    assert await run.until_ended(name) == "CREATE_COMPLETE"


async def output(run: Program, name: str) -> Json:
    (one,) = (await run.stack(name))["outputs"]
    return one["output_value"]


async def fields(url: str) -> dict[str, int]:
    """The number of encrypted values by form and key, in every encrypted column."""
    found: dict[str, int] = {}
    conn = await connect(url)
    try:
        for table in TABLES:
            for column in table.documents:
                rows = await conn.fetch(f"select {column}::text as text from {table.name}")
                for row in rows:
                    for one in re.findall(r'"(\$sealed:[^"]*)"', row["text"] or ""):
                        found[one] = found.get(one, 0) + 1
    finally:
        await conn.close(timeout=5)
    return found


async def check_result(url: str, key: str, *fallbacks: str) -> list[CheckResult]:
    """The result of the key check of `headgate admin doctor`."""
    conn = await connect(url)
    try:
        files = KeyFiles(Path(key), [Path(one) for one in fallbacks])
        return [one async for one in check_keys(conn, files)]
    finally:
        await conn.close(timeout=5)


def field(key: bytes) -> str:
    return Keyring(key, random_bytes=os.urandom).field


async def test_the_key_is_rotated_while_two_processes_run(
    database_url: str, keys: tuple[str, str]
) -> None:
    old, new = keys
    async with server(database_url, old) as one:
        for name in ("a", "b", "c"):
            await create_stack(one, name)
        await subscribe(one)
        refused = await rotate(database_url, new, old)
        assert refused.code == 1 and "does not have the key" in refused.err
        assert set(await fields(database_url)) == {field(OLD)}
    async with server(database_url, old, new) as one, server(database_url, new, old) as two:
        await create_stack(
            two, "d"
        )  # each process reads what the other one writes with the new key
        assert await output(one, "d") == "secret-d"
        done = await rotate(database_url, new, old)
        assert done.code == 1 and "still encrypts with another key" in done.out
        await create_stack(one, "e")
    assert set(await fields(database_url)) == {field(OLD), field(NEW)}
    async with server(database_url, new, old) as one, server(database_url, new, old) as two:
        done = await rotate(database_url, new, old)
        assert done.code == 0 and "All values use this key" in done.out, done
        assert set(await fields(database_url)) == {field(NEW)}
        await create_stack(one, "f")
        assert [await output(two, name) for name in "abcdef"] == [
            f"secret-{name}" for name in "abcdef"
        ]
        repeated = await rotate(database_url, new, old)
        assert repeated.code == 0 and repeated.out.startswith("0 rows")
    async with server(database_url, new) as one:  # without the old key
        assert [await output(one, name) for name in "af"] == ["secret-a", "secret-f"]
        await one.update("a", "PATCH", parameters={"p": "changed"})
        assert await one.until_ended("a") == "UPDATE_COMPLETE"
        assert await output(one, "a") == "changed"


async def subscribe(run: Program) -> None:
    body = {"target": "http://127.0.0.1:9/", "channel": "webhook"}
    status, response = await run.call("POST", "/subscriptions", body)
    assert status == 201, response


async def test_a_killed_rotation_can_be_repeated(
    database_url: str, keys: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = keys
    async with server(database_url, old) as one:
        for name in ("a", "b"):
            await create_stack(one, name)
        await subscribe(one)
    async with server(database_url, new, old) as one:
        killed = await rotate(database_url, new, old, FAULT="reencrypt.page:2:kill")
        assert killed.code not in (0, 1)
        assert set(await fields(database_url)) == {field(OLD), field(NEW)}
        assert await output(one, "a") == "secret-a"
        (found,) = await check_result(database_url, new, old)
        assert found.state is CheckState.WARNING and "the rotation has not ended" in found.reason
        done = await rotate(database_url, new, old)
        assert done.code == 0 and not done.out.startswith("0 rows")
    assert set(await fields(database_url)) == {field(NEW)}
    async with server(database_url, new) as one:
        assert await output(one, "b") == "secret-b"


async def test_a_value_that_cannot_be_decrypted_is_kept_and_named(
    database_url: str, keys: tuple[str, str]
) -> None:
    old, new = keys
    async with server(database_url, old) as one:
        await create_stack(one, "a")
    conn = await connect(database_url)
    await conn.execute(
        r"""update template set files = regexp_replace(files::text, '": "....', '": "AAAA')::jsonb"""
    )
    before = await conn.fetchval("select files::text from template")
    done = await rotate(database_url, new, old)
    assert done.code == 1 and "template.files of stack" in done.out and "Keep the old" in done.out
    assert await conn.fetchval("select files::text from template") == before
    await conn.close(timeout=5)
    assert [one.state for one in await check_result(database_url, new, old)] == [CheckState.OK]
    fits, missing = await check_result(database_url, new)
    assert fits.state is CheckState.OK and missing.state is CheckState.ERROR
    assert field(OLD).removeprefix("$sealed:") in missing.reason and "fallback" in missing.remedy
    found = await fields(database_url)
    assert found[field(OLD)] == 1 and found[field(NEW)] > 3
