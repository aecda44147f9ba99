"""Wait conditions: early, late, repeated, failed, missing and malformed signals."""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from yarl import URL

from engine.store.secret_rows import reveal_row
from tests.support.changes import gone, put
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
    said = {"handle": {"get_resource": "h"}, "timeout": TIMEOUT} | more
    if kinds is CFN:
        said = {name.capitalize(): value for name, value in said.items()}
    return {
        "h": {"type": kinds[0], "properties": dict(handle or {})},
        "w": {"type": kinds[1], "properties": said},
    }


async def row(run: Program, name: str) -> Json:
    """A stored resource, with its secrets."""
    async with run.database.connection() as conn:
        found = await conn.fetchrow(
            "select * from resource where name = $1 and replaced_by is null", name
        )
    assert found is not None
    return reveal_row(found, run.project, found["stack_id"], "resource")


async def made(run: Program, name: str) -> Json:
    async def look() -> Json:
        found = await row(run, name)
        return found if found["status"] == "COMPLETE" and found["action"] != "INIT" else None

    return await eventually(look)


async def waits(run: Program, name: str = "w") -> Json:
    """The progress of the condition, once it waits for signals."""

    async def look() -> Json:
        async with run.database.connection() as conn:
            found = await conn.fetchrow(
                "select n.stack_id, n.progress from node n join stack s on s.id = n.stack_id"
                " and s.traversal = n.traversal where n.name = $1 and n.state = 'parked'"
                " and n.phase = 'act' and n.wake_at > clock_timestamp()", name
            )  # fmt: skip
        return found and reveal_row(found, run.project, found["stack_id"], "node")["progress"]

    return await eventually(look)


async def say(run: Program, body: Json = None, name: str = "h") -> int:
    """Send a signal to the signal URL."""
    handle = await made(run, name)
    told = handle["attributes"]
    url = told.get("endpoint") or handle["reference"]
    headers = {"X-Auth-Token": told["token"]} if told.get("token") else {}
    sent = {} if body is None else {"json": body}
    method = "POST" if headers else "PUT"
    async with run.session.request(
        method, URL(url, encoded=True), headers=headers, **sent
    ) as answer:
        return answer.status


async def reason(run: Program, name: str = "w") -> str:
    return str((await run.resources("s"))[name]["resource_status_reason"])


def body(kinds: tuple[str, str], key: str, data: Json = None, status: str = "SUCCESS") -> Json:
    said = {"id": key, "status": status, "reason": f"because {key}", "data": data}
    if kinds[0] in (CFN[0], RENEWED[0]):
        said = {"UniqueId": key} | {name.capitalize(): said[name] for name in said if name != "id"}
    return said


@pytest.mark.parametrize("kinds", [HEAT, CFN, RENEWED, SWIFT], ids=lambda one: one[0])
async def test_it_completes_after_enough_signals(run: Program, kinds: tuple[str, str]) -> None:
    held = {"hooks": [{"at": "w", "on": "pre-create"}]}
    await run.create("s", pair(kinds, count=3), environment=held)
    (hook,) = await run.waiting("s")
    assert await say(run, body(kinds, "early", 1)) == 200
    await run.signal(hook)
    await waits(run)
    assert await say(run, body(kinds, "a", {"n": [2]})) == 200
    assert await say(run, body(kinds, "a", {"n": [3]})) == 200  # takes the place of the one before
    await waits(run)
    assert await say(run, body(kinds, "b", None)) == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    data = '{"early":1,"a":{"n":[3]},"b":null}'
    said = {"data": data} if kinds is not CFN else {"Data": data}
    assert (await row(run, "w"))["attributes"] == said
    # Late signals are stored without effect.
    assert await say(run, body(kinds, "late", 9, "FAILURE")) == 200
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
    assert (await row(run, "w"))["attributes"] == said


async def test_all_properties_have_defaults(run: Program) -> None:
    await run.create("s", pair(count=2))
    assert [await say(run) for _ in range(2)] == [200, 200]
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await row(run, "w"))["attributes"] == {"data": '{"1":null,"2":null}'}


async def test_one_that_failed_fails_it_at_once(run: Program) -> None:
    held = {"hooks": [{"at": "w", "on": "pre-create"}]}
    await run.create("s", pair(count=5), environment=held)
    (hook,) = await run.waiting("s")
    for key, status in (("a", "FAILURE"), ("b", "SUCCESS"), ("c", "FAILURE")):
        assert await say(run, body(HEAT, key, None, status)) == 200
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert await reason(run) == "WaitConditionFailure: because a;because c"


