"""Wait conditions: early, late, repeated, failed, missing and malformed signals."""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from yarl import URL

from engine.store.encryption.encrypted_rows import decrypt_row
from tests.support.changes import put, until_deleted
from tests.support.program import Json, Program, eventually, resource, template

TIMEOUT = 600
HEAT = ("OS::Heat::WaitConditionHandle", "OS::Heat::WaitCondition")
CFN = ("AWS::CloudFormation::WaitConditionHandle", "AWS::CloudFormation::WaitCondition")
RENEWED = ("OS::Heat::UpdateWaitConditionHandle", "OS::Heat::WaitCondition")
SWIFT = ("OS::Heat::SwiftSignalHandle", "OS::Heat::SwiftSignal")


def pair(
    kinds: tuple[str, str] = HEAT, handle: Mapping[str, Json] | None = None, **more: Json
) -> Json:
    """A handle `h`, and a condition `w` that waits for it. more: properties of the condition."""
    properties = {"handle": {"get_resource": "h"}, "timeout": TIMEOUT} | more
    if kinds is CFN:
        properties = {name.capitalize(): value for name, value in properties.items()}
    return {
        "h": {"type": kinds[0], "properties": dict(handle or {})},
        "w": {"type": kinds[1], "properties": properties},
    }


async def row(run: Program, name: str) -> Json:
    """A stored resource, with its secrets."""
    async with run.database.connection() as conn:
        found = await conn.fetchrow(
            "select * from resource where name = $1 and replaced_by is null", name
        )
    assert found is not None
    return decrypt_row(found, run.project, found["stack_id"], "resource")


async def handle_of(run: Program, name: str) -> Json:
    async def read_row() -> Json:
        found = await row(run, name)
        return found if found["status"] == "COMPLETE" and found["action"] != "INIT" else None

    return await eventually(read_row)


async def waits(run: Program, name: str = "w") -> Json:
    """The progress of the condition, once it waits for signals."""

    async def read_row() -> Json:
        async with run.database.connection() as conn:
            found = await conn.fetchrow(
                "select n.stack_id, n.progress from node n join stack s on s.id = n.stack_id"
                " and s.traversal = n.traversal where n.name = $1 and n.state = 'parked'"
                " and n.phase = 'execute' and n.wake_at > clock_timestamp()", name
            )  # fmt: skip
        return found and decrypt_row(found, run.project, found["stack_id"], "node")["progress"]

    return await eventually(read_row)


async def send_signal(run: Program, body: Json = None, name: str = "h") -> int:
    """Send a signal to the signal URL."""
    handle = await handle_of(run, name)
    attributes = handle["attributes"]
    url = attributes.get("endpoint") or handle["reference"]
    headers = {"X-Auth-Token": attributes["token"]} if attributes.get("token") else {}
    sent = {} if body is None else {"json": body}
    method = "POST" if headers else "PUT"
    async with run.session.request(
        method, URL(url, encoded=True), headers=headers, **sent
    ) as answer:
        return answer.status


async def reason(run: Program, name: str = "w") -> str:
    return str((await run.resources("s"))[name]["resource_status_reason"])


def body(kinds: tuple[str, str], key: str, data: Json = None, status: str = "SUCCESS") -> Json:
    fields = {"id": key, "status": status, "reason": f"because {key}", "data": data}
    if kinds[0] in (CFN[0], RENEWED[0]):
        fields = {"UniqueId": key} | {
            name.capitalize(): fields[name] for name in fields if name != "id"
        }
    return fields


@pytest.mark.parametrize("kinds", [HEAT, CFN, RENEWED, SWIFT], ids=lambda one: one[0])
async def test_a_condition_completes_after_enough_signals(
    run: Program, kinds: tuple[str, str]
) -> None:
    breakpoints = {"hooks": [{"at": "w", "on": "pre-create"}]}
    await run.create("s", pair(kinds, count=3), environment=breakpoints)
    (hook,) = await run.waiting_hooks("s")
    assert await send_signal(run, body(kinds, "early", 1)) == 200
    await run.signal(hook)
    await waits(run)
    assert await send_signal(run, body(kinds, "a", {"n": [2]})) == 200
    assert (
        await send_signal(run, body(kinds, "a", {"n": [3]})) == 200
    )  # replaces the earlier signal with this ID
    await waits(run)
    assert await send_signal(run, body(kinds, "b", None)) == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    data = '{"early":1,"a":{"n":[3]},"b":null}'
    output = {"data": data} if kinds is not CFN else {"Data": data}
    assert (await row(run, "w"))["attributes"] == output
    # Late signals are stored without effect.
    assert await send_signal(run, body(kinds, "late", 9, "FAILURE")) == 200
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    assert (await row(run, "w"))["attributes"] == output


