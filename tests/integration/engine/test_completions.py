"""Operations that the observer completes: one request finds the objects of all of them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from engine.service.completions import StoredCompletions
from engine.store.observer import completions
from engine.types.completion import AcceptedOperation
from engine.work.observer.completion_observer import IDLE, CompletionObserver
from tests.support.changes import until_deleted
from tests.support.completions import (
    WAITING,
    building,
    finish,
    pause_completion_observers,
    send_now,
    until_waiting,
)
from tests.support.http_things import HTTP_SETTINGS, PAGE, Things, serve_things, thing
from tests.support.program import Json, Program, eventually, program, template
from tests.support.receiver import until

Observed = tuple[Program, CompletionObserver]
#: The loop of the observer, which most tests pause.
RUN = CompletionObserver.run


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture(scope="module")
def observers() -> Iterator[list[CompletionObserver]]:
    with pause_completion_observers() as paused:
        yield paused


@pytest.fixture(scope="module")
def shared_settings(observers: list[CompletionObserver]) -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest_asyncio.fixture(loop_scope="session")
async def unobserved(
    in_own_project: Program, observers: list[CompletionObserver]
) -> tuple[Program, CompletionObserver]:
    """A program whose observer does not run, and that observer, for tests to run."""
    await until(lambda: bool(observers))
    return in_own_project, observers[0]


async def completed(run: Program, name: str = "s") -> Counter[str]:
    """How often each resource was completed."""
    history = await run.stack_request("GET", name, "/history")
    kinds = ("headgate.resource.create.completed", "headgate.resource.update.completed")
    return Counter(one["subject"] for one in history["events"] if one["type"] in kinds)


async def states(run: Program) -> Counter[str]:
    rows = await run.database.pool.fetch("select state from node where name <> ''")
    return Counter(row["state"] for row in rows)


@pytest.mark.asyncio(loop_scope="session")
async def test_objects_are_completed_by_requests_for_the_list_alone(
    database_url: str, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CompletionObserver, "run", RUN)
    names = [f"r{number}" for number in range(10)]
    async with program(database_url, HTTP_SETTINGS) as run:
        resources = {name: building(things) for name in names}
        await run.create("s", resources)
        await until_waiting(run, len(names))
        finish(things)
        assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
        assert things.requests["create"] == len(names) and things.requests["read"] == 0
        assert await completed(run) == Counter(names)
        shown = await run.stack_request("GET", "s", "/resources/r3")
        found = things.objects[shown["resource"]["physical_resource_id"]]
        assert shown["resource"]["attributes"]["outputs"] == {"address": found["address"]}


async def test_one_request_looks_at_all_operations_and_writes_nothing_if_none_is_complete(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    count = 4 * PAGE
    half = {f"r{number}": building(things) for number in range(count // 2)}
    await run.create("s", half)
    await run.create("t", half)
    await until_waiting(run, count)
    # While they wait, no worker has a node, and no timer is near.
    pool = run.database.pool
    held = "select count(*) from node where worker is not null or wake_at < now() + interval '1m'"
    assert await pool.fetchval(held) == 0
    versions = "select xmin, ctid from node union all select xmin, ctid from completion"
    before = sorted(map(tuple, await pool.fetch(versions)))
    things.requests.clear()
    await send_now(run, observer)
    assert things.requests == {"list": count // PAGE}
    assert sorted(map(tuple, await pool.fetch(versions))) == before
    finish(things)
    things.requests.clear()
    await send_now(run, observer)
    assert things.requests == {"list": count // PAGE}
    for name in ("s", "t"):
        assert await run.until_ended(name) == "CREATE_COMPLETE"
        assert await completed(run, name) == Counter([*half])
    # Once the operations have ended, nothing of them is left.
    await send_now(run, observer)
    for table in ("completion", "completion_request"):
        assert await pool.fetch(f"select from {table}") == []
    assert things.requests == {"list": count // PAGE}


async def test_each_object_is_completed_when_it_is_ready(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {name: building(things) for name in "abc"})
    await until_waiting(run, 3)
    ids = {name: one["physical_resource_id"] for name, one in (await run.resources("s")).items()}
    first, second, third = things.objects.values()
    first["state"], second["state"] = "ready", "broken"
    await send_now(run, observer)

    async def two_ended() -> bool:
        return bool((await states(run))["done"] == 1 and (await states(run))["failed"] == 1)

    await eventually(two_ended)
    third["state"] = "ready"
    await send_now(run, observer)
    assert await run.until_ended("s") == "CREATE_FAILED"
    statuses = Counter(
        (one["resource_status"], one["resource_status_reason"])
        for one in (await run.resources("s")).values()
    )
    assert statuses == {
        ("CREATE_COMPLETE", "state changed"): 2,
        ("CREATE_FAILED", "the object has failed: broken"): 1,
    }, ids


async def test_an_event_makes_a_request_due_and_completes_nothing(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    (known,) = things.objects
    await send_now(run, observer)  # the next one is due later
    things.requests.clear()
    far = "update completion_request set next_at = now() + interval '1h', ended_at = now() - $1::interval"
    await run.database.pool.execute(far, IDLE)
    changed, own = run.engine.completions.make_due, run.project
    assert await changed(own, ["none"]) == set() and await changed("other", [known]) == set()
    assert await observer.send_due() == 0
    assert await changed(own, ["none", known]) == {known}
    assert await observer.send_due() == 1
    assert things.requests == {"list": 1} and await run.database.pool.fetchval(WAITING) == 1
    # Events that follow each other cost one request for each pause.
    await changed(own, [known])
    assert await observer.send_due() == 0
    finish(things)
    await run.database.pool.execute(far, IDLE)
    body = {"observations": [{"physical_resource_id": known}]}
    assert await run.call("POST", "/observations", body) == (
        202, {"resources": 0, "stacks": 0, "unknown": 0}
    )  # fmt: skip
    assert await observer.send_due() == 1
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_id_that_an_operation_waits_for_is_observed_elsewhere(
    unobserved: Observed, things: Things
) -> None:
    """It is unique for one service only: other projects, stacks and services may have it, too."""
    run, observer = unobserved
    other = Program(run.session, run.url, "other")
    async with serve_things() as service:
        for http, name in ((other, "s"), (run, "t")):
            await http.create(name, {"a": thing(service)})
            assert await http.until_ended(name) == "CREATE_COMPLETE"
        ids = [(await http.resources(name))["a"]["physical_resource_id"]
               for http, name in ((other, "s"), (run, "t"))]  # fmt: skip
        await run.create("s", {"a": building(things), "b": building(things)})
        await until_waiting(run, 2)
        assert sorted(things.objects) == sorted(ids)
        stacks = [(await http.stack(name))["id"] for http, name in ((other, "s"), (run, "t"))]
        scheduled = "select stack_id::text from observation_schedule where reported is not null"
        # A report concerns one project, and a notification of a provider all of them.
        status, counted = await run.call(
            "POST", "/observations", {"observations": [{"physical_resource_id": ids[1]}]}
        )
        assert (status, counted) == (202, {"resources": 1, "stacks": 1, "unknown": 0})
        assert [row[0] for row in await run.database.pool.fetch(scheduled)] == [stacks[1]]
        found = await run.engine.observations.report(None, [(one, None) for one in ids])
        assert (found.resources, found.stacks, found.unknown) == (2, 2, 0)
        rows = await run.database.pool.fetch(scheduled)
        assert sorted(row[0] for row in rows) == sorted(stacks)
        finish(things)
        await send_now(run, observer)
        assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_resource_is_observed_as_soon_as_its_operation_has_ended(
    unobserved: Observed, things: Things
) -> None:
    """The row of the operation is removed later."""
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    (known,) = things.objects
    finish(things)
    await send_now(run, observer)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await run.database.pool.fetchval("select count(*) from completion") == 1
    found = await run.engine.observations.report(None, [(known, None)])
    assert (found.resources, found.stacks, found.unknown) == (1, 1, 0)


async def test_a_resource_whose_update_waits_is_not_observed(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    finish(things)
    await send_now(run, observer)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    (known,) = things.objects
    things.objects[known]["state"] = "building"
    await run.update("s", "PUT", template=template({"a": building(things, size=2)}))
    await until_waiting(run, 1)
    found = await run.engine.observations.report(None, [(known, None), ("none", None)])
    assert (found.resources, found.stacks, found.unknown) == (0, 0, 1)
    finish(things)
    await send_now(run, observer)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"


async def test_an_event_during_a_request_has_another_one_sent(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    (known,) = things.objects
    await run.database.pool.execute("update completion_request set next_at = now()")
    async with run.database.connection() as conn:
        claimed = await completions.claim(conn, IDLE)
        assert claimed is not None
        await run.engine.completions.make_due(run.project, [known])
        assert await completions.claim(conn, IDLE) is None
        await completions.end_request(conn, claimed, IDLE, failures=0, sent=True, idle=IDLE)
    assert await observer.send_due() == 1


async def test_an_operation_that_is_added_during_a_request_is_not_forgotten(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    finish(things)
    await run.database.pool.execute("update completion_request set next_at = now()")
    async with run.database.connection() as conn:
        claimed = await completions.claim(conn, IDLE)
        assert claimed is not None
        await run.create("t", {"a": building(things)})
        await until_waiting(run, 2)
        await completions.end_request(conn, claimed, IDLE, failures=0, sent=True, idle=IDLE)
    finish(things)
    await send_now(run, observer)
    for name in ("s", "t"):
        assert await run.until_ended(name) == "CREATE_COMPLETE"


async def test_two_observers_send_a_request_once(unobserved: Observed, things: Things) -> None:
    run, observer = unobserved
    await run.create("s", {f"r{number}": building(things) for number in range(PAGE)})
    await until_waiting(run, PAGE)
    finish(things)
    things.requests.clear()
    await run.database.pool.execute("update completion_request set next_at = now()")
    counts = await asyncio.gather(observer.send_due(), observer.send_due(), observer.send_due())
    assert sum(counts) == 1 and things.requests == {"list": 1}
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_two_observers_that_find_the_same_object_complete_it_once(
    unobserved: Observed, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was stopped longer than its lease, and continues when another has sent the request."""
    run, observer = unobserved
    await run.create("s", {name: building(things) for name in "abc"})
    await until_waiting(run, 3)
    finish(things)
    stopped, go = asyncio.Event(), asyncio.Event()
    complete = completions.complete

    async def halted(conn: Any, project: str, found: Any) -> None:
        monkeypatch.setattr(completions, "complete", complete)
        stopped.set()
        await go.wait()
        await complete(conn, project, found)

    monkeypatch.setattr(completions, "complete", halted)
    first = asyncio.create_task(send_now(run, observer))
    async with asyncio.timeout(60):
        await stopped.wait()
        await send_now(run, observer)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        go.set()
        await first
    assert await completed(run) == Counter("abc")
    assert await states(run) == {"done": 3}


