"""Signals that are uploaded to a real Swift with a temporary URL."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.observations import observing
from tests.openstack.stacks import delete, reason, run
from tests.support.completions import WAITING
from tests.support.page_commands import page_command
from tests.support.page_reader import Reader
from tests.support.program import Http, Program, ServerProcess, eventually, template

Json = Any
__all__ = ["observing", "run"]  # fixtures
SIGNALS = "headgate-signals"
HEAT = ("OS::Heat::WaitConditionHandle", "OS::Heat::WaitCondition")
SWIFT = ("OS::Heat::SwiftSignalHandle", "OS::Heat::SwiftSignal")


@pytest.fixture(scope="session", autouse=True)
def swift(openstack: OpenStack) -> None:
    """Swift runs; it starts once per run."""
    openstack.start("swift")


def pair(kinds: tuple[str, str] = HEAT, name: str = "", **properties: Json) -> Json:
    """A handle `h` and a condition `w` that waits for it. name: what their names end with."""
    transport = {"signal_transport": "TEMP_URL_SIGNAL"} if kinds is HEAT else {}
    waits = {"handle": {"get_resource": f"h{name}"}, "timeout": 300, **properties}
    return {
        f"h{name}": {"type": kinds[0], "properties": transport},
        f"w{name}": {"type": kinds[1], "properties": waits},
    }


def url_output(kinds: tuple[str, str], name: str = "") -> Json:
    attribute = "signal" if kinds is HEAT else "endpoint"
    return {"value": {"get_attr": [f"h{name}", attribute]}}


async def begin(
    program: Program, kinds: tuple[str, str] = HEAT, names: Sequence[str] = ("",), **more: Json
) -> list[str]:
    """Create the stack `s`; return the URLs of its handles."""
    body = template({k: v for one in names for k, v in pair(kinds, one, **more).items()})
    body["outputs"] = {f"url{one}": url_output(kinds, one) for one in names}
    status, response = await program.call("POST", "/stacks", {"stack_name": "s", "template": body})
    assert status == 201, response
    urls: list[str] = await eventually(lambda: urls_of(program, kinds))
    return urls


async def urls_of(program: Program, kinds: tuple[str, str]) -> list[str] | None:
    found = (await program.stack("s"))["outputs"]
    values = [one["output_value"] for one in sorted(found, key=lambda one: one["output_key"])]
    if not all(values):
        return None
    return [json.loads(one)["alarm_url"] if kinds is HEAT else one for one in values]


async def upload(url: str, body: bytes | Json = b"") -> int:
    """Send a signal without a token; return the status of the response."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with aiohttp.ClientSession() as session, session.put(url, data=content) as response:
        return response.status


async def containers(project: Project) -> list[str]:
    listed = await asyncio.to_thread(lambda: list(project.cloud.object_store.containers()))
    return sorted(one.name for one in listed)


async def shown(program: Program) -> str:
    """What readers see of the stack: its resources and events."""
    documents = [
        await program.stack_request("GET", "s", "/resources/h"),
        await program.stack_request("GET", "s", "/resources/w"),
        await program.stack_request("GET", "s", "/events"),
    ]
    return json.dumps(documents)


async def test_all_signals_to_one_url_count(run: Program, project: Project) -> None:
    """Also an empty one. What is uploaded later counts for an update, and nothing stays."""
    (url,) = await begin(run, count=3)
    assert await upload(url) == 201
    assert await upload(url, {"id": "b", "data": "two", "reason": "r"}) == 201
    assert await upload(url, {"data": {"three": 3}}) == 201
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    found = await run.stack_request("GET", "s", "/resources/w")
    data = json.loads(found["resource"]["attributes"]["data"])
    assert data == {"1": None, "b": "two", "3": {"three": 3}}
    assert "temp_url_sig" not in await shown(run)
    assert await upload(url, {"data": "four"}) == 201
    await run.update("s", "PUT", template=template(pair(count=4)))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    found = await run.stack_request("GET", "s", "/resources/w")
    assert json.loads(found["resource"]["attributes"]["data"])["4"] == "four"
    await delete(run)
    assert await containers(project) == []
    assert await upload(url) in (401, 404)
    assert await containers(project) == []