async def test_all_properties_have_defaults(run: Program) -> None:
    await run.create("s", pair(count=2))
    assert [await send_signal(run) for _ in range(2)] == [200, 200]
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await row(run, "w"))["attributes"] == {"data": '{"1":null,"2":null}'}


async def test_a_failure_signal_fails_the_condition_at_once(run: Program) -> None:
    breakpoints = {"hooks": [{"at": "w", "on": "pre-create"}]}
    await run.create("s", pair(count=5), environment=breakpoints)
    (hook,) = await run.waiting_hooks("s")
    for key, status in (("a", "FAILURE"), ("b", "SUCCESS"), ("c", "FAILURE")):
        assert await send_signal(run, body(HEAT, key, None, status)) == 200
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert await reason(run) == "WaitConditionFailure: because a;because c"


async def test_a_malformed_signal_is_refused_and_others_are_kept(run: Program) -> None:
    await run.create("s", pair())
    assert await send_signal(run, {"statsu": "SUCCESS", "reason": 5}) == 400
    signal = {"status": "FAILED", "statsu": "SUCCESS"}
    status, response = await run.call("POST", await signal_path(run), signal)
    assert (status, [one["place"] for one in response["error"]["findings"]]) == (
        400,
        ["statsu", "status"],
    )
    assert await run.call("POST", await signal_path(run), {"data": "mine"}) == (200, None)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await row(run, "w"))["attributes"] == {"data": '{"1":"mine"}'}


@pytest.mark.parametrize("sent", [b"null", b"{}", b""], ids=["null", "an empty object", "nothing"])
async def test_a_signal_without_data_counts(run: Program, sent: bytes) -> None:
    """`null` is what `openstack stack resource signal` sends without --data."""
    await run.create("s", pair())
    headers = {"Content-Type": "application/json"}
    path = await signal_path(run)
    assert await run.call("POST", path, data=sent, headers=headers) == (200, None)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def signal_path(run: Program) -> str:
    """The signal endpoint of the API, for users with a right to signal."""
    return f"/stacks/s/{(await run.stack('s'))['id']}/resources/h/signal"


async def test_too_few_signals_fail_the_condition_with_their_number_and_reasons(
    run: Program,
) -> None:
    resources = pair(count=3, timeout=1)
    resources["v"] = pair(timeout=1)["w"] | {"depends_on": []}
    resources["v"]["properties"] = {"handle": {"get_resource": "g"}, "timeout": 1}
    resources["g"] = pair()["h"]
    breakpoints = {"hooks": [{"at": "w", "on": "pre-create"}]}
    await run.create("s", resources, environment=breakpoints)
    (hook,) = await run.waiting_hooks("s")
    assert (
        await send_signal(run, {"reason": "one"})
        == await send_signal(run, {"reason": "two"})
        == 200
    )
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert await reason(run) == "WaitConditionTimeout: 2 of 3 received - one;two"
    assert await reason(run, "v") == "WaitConditionTimeout: 0 of 1 received"


