"""headgate.Client with a real server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate.connection import StreamedEvent
from tests.support.program import Program, ServerProcess, program, resource, template
from tests.support.relay import running_relay

GUARDED = {
    "hooks": [
        {"at": "a", "on": ["pre-create", "pre-update"], "ask": {"schema": {"type": "object"}}}
    ]
}
ENDS = 60.0


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"engine.poll": "1s"}) as opened:
        yield opened


@pytest.fixture
async def client(run: Program) -> AsyncIterator[headgate.Client]:
    credentials = headgate.ClientCredentials(user="ann")
    async with headgate.Client(run.url, "p", credentials) as opened:
        yield opened


async def test_a_stack_from_its_creation_to_its_deletion(client: headgate.Client) -> None:
    created = await client.stacks.create(
        "web", template=template({"a": resource(), "b": resource()}), tags=["x", "y"]
    )
    assert created["tags"] == ["x", "y"]
    stack = await client.stacks.wait("web", timeout=ENDS)
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert [one["stack_name"] async for one in client.stacks.list()] == ["web"]
    assert [one async for one in client.stacks.list(tags=["z"])] == []
    names = [one["resource_name"] async for one in client.resources.list("web")]
    assert sorted(names) == ["a", "b"]
    assert (await client.resources.show("web", "a"))["resource_status"] == "CREATE_COMPLETE"
    assert (await client.resources.inspect("web", "b"))["path"] == "b"
    types = [one["type"] async for one in client.events.history("web")]
    assert types[0] == "headgate.stack.create.started"
    assert types[-1] == "headgate.stack.create.completed"
    await client.resources.mark_unhealthy("web", "a", "disk is full")
    assert (await client.resources.show("web", "a"))["resource_status_reason"] == "disk is full"
    await client.stacks.delete("web")
    assert (await client.stacks.wait(stack["id"], timeout=ENDS))[
        "stack_status"
    ] == "DELETE_COMPLETE"


async def test_lists_are_read_page_by_page(
    client: headgate.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.client.PAGE_SIZE", 2)
    environment = {"hooks": [{"at": "*", "on": "pre-create"}]}
    names = [f"s{number}" for number in range(5)]
    for name in names:
        await client.stacks.create(
            name, template=template({"a": resource()}), environment=environment
        )
        await client.hooks.wait(stack=name, timeout=ENDS)
        await client.subscriptions.create(f"http://127.0.0.1:9/{name}", stacks=[name])
    assert sorted([one["stack_name"] async for one in client.stacks.list()]) == names
    assert [one["stack_name"] async for one in client.hooks.list()] == names
    targets = [one["target"].rpartition("/")[2] async for one in client.subscriptions.list()]
    assert sorted(targets) == names


async def test_exactly_the_planned_change_is_applied(client: headgate.Client) -> None:
    plan = await client.stacks.plan_create(
        "web", template=template({"a": resource()}), environment=GUARDED
    )
    assert [one["resource_name"] for one in plan.changes["added"]] == ["a"]
    assert [one["point"] for one in plan.hooks] == ["pre-create"]
    await plan.apply()
    await client.hooks.continue_(await client.hooks.wait(stack="web", timeout=ENDS), data={})
    await client.stacks.wait("web", timeout=ENDS)
    plan = await client.stacks.plan_update("web", template=template({"a": resource("new")}))
    other = await client.stacks.plan_update("web", template=template({"a": resource("other")}))
    assert plan.digest != other.digest
    assert [one["resource_name"] for one in plan.changes["updated"]] == ["a"]
    await client.stacks.update("web", template=template({"a": resource(), "b": resource()}))
    await client.stacks.wait("web", timeout=ENDS)
    with pytest.raises(headgate.ConflictError) as caught:
        await plan.apply()
    assert caught.value.code == "PlanChanged"


async def test_a_hook_is_answered_for_what_was_reviewed(client: headgate.Client) -> None:
    await client.stacks.create("web", template=template({"a": resource()}), environment=GUARDED)
    hook = await client.hooks.wait(stack="web", point="pre-*", timeout=ENDS)
    assert await client.hooks.show(hook["id"]) == hook
    with pytest.raises(headgate.ConflictError) as changed:
        await client.hooks.continue_({**hook, "digest": "0" * 64}, data={})
    assert changed.value.code == "DigestChanged" and changed.value.remedy
    with pytest.raises(headgate.InvalidRequestError) as invalid:
        await client.hooks.continue_(hook, data=[])
    assert invalid.value.code == "DataRefused"
    progress = await client.hooks.progress(hook, reason="looking", extend="48h")
    assert progress["deadline"] is not None and hook["deadline"] is not None
    assert progress["deadline"] > hook["deadline"]
    answered = await client.hooks.reject(hook["id"], reason="no", data={})
    assert (answered["decision"], answered.get("decided_by")) == ("reject", "ann")
    with pytest.raises(headgate.ConflictError) as conflict:
        await client.hooks.continue_(hook, data={})
    assert conflict.value.document["decided_by"] == "ann"
    assert [one["kind"] for one in await client.hooks.decisions(hook)] == ["progress", "reject"]
    kinds = [one["kind"] async for one in client.stacks.decisions("web")]
    assert kinds == ["progress", "reject"]


async def test_hooks_of_all_projects(run: Program, client: headgate.Client) -> None:
    async with headgate.Client(run.url, "q", headgate.ClientCredentials(user="ann")) as other:
        for one in (client, other):
            await one.stacks.create("web", template=template({"a": resource()}), hooks={
                "add": [{"at": "a", "on": ["pre-create"]}]})  # fmt: skip
            await one.hooks.wait(stack="web", timeout=ENDS)
        listing = client.hooks.pages_of_all_projects(state="waiting", path="a")
        (page,) = [one async for one in listing]
        assert [one.get("project") for one in page["hooks"]] == ["p", "q"]
        await other.hooks.continue_(page["hooks"][1])
        listing = client.hooks.pages_of_all_projects(state="waiting")
        assert [len(one["hooks"]) async for one in listing] == [1]


async def test_a_hook_is_handed_over_and_its_change_patched(client: headgate.Client) -> None:
    rule = {"at": "a", "on": "pre-create", "patch": True, "answer_by": ["user:ann"]}
    await client.stacks.create(
        "web", template=template({"a": resource("x")}), environment={"hooks": [rule]}
    )
    hook = await client.hooks.wait(stack="web", timeout=ENDS)
    explained = await client.stacks.explain("web")
    assert [(one["path"], one["state"]) for one in explained["nodes"]] == [("a", "parked")]
    graph = await client.stacks.graph("web")
    assert [(one["path"], one["state"]) for one in graph["nodes"]] == [("a", "parked")]
    handed = await client.hooks.hand_over(hook, "user:bob", note="on call")
    assert handed["answer_by"] == ["user:ann", "user:bob"]
    await client.hooks.patch(handed, {"value": "y"}, reason="better")
    assert (await client.stacks.wait("web", timeout=ENDS))["stack_status"] == "CREATE_COMPLETE"
    shown = await client.resources.inspect("web", "a")
    assert shown["properties"]["value"] == "y"
    kinds = [one["kind"] for one in await client.hooks.decisions(hook)]
    assert kinds == ["handed-over", "patch"]


async def test_resources_are_signalled_marked_and_checked(client: headgate.Client) -> None:
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    await client.stacks.create("web", template=template({"a": resource(), "handle": handle}))
    await client.stacks.wait("web", timeout=ENDS)
    await client.resources.signal("web", "handle", {"status": "SUCCESS", "data": "it works"})
    types = [one["type"] async for one in client.events.history("web")]
    assert types[-1] == "headgate.resource.signal.completed"
    await client.resources.mark_unhealthy("web", "a", "disk is full")
    await client.resources.mark_healthy("web", "a", "disk is cleared")
    found = await client.resources.show("web", "a")
    assert found["resource_status"] == "CHECK_COMPLETE"
    await client.stacks.act("web", "check")
    assert (await client.stacks.wait("web", timeout=ENDS))["stack_status"] == "CHECK_COMPLETE"


async def test_errors_name_place_reason_and_remedy(client: headgate.Client) -> None:
    with pytest.raises(headgate.NotFoundError) as missing:
        await client.stacks.show("none")
    assert (missing.value.status, missing.value.code) == (404, "EntityNotFound")
    with pytest.raises(headgate.InvalidRequestError) as invalid:
        await client.stacks.create(
            "web", template="heat_template_version: 2018-08-31\nresources:\n  a:\n    typ: X\n"
        )
    assert len(invalid.value.findings) >= 1
    assert "resources.a" in invalid.value.place
    assert invalid.value.findings[0]["line"] in (3, 4)
    with pytest.raises(headgate.InvalidRequestError, match="target"):
        await client.subscriptions.create("nothing")


async def test_waits_are_bounded(client: headgate.Client) -> None:
    await client.stacks.create("web", template=template({"a": resource()}), environment=GUARDED)
    with pytest.raises(headgate.WaitTimeoutError, match=r"CREATE_IN_PROGRESS after 0\.05 s"):
        await client.stacks.wait("web", timeout=0.05)
    with pytest.raises(headgate.WaitTimeoutError, match="no hook"):
        await client.hooks.wait(stack="web", point="post-*", timeout=0.05)


async def test_a_subscription_and_its_deliveries(client: headgate.Client) -> None:
    created = await client.subscriptions.create(
        "http://127.0.0.1:9/", events=["headgate.hook.*"], ordered=False
    )
    assert created["secret"].startswith("whsec_")
    changed = await client.subscriptions.update(created["id"], state="disabled", points=["pre-*"])
    assert (changed["state"], changed["points"], changed["ordered"]) == (
        "disabled",
        ["pre-*"],
        False,
    )
    assert (await client.subscriptions.test(created["id"]))["delivered"] is False
    assert (await client.subscriptions.rotate(created["id"]))["secret"] != created["secret"]
    assert [one["type"] async for one in client.subscriptions.deliveries(created["id"])] == []
    await client.subscriptions.delete(created["id"])
    with pytest.raises(headgate.NotFoundError):
        await client.subscriptions.show(created["id"])


async def test_the_stream_resumes_after_a_restart_of_the_server(
    database_url: str, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, database_url=database_url)
    await asyncio.to_thread(server.start)
    try:
        await follow_over_a_restart(server)
    finally:
        await asyncio.to_thread(server.stop)


async def follow_over_a_restart(server: ServerProcess) -> None:
    async with headgate.Client(server.url, "p") as client:
        connected = asyncio.Queue[None]()

        async def note() -> None:
            connected.put_nowait(None)

        stream = client.events.stream(types=["headgate.stack.*.started"], on_connect=note)
        async with aclosing(stream) as events, asyncio.timeout(2 * ENDS):
            first = asyncio.ensure_future(anext(events))
            await connected.get()
            await client.stacks.create("one", template=template({}))
            assert stack_of(await first) == "one"
            await asyncio.to_thread(server.kill)
            following = asyncio.ensure_future(anext(events))
            await asyncio.to_thread(server.start)
            await client.stacks.create("two", template=template({}))
            assert stack_of(await following) == "two"
            assert connected.qsize() >= 1


async def test_an_idle_stream_that_loses_its_connection_connects_again(run: Program) -> None:
    async with (
        running_relay(run.url) as relay,
        headgate.Client(relay.url, "p") as client,
    ):
        connected = asyncio.Queue[None]()

        async def note() -> None:
            connected.put_nowait(None)

        # The time without an event is longer than this timeout.
        stream = client.events.stream(reconnect_timeout=0, on_connect=note)
        async with aclosing(stream) as events, asyncio.timeout(2 * ENDS):
            following = asyncio.ensure_future(anext(events))
            await connected.get()
            relay.cut()
            relay.restore()
            again = asyncio.ensure_future(connected.get())
            await asyncio.wait({following, again}, return_when=asyncio.FIRST_COMPLETED)
            assert again.done(), following.exception()
            await run.create("one", {})
            assert stack_of(await following) == "one"
            relay.cut()
            with pytest.raises(headgate.UnreachableError):
                while True:
                    await anext(events)


async def test_a_stream_resumes_also_before_its_first_event(run: Program) -> None:
    async with run.session.get(f"{run.url}/v1/p/events/stream") as answer:
        assert await answer.content.readline() == b": connected\n"
        place = (await answer.content.readline()).decode().removeprefix("id: ").rstrip()
    await run.create("one", {})
    async with (
        asyncio.timeout(ENDS),
        headgate.Client(run.url, "p") as client,
        client.connection.stream(last=place) as events,
    ):
        assert stack_of(await anext(events)) == "one"


def stack_of(event: StreamedEvent) -> str:
    return str(event.document["data"]["stack"]["name"])


async def test_a_server_that_is_away_is_reported() -> None:
    async with headgate.Client("http://127.0.0.1:9", "p") as client:
        with pytest.raises(headgate.UnreachableError, match=r"connection refused\. Check the URL"):
            await client.stacks.show("x")
        with pytest.raises(headgate.UnreachableError):
            async for _ in client.events.stream(reconnect_timeout=0):
                raise AssertionError


async def test_a_client_outside_of_its_context_is_a_mistake() -> None:
    with pytest.raises(RuntimeError, match="outside its context manager"):
        await headgate.Client("http://127.0.0.1:9", "p").stacks.show("x")


async def test_the_variables_of_the_command_line_are_used(
    run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_URL", run.url)
    monkeypatch.setenv("HEADGATE_PROJECT", "q")
    monkeypatch.setenv("HEADGATE_USER", "bob")
    async with headgate.Client() as client:
        stack = await client.stacks.create("web", template=template({}))
    assert stack["stack_owner"] == "bob"
    assert (await run.call("GET", "/stacks/web"))[0] == 404


async def test_the_example_of_the_reference_runs(
    run: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "python-client.md"
    code = page.read_text().partition("```python\n")[2].partition("```")[0]
    code = code.replace("http://127.0.0.1:8004", run.url).replace("asyncio.run(main())", "")
    web = template({"a": resource()}, hooks=[{"at": "a", "on": "pre-create"}])
    (tmp_path / "web.yaml").write_text(json.dumps(web))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)
    await names["main"]()
    assert capsys.readouterr().out.endswith("CREATE_COMPLETE\n")