async def test_the_command_of_the_page_signals(run: Program, project: Project) -> None:
    (url,) = await begin(run)
    reader = Reader(run.url, run.project, {})
    reader.environment["ALARM_URL"] = url
    await reader.type(page_command("docs/how-to/wait-for-a-signal.md", "curl -X PUT"))
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await delete(run)
    assert await containers(project) == []


async def test_a_signal_of_failure_fails_the_stack(run: Program, project: Project) -> None:
    (url,) = await begin(run, SWIFT)
    assert f"/v1/AUTH_{project.id}/headgate-signal-" in url
    assert await upload(url, {"status": "FAILURE", "reason": "no disk"}) == 201
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "SwiftSignalFailure: no disk" in await reason(run, "s", "w")
    assert "temp_url_sig" not in await shown(run)
    await delete(run)
    assert await containers(project) == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"status": "done"}', "status"),
        (b" " * 65_537, "longer than 65536 bytes"),
    ],
    ids=["syntax", "list", "status", "size"],
)
async def test_an_invalid_signal_fails_the_condition_with_the_reason(
    run: Program, project: Project, body: bytes, why: str
) -> None:
    (url,) = await begin(run)
    assert await upload(url, body) == 201
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert why in (found := await reason(run, "s", "w")) and "signal 1 is invalid" in found
    await delete(run)


async def test_a_condition_times_out_with_what_arrived(run: Program) -> None:
    (url,) = await begin(run, timeout=2, count=2)
    assert await upload(url, {"reason": "first"}) == 201
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "WaitConditionTimeout: 1 of 2 received - first" in await reason(run, "s", "w")
    await delete(run)


async def test_a_delete_ends_the_wait_and_leaves_nothing(run: Program, project: Project) -> None:
    (url,) = await begin(run, count=2)
    assert await upload(url) == 201
    await delete(run)
    assert await containers(project) == []