async def test_the_timeout_starts_with_the_operation(run: Program) -> None:
    """A hook before the resource blocks it; one on another path does not."""
    resources = pair() | {"other": resource(), "x": pair()["w"] | {"depends_on": ["other"]}}
    breakpoints = {"hooks": [{"at": "other", "on": "pre-create"}]}
    await run.create("s", resources, environment=breakpoints)
    (hook,) = await run.waiting_hooks("s")
    deadline = datetime.fromisoformat((await waits(run, "w"))["until"])
    async with run.database.connection() as conn:
        now = await conn.fetchval("select clock_timestamp()")
        assert await conn.fetchval("select progress from node where name = 'x'") is None
    await run.signal(hook)
    later = datetime.fromisoformat((await waits(run, "x"))["until"])
    assert deadline - timedelta(seconds=TIMEOUT) < now < later - timedelta(seconds=TIMEOUT)
    # An insufficient signal wakes it, but does not change its deadline.
    await send_signal(run, {"id": "a", "status": "SUCCESS"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_signal_does_not_change_the_deadline(run: Program) -> None:
    await run.create("s", pair(count=2))
    before = await waits(run)
    await send_signal(run, {"id": "a"})

    async def claimed_again() -> bool:
        async with run.database.connection() as conn:
            return bool(await conn.fetchval("select claim > 4 from node where name = 'w'"))

    await eventually(claimed_again)
    assert await waits(run) == before
    (node,) = (await run.stack_request("GET", "s", "/why"))["nodes"]
    until = datetime.fromisoformat(node["until"])
    assert until - datetime.fromisoformat(before["until"]) < timedelta(milliseconds=1)
    assert node["sentence"] == f"w (create) waits for signals to h until {node['until']}."


async def test_a_newer_change_does_not_wait_for_the_condition(run: Program) -> None:
    await run.create("s", pair())
    await waits(run)
    await put(run, "s", {"h": pair()["h"]})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert set(await run.resources("s")) == {"h"}


async def test_a_changed_count_is_an_update_in_place(run: Program) -> None:
    await run.create("s", pair())
    await send_signal(run)
    await run.until_ended("s")
    first = await row(run, "w")
    await put(run, "s", pair(count=2))
    await waits(run)
    await send_signal(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    now = await row(run, "w")
    assert now["id"] == first["id"] and now["attributes"] == {"data": '{"1":null,"2":null}'}


async def test_every_update_replaces_an_update_handle(
    run: Program,
) -> None:
    await run.create("s", pair(RENEWED))
    await send_signal(run, body(RENEWED, "a"))
    await run.until_ended("s")
    handle, condition = await row(run, "h"), await row(run, "w")
    await put(run, "s", pair(RENEWED))
    await waits(run)
    assert (await row(run, "h"))["reference"] != handle["reference"]
    await send_signal(run, body(RENEWED, "b"))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await row(run, "w"))["id"] != condition["id"]
    assert (await row(run, "w"))["attributes"] == {"data": '{"b":null}'}


async def test_an_invalid_handle_is_refused_by_name(run: Program) -> None:
    """A resource of another type, its attribute, and a handle of another kind."""
    invalid = {"a": {"get_resource": "t"}, "b": {"get_attr": ["t", "output"]},
             "c": {"get_resource": "v"}}  # fmt: skip
    conditions = {
        name: {"type": SWIFT[1], "properties": {"handle": handle, "timeout": 9}}
        for name, handle in invalid.items()
    }
    others = {"t": resource(str(UUID(int=1))), "v": {"type": RENEWED[0]}}
    await run.create("s", conditions | others)
    assert await run.until_ended("s") == "CREATE_FAILED"
    for name in invalid:
        message = await reason(run, name)
        assert "not a valid wait condition handle. Use {get_resource: NAME}" in message


async def test_the_curl_command_of_the_handle_signals(run: Program) -> None:
    await run.create("s", pair())
    command = (await handle_of(run, "h"))["attributes"]["curl_cli"]
    process = await asyncio.create_subprocess_shell(
        f"""{command} --data-binary '{{"status": "SUCCESS", "data": "by curl"}}'""",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    async with asyncio.timeout(30):
        out, _ = await process.communicate()
    assert out.startswith(b"HTTP/1.1 200")
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await row(run, "w"))["attributes"] == {"data": '{"1":"by curl"}'}


async def test_tokens_are_masked(run: Program) -> None:
    rules = {"hooks": [{"at": "w", "on": "pre-create"}]}
    await run.create("s", pair(CFN) | {"k": pair()["h"]}, environment=rules)
    await run.waiting_hooks("s")
    secrets = [(await handle_of(run, "k"))["attributes"]["token"]]
    secrets.append((await handle_of(run, "h"))["reference"].rpartition("=")[2])
    responses = [await run.call("GET", path) for path in ("/hooks", "/stacks/s/resources?with_detail=true",
                                                    "/stacks/s/events")]  # fmt: skip
    responses += [await run.call("GET", f"/stacks/s/{(await run.stack('s'))['id']}/resources/{name}")
             for name in "hwk"]  # fmt: skip
    assert all(status == 200 for status, _ in responses)
    for secret in secrets:
        assert len(secret) == 43 and secret not in str(responses)


async def test_a_condition_in_a_nested_stack_is_signalled_and_completes(run: Program) -> None:
    outputs = {"data": {"value": {"get_attr": ["w", "data"]}}}
    one, two = (json.dumps(template(pair(count=n), outputs=outputs)) for n in (1, 2))
    outer = template(
        {"n": {"type": "inner.yaml"}}, outputs={"data": {"value": {"get_attr": ["n", "data"]}}}
    )
    sent = {"stack_name": "s", "template": outer, "files": {"inner.yaml": one}}
    await run.call("POST", "/stacks", sent)
    await waits(run)
    assert await send_signal(run, {"data": "inside"}) == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    (output,) = (await run.stack("s"))["outputs"]
    assert output["output_value"] == '{"1":"inside"}'
    await run.update("s", "PUT", template=outer, files={"inner.yaml": two})
    await waits(run)
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