async def test_an_object_that_is_found_before_its_node_waits_is_completed(
    unobserved: Observed, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, observer = unobserved
    wait, seen = StoredCompletions.wait, list[Json]()

    async def wait_and_find(self: StoredCompletions, accepted: AcceptedOperation) -> Json | None:
        found = await wait(self, accepted)
        seen.append(found)
        if found is None:
            finish(things)
            await send_now(run, observer)
        return found

    monkeypatch.setattr(StoredCompletions, "wait", wait_and_find)
    await run.create("s", {"a": building(things)})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert len(seen) == 2 and seen[0] is None and seen[1]["state"] == "ready"


@pytest.mark.parametrize(
    "fault", [429, 503, 404, "{", "{}", '{"things": [{"name": "t1"}]}', '{"things": {"a": 1}}']
)
async def test_an_unusable_answer_completes_nothing_and_is_sent_again_later(
    unobserved: Observed, things: Things, fault: int | str
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    finish(things)
    things.faults = [fault]
    end_pause = "update provider_failure set until = now()"  # a 429 requests one
    for failures in (1, 2, 3):
        await send_now(run, observer)
        await run.database.pool.execute(end_pause)
        counted = await run.database.pool.fetchval("select failures from completion_request")
        assert counted == failures
    assert await states(run) == {"parked": 1}
    things.faults = []
    await send_now(run, observer)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_the_requests_since_the_last_operation_was_added_are_counted(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    sent = "select sent from completion_request"
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    for count in (1, 2):
        await send_now(run, observer)
        assert await run.database.pool.fetchval(sent) == count
    await run.create("t", {"a": building(things)})
    await until_waiting(run, 2)
    assert await run.database.pool.fetchval(sent) == 0


async def test_a_provider_that_is_slow_is_not_waited_for_longer_than_the_limit(
    unobserved: Observed, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    finish(things)
    monkeypatch.setattr(observer, "_timeout", 0.05)
    things.gate = asyncio.Event()
    await send_now(run, observer)
    assert await states(run) == {"parked": 1}
    monkeypatch.setattr(observer, "_timeout", 60)
    things.gate.set()
    await send_now(run, observer)
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_an_object_that_the_list_lacks_waits_until_the_time_limit(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things, timeout=1)})
    await until_waiting(run, 1)
    things.objects.clear()
    await send_now(run, observer)
    assert await run.until_ended("s") == "CREATE_FAILED"
    (found,) = (await run.resources("s")).values()
    assert found["resource_status_reason"] == "the object was not ready within 1 s: unknown"


async def test_without_an_observer_the_object_is_read_at_the_time_limit(
    unobserved: Observed, things: Things
) -> None:
    run, _ = unobserved
    read = {"url": "/things/${id}"}
    await run.create("s", {"a": building(things, timeout=1, read=read)})
    await until_waiting(run, 1)
    finish(things)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert things.requests["read"] == 1 and things.requests["list"] == 0


async def test_a_cancelled_operation_ends_at_once_and_is_forgotten(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    await run.act("s", "cancel_without_rollback")
    assert await run.until_ended("s") == "CREATE_FAILED"

    async def failed() -> bool:
        return bool((await states(run))["failed"])

    await eventually(failed)
    finish(things)
    await send_now(run, observer)
    assert await run.database.pool.fetch("select from completion") == []
    assert (await run.resources("s"))["a"]["resource_status"] == "CREATE_FAILED"


async def test_a_stack_that_times_out_ends_its_operations(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)}, timeout_mins=1, disable_rollback=True)
    await until_waiting(run, 1)
    await run.database.pool.execute(
        "update traversal set time_limit = '1ms', wake_at = now(); notify headgate_work"
    )
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert (await run.stack("s"))["stack_status_reason"].endswith("Timed out")

    async def failed() -> bool:
        return bool((await states(run))["failed"])

    await eventually(failed)
    await send_now(run, observer)
    assert await run.database.pool.fetch("select from completion") == []


async def test_a_delete_ends_operations_that_wait(unobserved: Observed, things: Things) -> None:
    run, _ = unobserved
    await run.create("s", {name: building(things) for name in "ab"})
    await until_waiting(run, 2)
    await run.call("DELETE", f"/stacks/s/{(await run.stack('s'))['id']}")
    await until_deleted(run, "s")
    assert things.objects == {}


async def test_an_update_waits_for_the_operation_that_it_supersedes(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    await run.create("s", {"a": building(things)})
    await until_waiting(run, 1)
    changed = template({"a": building(things, size=2, state="building")})
    await run.update("s", "PUT", template=changed)
    assert things.requests["update"] == 0
    finish(things)
    await send_now(run, observer)  # completes the create, after which the update begins

    async def updating() -> bool:
        return things.requests["update"] == 1 and await run.database.pool.fetchval(WAITING) == 1

    await eventually(updating)
    (found,) = things.objects.values()
    assert found["state"] == "building" and found["size"] == 2
    finish(things)
    await send_now(run, observer)
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert things.requests["create"] == 1
    assert await completed(run) == {"a": 2}


async def test_a_hook_after_the_operation_opens_when_the_observer_completes_it(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    hooks = [{"at": "a", "on": "post-create", "timeout": "1h"}]
    body = {"a": building(things), "b": {**thing(things), "depends_on": "a"}}
    await run.create("s", body, environment={"hooks": hooks})
    await until_waiting(run, 1)
    assert await run.database.pool.fetch("select from hook") == []
    finish(things)
    await send_now(run, observer)
    (hook,) = await run.waiting_hooks("s")
    assert hook["point"] == "post-create" and things.requests["create"] == 1
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert await completed(run) == {"a": 1, "b": 1}


async def test_objects_with_other_lists_and_projects_have_requests_of_their_own(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    other = Program(run.session, run.url, "other")
    plain = building(things)
    headers = building(things, headers={"X-Region": "west"})
    await run.create("s", {"a": plain, "b": headers})
    await other.create("s", {"a": plain})
    await until_waiting(run, 3)
    assert await run.database.pool.fetchval("select count(*) from completion_request") == 3
    finish(things)
    things.requests.clear()
    await send_now(run, observer)
    assert things.requests == {"list": 3}
    assert await run.until_ended("s") == await other.until_ended("s") == "CREATE_COMPLETE"


async def test_secrets_of_waiting_operations_are_stored_encrypted(
    unobserved: Observed, things: Things
) -> None:
    run, observer = unobserved
    token = {"X-Token": "very secret words"}
    await run.create("s", {"a": building(things, headers=token)})
    await until_waiting(run, 1)
    finish(things)
    await send_now(run, observer)
    stored = str(
        await run.database.pool.fetch("select definition::text, result::text from completion")
    )
    assert "secret" not in stored and "10.0.0" not in stored
    assert await run.until_ended("s") == "CREATE_COMPLETE"


async def test_a_wait_that_cannot_be_stored_fails_alone(
    unobserved: Observed, things: Things
) -> None:
    run, _ = unobserved

    def accepted(key: int, object_id: str) -> AcceptedOperation:
        stack_id: Any = UUID(int=1)
        return AcceptedOperation(
            "p", stack_id, UUID(int=key), "Headgate::HTTP", "k", object_id, {}, 1
        )

    wait = run.engine.completions.wait
    found = await asyncio.gather(
        wait(accepted(1, "a")), wait(accepted(2, "\0")), wait(accepted(3, "c")),
        return_exceptions=True,
    )  # fmt: skip
    assert found[0] is None and found[2] is None and isinstance(found[1], Exception)
    rows = await run.database.pool.fetch("select object_id from completion order by 1")
    assert [row["object_id"] for row in rows] == ["a", "c"]