async def test_one_of_a_wrong_form_is_refused_and_nothing_is_lost(run: Program) -> None:
    await run.create("s", pair())
    assert await say(run, {"statsu": "SUCCESS", "reason": 5}) == 400
    told = {"status": "FAILED", "statsu": "SUCCESS"}
    status, said = await run.call("POST", await signal_path(run), told)
    assert (status, [one["place"] for one in said["error"]["findings"]]) == (
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


async def test_too_few_in_time_fail_it_with_their_number_and_reasons(run: Program) -> None:
    resources = pair(count=3, timeout=1)
    resources["v"] = pair(timeout=1)["w"] | {"depends_on": []}
    resources["v"]["properties"] = {"handle": {"get_resource": "g"}, "timeout": 1}
    resources["g"] = pair()["h"]
    held = {"hooks": [{"at": "w", "on": "pre-create"}]}
    await run.create("s", resources, environment=held)
    (hook,) = await run.waiting("s")
    assert await say(run, {"reason": "one"}) == await say(run, {"reason": "two"}) == 200
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert await reason(run) == "WaitConditionTimeout: 2 of 3 received - one;two"
    assert await reason(run, "v") == "WaitConditionTimeout: 0 of 1 received"


async def test_its_time_begins_when_it_does(run: Program) -> None:
    """A hook before the resource blocks it; one on another path does not."""
    resources = pair() | {"other": resource(), "x": pair()["w"] | {"depends_on": ["other"]}}
    held = {"hooks": [{"at": "other", "on": "pre-create"}]}
    await run.create("s", resources, environment=held)
    (hook,) = await run.waiting("s")
    begun = datetime.fromisoformat((await waits(run, "w"))["until"])
    async with run.database.connection() as conn:
        now = await conn.fetchval("select clock_timestamp()")
        assert await conn.fetchval("select progress from node where name = 'x'") is None
    await run.signal(hook)
    later = datetime.fromisoformat((await waits(run, "x"))["until"])
    assert begun - timedelta(seconds=TIMEOUT) < now < later - timedelta(seconds=TIMEOUT)
    # An insufficient signal wakes it, but does not change its deadline.
    await say(run, {"id": "a", "status": "SUCCESS"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_signal_leaves_the_deadline_where_it_was(run: Program) -> None:
    await run.create("s", pair(count=2))
    before = await waits(run)
    await say(run, {"id": "a"})

    async def claimed_again() -> bool:
        async with run.database.connection() as conn:
            return bool(await conn.fetchval("select claim > 4 from node where name = 'w'"))

    await eventually(claimed_again)
    assert await waits(run) == before
    (said,) = (await run.at("GET", "s", "/why"))["nodes"]
    until = datetime.fromisoformat(said["until"])
    assert until - datetime.fromisoformat(before["until"]) < timedelta(milliseconds=1)
    assert said["sentence"] == f"w (create) waits for signals to h until {said['until']}."


async def test_a_newer_change_does_not_wait_for_it(run: Program) -> None:
    await run.create("s", pair())
    await waits(run)
    await put(run, "s", {"h": pair()["h"]})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert set(await run.resources("s")) == {"h"}


async def test_another_count_is_waited_for_in_place(run: Program) -> None:
    await run.create("s", pair())
    await say(run)
    await run.until_ended("s")
    first = await row(run, "w")
    await put(run, "s", pair(count=2))
    await waits(run)
    await say(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    now = await row(run, "w")
    assert now["id"] == first["id"] and now["attributes"] == {"data": '{"1":null,"2":null}'}


async def test_every_update_makes_another_handle_of_those_that_are_for_updates(
    run: Program,
) -> None:
    await run.create("s", pair(RENEWED))
    await say(run, body(RENEWED, "a"))
    await run.until_ended("s")
    handle, condition = await row(run, "h"), await row(run, "w")
    await put(run, "s", pair(RENEWED))
    await waits(run)
    assert (await row(run, "h"))["reference"] != handle["reference"]
    await say(run, body(RENEWED, "b"))
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await row(run, "w"))["id"] != condition["id"]
    assert (await row(run, "w"))["attributes"] == {"data": '{"b":null}'}


async def test_an_invalid_handle_is_refused_by_name(run: Program) -> None:
    """A resource of another type, its attribute, and a handle of another kind."""
    wrong = {"a": {"get_resource": "t"}, "b": {"get_attr": ["t", "output"]},
             "c": {"get_resource": "v"}}  # fmt: skip
    conditions = {
        name: {"type": SWIFT[1], "properties": {"handle": given, "timeout": 9}}
        for name, given in wrong.items()
    }
    others = {"t": resource(str(UUID(int=1))), "v": {"type": RENEWED[0]}}
    await run.create("s", conditions | others)
    assert await run.until_ended("s") == "CREATE_FAILED"
    for name in wrong:
        said = await reason(run, name)
        assert "not a valid wait condition handle. Use {get_resource: NAME}" in said


async def test_the_command_that_it_gives_signals(run: Program) -> None:
    await run.create("s", pair())
    command = (await made(run, "h"))["attributes"]["curl_cli"]
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
    await run.waiting("s")
    secrets = [(await made(run, "k"))["attributes"]["token"]]
    secrets.append((await made(run, "h"))["reference"].rpartition("=")[2])
    seen = [await run.call("GET", path) for path in ("/hooks", "/stacks/s/resources?with_detail=true",
                                                    "/stacks/s/events")]  # fmt: skip
    seen += [await run.call("GET", f"/stacks/s/{(await run.stack('s'))['id']}/resources/{name}")
             for name in "hwk"]  # fmt: skip
    assert all(status == 200 for status, _ in seen)
    for secret in secrets:
        assert len(secret) == 43 and secret not in str(seen)


async def test_in_a_nested_stack_it_is_signalled_and_ended_in_the_same_way(run: Program) -> None:
    outputs = {"data": {"value": {"get_attr": ["w", "data"]}}}
    one, two = (json.dumps(template(pair(count=n), outputs=outputs)) for n in (1, 2))
    outer = template(
        {"n": {"type": "inner.yaml"}}, outputs={"data": {"value": {"get_attr": ["n", "data"]}}}
    )
    sent = {"stack_name": "s", "template": outer, "files": {"inner.yaml": one}}
    await run.call("POST", "/stacks", sent)
    await waits(run)
    assert await say(run, {"data": "inside"}) == 200
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    (output,) = (await run.stack("s"))["outputs"]
    assert output["output_value"] == '{"1":"inside"}'
    await run.update("s", "PUT", template=outer, files={"inner.yaml": two})
    await waits(run)
    await run.at("DELETE", "s")
    await gone(run, "s")
