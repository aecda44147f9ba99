"""The plan of a converge: what it covers, and what the converge could not observe."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio

from tests.support import forks
from tests.support.changes import expect_error, observed
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.program import Json, Program


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


def alone(things: Things, **more: Json) -> Json:
    return thing(things, listed=False, **more)


def nested(things: Things) -> Json:
    group = {"count": 1, "resource_def": alone(things)}
    return {"type": "OS::Heat::ResourceGroup", "properties": group}


async def created(run: Program, resources: Json) -> None:
    await run.create("s", resources)
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")


async def read_plan(run: Program, query: str = "") -> Json:
    return await run.stack_request("GET", "s", f"/drift/plan{query}")


async def command(run: Program, *arguments: str, code: int = 0) -> tuple[str, str]:
    """Return what a command prints, and its messages, each in one line."""
    words = (*arguments, "--url", run.url, "--project", run.project)
    done = await asyncio.to_thread(forks.run, words, {**os.environ, "HEADGATE_ROLES": ""})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, " ".join(done.stderr.split())


def only_object(things: Things) -> Json:
    (one,) = things.objects.values()
    return one


async def ids(run: Program) -> list[str]:
    """The physical IDs, in the order of the names."""
    found = await run.resources("s")
    return [found[name]["physical_resource_id"] for name in sorted(found)]


async def converge_by(run: Program, digest: str) -> Json:
    """Converge with the digest of a plan; return the error, or None."""
    path = f"/stacks/s/{(await run.stack('s'))['id']}/actions"
    status, document = await run.call("POST", path, {"converge": {"plan_digest": digest}})
    return None if status == 200 else document["error"]["type"]


@pytest.mark.parametrize("kind", ["root", "nested"])
async def test_a_digest_covers_the_differences_that_the_converge_repairs(
    run: Program, things: Things, kind: str
) -> None:
    await created(run, {"a": alone(things) if kind == "root" else nested(things)})
    found = dict[int, str]()
    for size in (5, 6, 5):
        only_object(things)["size"] = size
        await observed(run)
        digest = (await read_plan(run))["plan_digest"]
        assert found.setdefault(size, digest) == digest
    assert len(set(found.values())) == 2
    # Another difference is not the one that was seen, and is not repaired.
    only_object(things)["size"] = 7
    before = (await run.resources("s"))["a"]["updated_time"]
    assert await converge_by(run, found[5]) == "PlanChanged"
    assert only_object(things)["size"] == 7
    resource = (await run.resources("s"))["a"]
    assert (resource["updated_time"], resource["resource_status"]) == (
        before, "CREATE_COMPLETE",
    )  # fmt: skip
    assert await converge_by(run, (await read_plan(run))["plan_digest"]) is None
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert only_object(things)["size"] == 1


async def test_a_digest_covers_values_that_are_not_shown(run: Program, things: Things) -> None:
    more = {"attributes": {"size": "$.size"}, "hidden": ["size"]}
    await created(run, {"a": alone(things, **more)})
    digests = set()
    for size in ("s3cret-of-one", "s3cret-of-two"):
        only_object(things)["size"] = size
        drift = await observed(run)
        assert "s3cret" not in json.dumps(drift)
        digests.add((await read_plan(run))["plan_digest"])
    assert len(digests) == 2
    assert await converge_by(run, digests.pop()) in (None, "PlanChanged")


async def test_a_digest_covers_the_state_and_no_text_or_time(run: Program, things: Things) -> None:
    more = {"ready": {"path": "$.state", "values": ["ready"], "failed": ["broken", "worse"]}}
    await created(run, {"a": alone(things, **more), "b": alone(things)})
    first, second = [things.objects[one] for one in await ids(run)]
    first["state"] = "broken"
    await observed(run)
    digest = (await read_plan(run))["plan_digest"]
    # The reason is another one, and so are the times.
    first["state"] = "worse"
    (drift,) = (await observed(run))["resources"]
    assert "worse" in drift["reason"]
    assert (await read_plan(run))["plan_digest"] == digest
    second["size"] = 5
    await observed(run)
    assert (await read_plan(run, "?only=a"))["plan_digest"] == digest  # repairs the same
    assert (await read_plan(run))["plan_digest"] != digest
    second["size"] = 1
    first |= {"state": "ready", "size": 5}
    await observed(run)
    assert (await read_plan(run))["plan_digest"] != digest


@pytest.mark.parametrize("known", [True, False], ids=["known drift", "no known drift"])
@pytest.mark.parametrize("kind", ["root", "nested"])
async def test_a_plan_lists_what_cannot_be_observed(
    run: Program, things: Things, kind: str, known: bool
) -> None:
    await created(run, {"a": alone(things) if kind == "root" else nested(things)})
    if known:
        only_object(things)["size"] = 5
        await observed(run)
        assert (await read_plan(run))["unknown_states"] == []
    things.faults = [503]
    await observed(run)
    plan = await read_plan(run)
    path = "a" if kind == "root" else "a/0"
    (found,) = plan["unknown_states"]
    assert (found["path"], found["resource_type"]) == (path, "Headgate::HTTP")
    assert (found["resource_name"], found["last_known_state"]) == (
        path.rpartition("/")[2], "changed" if known else None,
    )  # fmt: skip
    assert "503" in found["reason"] and found["since"]
    assert {one["kind"] for one in kinds(plan)} == {"unchanged"}
    text, _ = await command(run, "stack", "converge", "s", "--dry-run")
    shown = f"{path} (last known: changed)" if known else path
    assert f"Not repaired, because the state is unknown: {shown}: read: the service" in " ".join(
        text.split()
    )
    # An update repairs nothing, and says nothing about observed states.
    preview = await run.stack_request("PATCH", "s", "/preview", {})
    assert preview["unknown_states"] == []


def kinds(plan: Json) -> list[Json]:
    return [
        {"kind": kind, "path": one["path"]}
        for kind, resources in plan["resource_changes"].items()
        for one in resources
    ]


@pytest.mark.parametrize(
    "words",
    [("stack", "converge", "s", "--yes"), ("stack", "update", "s", "--existing", "--converge")],
    ids=["converge", "update"],
)
@pytest.mark.parametrize("fault", [503, 429])
async def test_a_converge_that_could_not_observe_fails_with_what_it_has_not_repaired(
    run: Program, things: Things, words: tuple[str, ...], fault: int
) -> None:
    await created(run, {"a": alone(things), "b": thing(things)})
    first = things.objects[(await ids(run))[0]]
    first["size"] = 5
    await observed(run)
    things.faults = [fault]
    _, message = await command(run, *words, "--wait", code=1)
    assert (
        "2 resources were not repaired, because the state is unknown: a (last known: changed), b."
        " `headgate stack drift s` says why" in message
    )
    assert (await run.stack("s"))["stack_status"] == "UPDATE_COMPLETE"
    # Without --wait, the command does not know, and the selection counts.
    await command(run, *words)
    await run.until_ended("s")
    _, message = await command(run, *words, "--wait", "--only", "a", code=1)
    assert "1 resource was not repaired, because the state is unknown: a (last known" in message
    things.faults = []
    await run.database.pool.execute(
        "with requests as (update failed_request set until = now())"
        " update provider_failure set until = now()"
    )
    await command(run, *words, "--wait")
    assert first["size"] == 1


@pytest.mark.parametrize(
    ("body", "place", "reason", "remedy"),
    [
        ({"observe": {"x": 1}}, "observe.x", "is not a known key here", '{"observe": null}'),
        ({"stop": {"x": 1}}, "stop.x", "is not a known key here", '{"stop": null}'),
        ({"observe": True}, "observe", "must be null", '{"observe": null}'),
        ({"converge": {"rounds": 0}}, "converge.rounds", "from 1 to 10", "from 1 to 10"),
        ({"converge": {"rounds": 11}}, "converge.rounds", "from 1 to 10", "from 1 to 10"),
    ],
    ids=str,
)
async def test_options_of_actions_that_do_not_exist_are_refused(
    run: Program, things: Things, body: Json, place: str, reason: str, remedy: str
) -> None:
    await created(run, {"a": alone(things)})
    things.requests.clear()
    status, error = await expect_error(run, "POST", "s", "/actions", body)
    (found,) = error["findings"]
    assert (status, found["place"]) == (400, place), found
    assert reason in found["reason"] and remedy in found["remedy"]
    assert not (await run.stack_request("GET", "s", "/drift"))["observing"]
    # As clients of Heat send them.
    accepted: tuple[Json, ...] = (None, "", {})
    for options in accepted:
        await run.stack_request("POST", "s", "/actions", {"observe": options})


async def test_a_report_about_a_type_that_does_not_exist_fails(
    run: Program, things: Things
) -> None:
    await created(run, {"a": alone(things)})
    words = ("observation", "report", "t1", "--type")
    text, message = await command(run, *words, "Headgate::HTPP", code=1)
    assert "Observing 0 resources" in text
    assert "Headgate::HTPP" in message and "GET " not in message
    assert "Headgate::HTTP" in message or "`headgate type list`" in message
    _, message = await command(run, *words, "Foo::Bar", code=1)
    assert "`headgate type list`" in message, message
    text, message = await command(run, *words, "Headgate::HTTP")
    assert ("Observing 1 resource of 1 stack." in text, message) == (True, "")


async def test_the_command_line_validates_policies(run: Program, things: Things) -> None:
    template = {"heat_template_version": "2018-08-31", "resources": {"a": alone(things)}}
    with TemporaryDirectory() as directory:
        (Path(directory) / "t.yaml").write_text(json.dumps(template))
        (Path(directory) / "e.yaml").write_text("convergence:\n  on_drift: repiar\n")
        words = ("template", "validate", f"{directory}/t.yaml", "-e", f"{directory}/e.yaml")
        _, message = await command(run, *words, code=1)
    assert '"repair"' in message
    assert "e.yaml:2:3: convergence.on_drift" in message


async def test_a_selection_that_excludes_all_that_it_selects_is_refused(
    run: Program, things: Things
) -> None:
    await created(run, {"a": alone(things), "b": alone(things)})
    for selection, selects in (
        ({"only": ["a"], "except": ["a"]}, "`only` selects"),
        ({"only": ["*"], "except": ["a", "b"]}, "`only` selects"),
        ({"except": ["*"]}, "the stack has"),
    ):
        for path, body in (
            ("/actions", {"converge": selection}),
            ("/preview", {"converge": True, **selection}),
            ("", selection),
        ):
            method = "POST" if path == "/actions" else "PATCH"
            status, error = await expect_error(run, method, "s", path, body)
            assert (status, error["findings"][0]["place"]) == (400, "except"), error
            assert selects in error["message"] and "Remove a pattern" in error["message"]
    _, message = await command(
        run, "stack", "converge", "s", "--only", "a", "--except", "a", "--dry-run", code=1
    )
    assert "so nothing is left to change. Remove a pattern." in message
    assert (await run.stack("s"))["stack_status"] == "CREATE_COMPLETE"
