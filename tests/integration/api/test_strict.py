"""`[language] strict` of a server process, and `strict` of a request: warnings are errors."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.support.postgres import TestServer
from tests.support.program import Json, Program, ServerProcess, resource, template

#: The two servers only share a database.
pytestmark = pytest.mark.asyncio(loop_scope="module")
HEAD = "heat_template_version: 2018-08-31\n"
VALUE = "resources:\n  a: {type: OS::Heat::Value, properties: {value: %s}}\n"
UNMATCHED = {"resource_registry": {"resources": {"nix": {"hooks": "pre-create"}}}}
#: Requests with one kind of warning each.
REQUESTS: dict[str, Json] = {
    "DuplicateKey": {"template": f"{HEAD}{VALUE % 1}  a: {{type: OS::Heat::None}}\n"},
    "KeyNotText": {"template": HEAD + VALUE % "{80: http}"},
    "UnusedCondition": {
        "template": f"{HEAD}conditions: {{c: {{equals: [{{get_param: nix}}, 1]}}}}\n{VALUE % 1}"
    },
    "OutputError": {
        "template": f"{HEAD}{VALUE % 1}outputs: {{o: {{value: {{get_param: nix}}}}}}\n"
    },
    "UnknownFunction": {"template": HEAD + VALUE % "{get_atr: [a, value]}"},
    "NoEffect": {"template": f"{HEAD}{VALUE % 1}outputs: {{o: {{value: 1, type: string}}}}\n"},
    "UnknownKey": {"template": HEAD + VALUE % 1, "paramters": {}},
    "UnmatchedPattern": {"template": HEAD + VALUE % 1, "environment": UNMATCHED},
    "MoreWarnings": {"template": HEAD + VALUE % [{number: 1} for number in range(101)]},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(
    postgres: TestServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Program, Program]]:
    """A server with the default setting and a strict one, with one database."""
    async with postgres.new_database() as url, aiohttp.ClientSession() as session:
        started = []
        try:
            for settings in ("", "[language]\nstrict = true\n"):
                folder: Path = tmp_path_factory.mktemp("server")
                started.append(ServerProcess(folder, settings=settings, database_url=url))
                started[-1].start()
            lenient, strict = (Program(session, one.url) for one in started)
            yield lenient, strict
        finally:
            for one in started:
                one.stop()


def warnings_of(response: Json) -> list[Json]:
    """Those of a preview of a create are in the stack."""
    return list(response["warnings"] if "warnings" in response else response["stack"]["warnings"])


async def routes(run: Program, name: str, code: str) -> list[tuple[str, str]]:
    """All requests with a template that have the warning: of a new stack, and of the stack `name`.
    A validation knows no existing stack, with whose resources it could compare patterns."""
    path = f"/stacks/{name}/{(await run.stack(name))['id']}"
    validate = () if code == "UnmatchedPattern" else (("POST", "/validate"),)
    return [
        *validate, ("POST", "/stacks/preview"), ("POST", "/stacks"),
        ("PUT", f"{path}/preview"), ("PATCH", f"{path}/preview"), ("PUT", path), ("PATCH", path),
    ]  # fmt: skip


async def test_every_code_of_the_reference_has_a_request() -> None:
    text = Path("docs/reference/http-api.md").read_text()
    table = text.partition("## Warnings\n")[2].partition("\n## ")[0].partition("| code | meaning |")
    assert set(re.findall(r"^\| `(\w+)`", table[2], re.MULTILINE)) == set(REQUESTS)


@pytest.mark.parametrize("code", REQUESTS)
async def test_each_warning_is_an_error_if_the_server_or_the_request_is_strict(
    servers: tuple[Program, Program], code: str
) -> None:
    lenient, strict = servers
    old = f"old-{code}"
    await lenient.create(old, {})
    assert await lenient.until_ended(old) == "CREATE_COMPLETE"
    for method, path in await routes(lenient, old, code):
        sent = {"stack_name": f"new-{code}", **REQUESTS[code]}
        error: Json = {}
        for run, asked in ((strict, {}), (strict, {"strict": False}), (lenient, {"strict": True})):
            status, response = await run.call(method, path, sent | asked)
            assert status == 400, (method, path, asked, response)
            error = response["error"]
            assert error["findings"] and "warnings" not in error, (method, path, asked)
            assert all(one["reason"] for one in error["findings"]), (method, path, asked)
        status, response = await lenient.call(method, path, sent)
        assert status in (200, 201, 202), (method, path, response)
        warned = warnings_of(response)
        assert code in {one["code"] for one in warned}, (method, path, warned)
        assert [one["path"] for one in warned] == [one["place"] for one in error["findings"]]
        if path.startswith(f"/stacks/{old}") and not path.endswith("/preview"):
            assert await lenient.until_ended(old) == "UPDATE_COMPLETE"


async def test_a_strict_server_works_with_stacks_that_have_warnings(
    servers: tuple[Program, Program],
) -> None:
    """Only requests with a template are refused; what was accepted can be used."""
    lenient, strict = servers
    sent = REQUESTS["OutputError"]["template"]
    status, _ = await lenient.call("POST", "/stacks", {"stack_name": "kept", "template": sent})
    assert status == 201 and await lenient.until_ended("kept") == "CREATE_COMPLETE"
    ((output,),) = [(await strict.stack("kept"))["outputs"]]
    assert "was not provided" in output["output_error"]
    for action in ("check", "suspend", "resume"):
        await strict.act("kept", action)
        assert await strict.until_ended("kept") == f"{action.upper()}_COMPLETE"
    accepted = template({"a": resource()})
    await strict.update("kept", "PUT", template=accepted)
    assert await strict.until_ended("kept") == "UPDATE_COMPLETE"
    assert (await strict.call("DELETE", await path_of(strict, "kept")))[0] == 204


async def path_of(run: Program, name: str) -> str:
    return f"/stacks/{name}/{(await run.stack(name))['id']}"