async def test_a_killed_create_makes_one_object_and_loses_no_signal(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """A process dies after Swift has created the object, before the URL is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    resources = {"a": pair()["h"], "b": pair(SWIFT)["h"]}
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            assert await die_after_each(server, http, resources) == "CREATE_COMPLETE"
            found = await containers(project)
            assert len(found) == 3 and SIGNALS in found
            await delete_stack(http)
            assert await containers(project) == []
    finally:
        server.kill()


async def test_one_list_finds_the_signals_of_all_conditions(
    observing: Program, openstack: OpenStack, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.types.object_signals.READ_PAUSE", 3600.0)
    names = [str(number) for number in range(6)]
    urls = await begin(observing, HEAT, names, count=2)

    async def all_wait() -> bool:
        sent = await observing.database.pool.fetch("select sent from completion_request")
        waiting = await observing.database.pool.fetchval(WAITING)
        return len(sent) == 1 and sent[0]["sent"] > 2 and waiting == len(names)

    await eventually(all_wait)
    for _ in range(2):
        assert [await upload(url) for url in urls] == [201] * len(names)
    assert await observing.until_ended("s") == "CREATE_COMPLETE"
    sent = [one for one in openstack.requests("swift") if project.id in one]
    lists = [one for one in sent if f"/{SIGNALS}?" in one and "prefix=&" in one]
    reads = Counter(one for one in sent if one.startswith("HEAD") and "/headgate-signal-" in one)
    assert len(lists) > 2, sent[-20:]
    objects = {key: n for key, n in reads.items() if f"/{SIGNALS}/" not in key}
    # At first and for each signal, and again if a list has the signal before its object has it.
    assert len(objects) == len(names) and max(objects.values()) <= 5
    await delete(observing)
    assert await containers(project) == []


SCRIPT: Json = {
    "type": "OS::Heat::SoftwareConfig",
    "properties": {
        "group": "script",
        "config": "echo $a",
        "inputs": [{"name": "a"}],
        "outputs": [{"name": "out"}, {"name": "trouble", "error_output": True}],
    },
}


def deployment(value: str = "1", **properties: Json) -> Json:
    """A config and its deployment `d`."""
    deploys = {
        "config": {"get_resource": "c"},
        "server": "web-1",
        "input_values": {"a": value},
        "signal_transport": "TEMP_URL_SIGNAL",
        **properties,
    }
    return {"c": SCRIPT, "d": {"type": "OS::Heat::SoftwareDeployment", "properties": deploys}}


async def until_published(
    program: Program, action: str, server: str = "web-1", not_url: str = ""
) -> str:
    """Wait for the deployment of a server; return the URL to which it uploads its signals."""

    async def published() -> str | None:
        path = f"/software_deployments/metadata/{server}"
        for one in (await program.call("GET", path))[1]["metadata"]:
            values = {each["name"]: each.get("value") for each in one["inputs"]}
            url = str(values["deploy_signal_id"])
            if values["deploy_action"] == action and url != not_url:
                assert values["deploy_signal_verb"] == "PUT"
                return url
        return None

    url: str = await eventually(published)
    return url


async def test_a_server_uploads_the_results_of_its_deployments(
    run: Program, project: Project
) -> None:
    """Each operation has a URL of its own; that of an earlier one is invalid."""
    actions = ["CREATE", "UPDATE", "DELETE"]
    body = template(deployment(actions=actions))
    body["outputs"] = {"out": {"value": {"get_attr": ["d", "out"]}}}
    await run.call("POST", "/stacks", {"stack_name": "s", "template": body})
    first = await until_published(run, "CREATE")
    assert await upload(first, {"deploy_status": "IN_PROGRESS"}) == 201
    assert await upload(first, {"out": "one", "deploy_status_code": 0}) == 201
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await run.stack("s"))["outputs"][0]["output_value"] == "one"
    await run.update("s", "PUT", template=template(deployment("2", actions=actions)))
    second = await until_published(run, "UPDATE")
    assert await upload(first, {"out": "late"}) in (401, 404)
    assert await upload(second, {"deploy_status_code": 7}) == 201
    assert await run.until_ended("s") == "UPDATE_FAILED"
    assert "non-zero status code: 7" in await reason(run, "s", "d")
    documents = [await run.stack_request("GET", "s", rest) for rest in ("/resources/d", "/events")]
    assert "temp_url_sig" not in json.dumps(documents)
    await run.stack_request("DELETE", "s")
    last = await until_published(run, "DELETE")
    assert await upload(last, {}) == 201
    await eventually(lambda: is_gone(run))
    assert await containers(project) == []


async def is_gone(program: Program) -> bool:
    return (await program.call("GET", "/stacks/s"))[0] == 404


async def test_one_list_finds_the_results_of_a_group_and_an_invalid_one_fails_its_member(
    observing: Program, project: Project
) -> None:
    properties = deployment()["d"]["properties"]
    del properties["server"]
    servers = {"one": "web-1", "two": "web-2"}
    group = {"type": "OS::Heat::SoftwareDeploymentGroup",
             "properties": {**properties, "servers": servers}}  # fmt: skip
    await observing.create("s", {"c": SCRIPT, "g": group})
    urls = [await until_published(observing, "CREATE", server) for server in servers.values()]
    assert await upload(urls[0], {"deploy_status_code": 0}) == 201
    assert await upload(urls[1], b"no JSON") == 201
    assert await observing.until_ended("s") == "CREATE_FAILED"
    assert "not valid JSON" in await reason(observing, "s", "g")
    await delete(observing)
    assert await containers(project) == []
