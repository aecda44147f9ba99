"""Cells: databases with their own engines, which API processes serve behind one address."""

import urllib.request
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from engine.cells import CellPlacement
from engine.errors import Conflict, Invalid, Unavailable
from engine.store.database import open_database
from engine.store.maintenance.processes import register
from engine.store.projects.cells import add_project, announce, has_project, identify_cell
from engine.types.software import deployed_server
from hub.checks.doctor import run_checks
from hub.program.loops import make_process
from hub.program.server_processes import serve
from tests.support.cells import (
    api_of,
    cell,
    cells_settings,
    engine_of,
    of_project,
    projects_of,
    url_of,
)
from tests.support.keys import KEYRING, key_file
from tests.support.pooler import pooled
from tests.support.ports import free_port
from tests.support.program import ServerProcess, eventually, program, resource
from tests.support.receiver import Receiver, running_receiver, until
from tests.support.replication import PostgresNode

METADATA = deployed_server.PATH
KEY = deployed_server.access_key(uuid4(), uuid4())
HOOKED = {"web": resource(hooks=[{"on": "pre-create"}])}


async def names(http: Any, path: str) -> list[str]:
    status, document = await http.call("GET", path)
    assert status == 200, document
    return [one["stack_name"] for one in document["stacks"]]


async def test_each_project_is_in_its_cell(urls: list[str]) -> None:
    in_a, in_b = (of[0] for of in projects_of("ab").values())
    async with (
        engine_of(urls[0]),
        engine_of(urls[1]),
        api_of([cell("a", urls[0]), cell("b", urls[1])]) as http,
    ):
        first, second = of_project(http, in_a), of_project(http, in_b)
        await first.create("s", {"web": resource()})
        await second.create("s", {"web": resource()})
        assert await first.until_ended("s") == "CREATE_COMPLETE"
        assert await second.until_ended("s") == "CREATE_COMPLETE"
    async with program(urls[2]) as other:  # an ordinary server cannot be one of a cell
        assert (await other.call("GET", "/stacks"))[0] == 200
    with pytest.raises(Conflict, match='the database is the cell "a", and this process has the'):
        async with program(urls[0]):
            pass


async def test_projects_stay_in_their_cell_when_another_is_added(urls: list[str]) -> None:
    """Of the projects that the new cell would get, those that exist stay, and new ones go there."""
    in_c = projects_of("abc", 2)["c"]
    two = [cell("a", urls[0]), cell("b", urls[1])]
    async with api_of(two) as before:
        await of_project(before, in_c[0]).create("old", {})
        async with api_of([*two, cell("c", urls[2])], revision=2) as http:
            await eventually(lambda: _creates(of_project(http, in_c[1])))
            assert await names(of_project(http, in_c[0]), "/stacks") == ["old"]
            assert await names(of_project(http, in_c[1]), "/stacks") == ["s"]
            # It is not empty for a process that does not know its cell.
            status, refused = await of_project(before, in_c[1]).call("GET", "/stacks")
            assert status == 503, refused
            assert 'the cell "c" is not available' in refused["error"]["message"]
            # The process with the earlier settings could put a new project into another cell.
            status, refused = await of_project(before, "unheard-of").call(
                "POST", "/stacks", {"stack_name": "s", "template": {}}
            )
            assert status == 503, refused
            assert "revision 1 of [cells], and the cells have 2" in refused["error"]["message"]
            assert await names(of_project(before, in_c[0]), "/stacks") == ["old"]
        async with api_of(two) as restarted:
            assert await names(of_project(restarted, in_c[0]), "/stacks") == ["old"]


async def test_a_revision_is_announced_after_projects_of_the_one_before(urls: list[str]) -> None:
    """A process that adds a project excludes the announcement, and is refused after it."""
    first = CellPlacement(1, ("a",), ("a",), {})
    database = await open_database(urls[0])
    try:
        async with database.connection() as conn:
            await identify_cell(conn, "a", uuid4(), first)
            await announce(conn, 1)
            await add_project(conn, "p", 1)
        async with database.transaction() as adding:
            await add_project(adding, "q", 1)
            with pytest.raises(Unavailable, match="lock timeout"):
                async with database.transaction(lock_wait=timedelta(milliseconds=50)) as conn:
                    await announce(conn, 2)
        async with database.connection() as conn:
            await announce(conn, 2)
            with pytest.raises(Unavailable, match=r"revision 1 of \[cells\], and the cells have 2"):
                await add_project(conn, "r", 1)
            found = [await has_project(conn, one) for one in "pqr"]
            assert found == [True, True, False]
    finally:
        await database.close()


async def test_an_existing_database_becomes_the_first_cell(urls: list[str]) -> None:
    projects = projects_of("ab", 2)
    async with program(urls[0]) as single:
        for project in (*projects["a"], *projects["b"]):
            await of_project(single, project).create("s", {})
    two = [cell("a", urls[0]), cell("b", urls[1])]
    with pytest.raises(Conflict, match='the cell "a" has projects of other cells, 2 in all'):
        async with api_of(two):
            pass
    async with api_of(two[:1]):
        pass
    async with api_of(two, revision=2) as http:
        for project in (*projects["a"], *projects["b"]):
            assert await names(of_project(http, project), "/stacks") == ["s"]


async def test_a_database_with_an_api_of_its_own_becomes_no_cell(urls: list[str]) -> None:
    """That process would create projects of other cells."""
    one = [cell("a", urls[0])]
    async with program(urls[0]) as single:
        with pytest.raises(Conflict, match=r"has the role api without \[cells\]") as raised:
            async with api_of(one):
                pass
        assert raised.value.finding.place == '[cells] databases "a" url'
        assert raised.value.code == "ApiWithoutCells"
        await single.create("s", {})
    async with api_of(one), api_of(one) as http:  # also beside another process with [cells]
        assert await names(of_project(http, single.project), "/stacks") == ["s"]


async def test_a_database_becomes_a_cell_after_processes_that_are_registering(
    urls: list[str],
) -> None:
    placement = CellPlacement(1, ("a",), ("a",), {})
    database = await open_database(urls[0])
    try:
        async with database.transaction() as registering:
            await register(registering, make_process(frozenset({"api"}), KEYRING))
            with pytest.raises(Unavailable, match="lock timeout"):
                async with database.transaction(lock_wait=timedelta(milliseconds=50)) as conn:
                    await identify_cell(conn, "a", uuid4(), placement)
        async with database.connection() as conn:
            with pytest.raises(Conflict, match=r"has the role api without \[cells\]"):
                await identify_cell(conn, "a", uuid4(), placement)
    finally:
        await database.close()


async def test_lists_of_all_projects_merge_the_pages_of_the_cells(urls: list[str]) -> None:
    projects = projects_of("ab")
    async with api_of([cell("a", urls[0]), cell("b", urls[1])]) as http:
        created = []
        for number in range(7):
            project = projects["a" if number % 3 else "b"][0]
            await of_project(http, project).create(f"s{number}", {})
            created.append(f"s{number}")
        listed: list[str] = []
        path = "/stacks?global_tenant=true&limit=2&with_count=true"
        while path:
            _, page = await http.call("GET", path)
            assert page["count"] == 7
            assert "warnings" not in page
            listed += [one["stack_name"] for one in page["stacks"]]
            last = page["stacks"][-1]["id"] if page["stacks"] else None
            path = (
                f"/stacks?global_tenant=true&limit=2&with_count=true&marker={last}" if last else ""
            )
            if len(page["stacks"]) < 2:
                break
        assert listed == created[::-1]
        oldest = await names(http, "/stacks?global_tenant=true&sort_dir=asc&limit=3")
        assert oldest == created[:3]
        status, refused = await http.call("GET", "/stacks?global_tenant=true&sort_keys=stack_name")
        assert status == 400
        assert "sorted by creation_time only" in refused["error"]["message"]
        assert (await http.call("GET", "/software_configs?global_tenant=true"))[0] == 400


async def test_a_killed_cell_makes_only_its_projects_unavailable(
    urls: list[str], node: PostgresNode
) -> None:
    in_a, in_b = (of[0] for of in projects_of("ab").values())
    databases = [cell("a", urls[0]), cell("b", url_of(node))]
    async with api_of(databases) as http:
        first, second = of_project(http, in_a), of_project(http, in_b)
        await first.create("one", {})
        await second.create("two", {})
        node.kill()
        for _ in range(2):  # as soon as the connection is lost, and later
            async with http.session.get(f"{http.url}/v1/{in_b}/stacks") as answer:
                assert answer.status == 503
                assert answer.headers["Retry-After"]
            assert await names(first, "/stacks") == ["one"]
        await first.create("three", {})
        status, page = await first.call("GET", "/stacks?global_tenant=true")
        assert status == 200, page
        assert [one["stack_name"] for one in page["stacks"]] == ["three", "one"]
        assert page["warnings"][0]["code"] == "CellUnavailable"
        assert "not available: b" in page["warnings"][0]["message"]
        assert (await http.call("GET", "//readyz"))[0] == 200
        await node.start()
        await eventually(lambda: _succeeds(second))
        assert await names(second, "/stacks?global_tenant=true") == ["three", "two", "one"]


async def test_the_state_of_a_cell_follows_its_database(
    urls: list[str], node: PostgresNode
) -> None:
    """In the metric, the log, the errors and the readiness."""
    in_b = projects_of("ab")["b"][0]

    async def is_up(state: str) -> bool:
        _, text = await http.call("GET", "//metrics")
        return f'headgate_cell_up{{cell="b"}} {state}' in text

    async with api_of([cell("a", urls[0]), cell("b", url_of(node))]) as http:
        second = of_project(http, in_b)
        await second.create("s", {})
        assert await is_up("1.0")
        with capture_logs() as logs:
            node.kill()
            for _ in range(2):  # with the connection that is lost, and later
                status, refused = await second.call("GET", "/stacks")
                assert (status, refused["error"]["type"]) == (503, "CellUnavailable")
                assert 'the cell "b" is not available' in refused["error"]["message"]
                await eventually(lambda: is_up("0.0"))
            await node.start()
            await eventually(lambda: is_up("1.0"))
            assert await names(second, "/stacks") == ["s"]
        changes = [one for one in logs if one["event"].startswith("cell.")]
        assert [one["event"] for one in changes] == ["cell.unavailable", "cell.available"]
        assert '[cells] databases "b" url' in changes[0]["reason"]


async def test_a_cell_works_through_its_pooler(urls: list[str]) -> None:
    """Each transaction gets another server process. Without the pooler, the projects of the cell
    are not served, and those of others are."""
    in_a, in_b = (of[0] for of in projects_of("ab").values())
    async with AsyncExitStack() as stack:
        pooler = await stack.enter_async_context(AsyncExitStack())
        url = await pooler.enter_async_context(pooled(urls[1], "transaction", round_robin=True))
        await stack.enter_async_context(engine_of(urls[1], **{"database.pooler_url": url}))
        cells = [cell("a", urls[0]), cell("b", urls[1], pooler_url=url)]
        http = await stack.enter_async_context(api_of(cells))
        first, second = of_project(http, in_a), of_project(http, in_b)
        await second.create("s", HOOKED)
        (hook,) = await second.waiting_hooks("s")
        await second.signal(hook)
        assert await second.until_ended("s") == "CREATE_COMPLETE"
        await pooler.aclose()

        async def is_refused() -> bool:
            status, _ = await second.call("GET", "/stacks")
            return bool(status == 503)

        await eventually(is_refused)
        assert await _succeeds(first)


async def test_a_cell_with_the_pooler_of_another_database_is_away(urls: list[str]) -> None:
    with capture_logs() as logs:
        async with (
            pooled(urls[2], "transaction") as url,
            api_of([cell("a", urls[0]), cell("b", urls[1], pooler_url=url)]),
        ):
            pass
    (away,) = [one["reason"] for one in logs if one["event"] == "cell.unavailable"]
    assert away.startswith(
        '[cells] databases "b" pooler_url: the connection pooler leads to another'
    )


async def _succeeds(http: Any) -> bool:
    return bool((await http.call("GET", "/stacks"))[0] == 200)


async def test_a_process_starts_without_a_cell(urls: list[str], node: PostgresNode) -> None:
    """Also projects that it does not know are served, unless they can be in the cell that is
    away."""
    projects = projects_of("ab", 2)
    databases = [cell("a", urls[0]), cell("b", url_of(node))]
    async with api_of(databases) as http:
        await of_project(http, projects["a"][0]).create("one", {})
    node.kill()
    async with api_of(databases) as http:
        assert (await http.call("GET", "//readyz"))[0] == 200
        _, text = await http.call("GET", "//metrics")
        assert 'headgate_cell_up{cell="a"} 1.0' in text
        assert 'headgate_cell_up{cell="b"} 0.0' in text
        assert await names(of_project(http, projects["a"][0]), "/stacks") == ["one"]
        await of_project(http, projects["a"][1]).create("two", {})
        status, refused = await of_project(http, projects["b"][0]).call("GET", "/stacks")
        assert status == 503
        assert 'the cell "b" is not available' in refused["error"]["message"]
        await node.start()
        second = of_project(http, projects["b"][0])
        await eventually(lambda: _succeeds(second))
        await second.create("three", {})


async def test_a_new_revision_waits_for_all_cells(urls: list[str], node: PostgresNode) -> None:
    """Until then, existing projects are served, and no project is added."""
    two = [cell("a", urls[0]), cell("b", url_of(node))]
    old = projects_of("ab")["a"][0]
    in_c = projects_of("abc")["c"][0]
    async with api_of(two) as http:
        await of_project(http, old).create("s", {})
    node.kill()
    async with api_of([*two, cell("c", urls[2])], revision=2) as http:
        assert await names(of_project(http, old), "/stacks") == ["s"]
        await of_project(http, old).create("t", {})
        status, refused = await of_project(http, in_c).call(
            "POST", "/stacks", {"stack_name": "s", "template": {}}
        )
        assert status == 503, refused
        await node.start()
        await eventually(lambda: _creates(of_project(http, in_c)))


async def _creates(http: Any) -> bool:
    body = {"stack_name": "s", "template": {"heat_template_version": "2018-08-31"}}
    return bool((await http.call("POST", "/stacks", body))[0] == 201)


async def test_tokens_of_hooks_and_signals_are_those_of_any_cell(urls: list[str]) -> None:
    """Their URLs have no project."""
    in_b = projects_of("ab")["b"][0]
    async with (
        api_of([cell("a", urls[0]), cell("b", urls[1])]) as http,
        engine_of(urls[0], http.url),
        engine_of(urls[1], http.url),
    ):
        of_b = of_project(http, in_b)
        resources = {
            "handle": {"type": "OS::Heat::WaitConditionHandle"},
            "wait": {
                "type": "OS::Heat::WaitCondition",
                "properties": {"handle": {"get_resource": "handle"}, "timeout": 60},
            },
        }
        outputs = {"url": {"value": {"get_attr": ["handle", "endpoint"]}},
                   "token": {"value": {"get_attr": ["handle", "token"]}}}  # fmt: skip
        template = {"heat_template_version": "2018-08-31", "resources": resources,
                    "outputs": outputs}  # fmt: skip
        status, _ = await of_b.call("POST", "/stacks", {"stack_name": "s", "template": template})
        assert status == 201

        async def address() -> dict[str, str] | None:
            found = {
                one["output_key"]: one["output_value"] for one in (await of_b.stack("s"))["outputs"]
            }
            return found if found.get("url") and found.get("token") else None

        known = await eventually(address)
        wrong = {"Authorization": "Bearer wrong"}
        async with http.session.post(known["url"], json={}, headers=wrong) as answer:
            assert answer.status == 401
        right = {"Authorization": f"Bearer {known['token']}"}
        async with http.session.post(known["url"], json={}, headers=right) as answer:
            assert answer.status == 200, await answer.text()
        assert await of_b.until_ended("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    ("method", "path", "wrong", "malformed"),
    [
        (
            "POST", "//hooks/{id}/signal", {"Authorization": "Bearer x"},
            [("//hooks/x/signal", {"Authorization": "Bearer x"}), ("//hooks/{id}/signal", {})],
        ),
        (
            "POST", "//signals/{id}/{id}", {"Authorization": "Bearer x"},
            [("//signals/x/{id}", {"Authorization": "Bearer x"}),
             ("//signals/{id}/{id}", {})],
        ),
        (
            "GET", f"/{METADATA}?AWSAccessKeyId={KEY}&Signature=x", {},
            [(f"/{METADATA}?AWSAccessKeyId=x&Signature=x", {}),
             (f"/{METADATA}?AWSAccessKeyId={KEY}", {})],
        ),
    ],
    ids=["hook", "signal", "metadata"],
)  # fmt: skip
async def test_a_malformed_token_is_refused_while_a_cell_is_away(
    urls: list[str], method: str, path: str, wrong: Any, malformed: Any
) -> None:
    """A wrong one could be of the cell that is away."""
    away = f"postgresql://127.0.0.1:{free_port()}/x"
    async with api_of([cell("a", urls[0]), cell("b", away)]) as http:

        async def status(path: str, headers: Any) -> int:
            call = http.call(method, path.format(id=uuid4()), headers=headers)
            return (await call)[0]

        assert await status(path, wrong) == 503
        assert [await status(*one) for one in malformed] == [401, 401]


async def test_hooks_are_answered_in_their_cell(urls: list[str]) -> None:
    """With the role of the caller, and with the token in the notification of any cell."""
    projects = projects_of("ab")
    async with (
        running_receiver() as receiver,
        api_of([cell("a", urls[0]), cell("b", urls[1])]) as http,
        engine_of(urls[0], http.url),
        engine_of(urls[1], http.url),
    ):
        for name in "ab":
            client = of_project(http, projects[name][0])
            target = {
                "channel": "webhook",
                "target": receiver.url,
                "events": ["headgate.hook.waiting"],
            }
            status, answer = await client.call("POST", "/subscriptions", target)
            assert status == 201, answer
            await client.create("s", HOOKED)
            (hook,) = await client.waiting_hooks("s")
            assert (await client.signal(hook))[0] == 200
            assert await client.until_ended("s") == "CREATE_COMPLETE"
            await client.create("t", HOOKED)
            (hook,) = await client.waiting_hooks("t")
            sent = await until(partial(_notification, receiver, hook["id"]))
            url, token = sent["signal_url"], sent["token"]
            for used, expected in (("x" * len(token), 401), (token, 200)):
                headers = {"Authorization": f"Bearer {used}"}
                async with http.session.post(
                    url, json={"decision": "continue"}, headers=headers
                ) as response:
                    assert response.status == expected, await response.text()
            assert await client.until_ended("t") == "CREATE_COMPLETE"


async def test_a_browser_signs_in_to_all_cells(urls: list[str]) -> None:
    """Until it signs out, with a project of any cell."""
    in_a, in_b = (of[0] for of in projects_of("ab").values())
    async with api_of([cell("a", urls[0]), cell("b", urls[1])]) as http:
        first, second = of_project(http, in_a), of_project(http, in_b)
        headers = {"X-Auth-User": "ada", "Origin": http.url}
        async with http.session.post(
            f"{http.url}/v1/{in_a}/session", json={"user": "ada", "password": "x"}, headers=headers
        ) as answer:
            assert answer.status < 300, await answer.text()
            cookie = answer.cookies["headgate_session"].value
        sent = {"Cookie": f"headgate_session={cookie}"}
        _, found = await second.call("GET", "/session", headers=sent)
        assert found["name"] == "ada"
        token = {**sent, "X-CSRF-Token": found["csrf"] or "", "Origin": http.url}
        assert (await second.call("DELETE", "/session", headers=token))[0] < 300
        _, found = await first.call("GET", "/session", headers=sent)
        assert found["name"] == "anonymous"


def _notification(receiver: Receiver, hook_id: str) -> Any:
    """The data of the event of a hook."""
    data = [one["data"] for one in receiver.events]
    return next((one for one in data if one["hook"]["id"] == hook_id), None)


async def test_doctor_checks_each_cell(urls: list[str]) -> None:
    databases = [cell("a", urls[0]), cell("b", urls[1])]

    async def results(**more: Any) -> dict[str, tuple[str, str]]:
        found = await run_checks(cells_settings(databases, **more), None)
        return {one.check: (one.state, one.reason) for one in found}

    assert "is no cell yet" in (await results())["b: cell"][1]
    async with api_of(databases):
        pass
    assert (await results())["a: cell"][0] == "ok"
    state, reason = (await results(revision=2))["a: cell"]
    assert state == "warning"
    assert "have not agreed to revision 2" in reason
    databases.reverse()
    databases[0]["name"], databases[1]["name"] = "a", "b"
    state, reason = (await results())["a: cell"]
    assert (state, reason) == ("error", 'the database is that of the cell "b"')


def test_processes_with_cells_have_the_role_api_only(
    urls: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = cells_settings([cell("a", urls[0])])
    assert serve(settings) == 1
    assert "a process with [cells] has the role api only" in capfd.readouterr().err


def test_two_processes_serve_the_cells_of_one_port(urls: list[str], tmp_path: Path) -> None:
    """Real processes, which stop in order."""
    cells = f'[[cells.databases]]\nname = "a"\nurl = "{urls[0]}"\n'
    key = f'[credentials]\nkey_file = "{key_file()}"\n'
    server = ServerProcess(tmp_path, settings=cells + key, roles=["api"], processes=2)
    server.start()
    try:
        with urllib.request.urlopen(f"{server.url}/v1/p/stacks", timeout=10) as answer:
            assert answer.status == 200
    finally:
        assert server.stop() == 0
    assert '"database":"cells"' in server.log.read_text()


@pytest.mark.parametrize(
    ("databases", "reason"),
    [
        ([cell("a", "postgresql://x/a"), cell("a", "postgresql://x/b")], '"a" is used twice'),
        (
            [cell("a", "postgresql://x/a"), cell("b", "postgresql://x/a")],
            'is also the database of the cell "a"',
        ),
        (
            [
                cell("a", "postgresql://x/a", projects=["p"]),
                cell("b", "postgresql://x/b", projects=["p"]),
            ],
            '"p" is also in the cell "a"',
        ),
        ([cell("a", "")], "a cell has no embedded database"),
        ([cell("A b", "postgresql://x/a")], "name"),
    ],
)
def test_contradicting_settings_are_refused(databases: Any, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        cells_settings(databases)


async def test_two_cells_have_two_databases(urls: list[str]) -> None:
    """Also if their URLs differ."""
    async with api_of([cell("a", urls[0])]):
        pass
    other_url = f"{urls[0]}&application_name=b"
    with pytest.raises(Conflict, match='the cell "b" is that of the cell "a"'):
        async with api_of([cell("a", urls[0]), cell("b", other_url)], revision=2):
            pass
    with pytest.raises(Conflict, match="Give each cell its own database"):
        async with api_of([cell("b", urls[0])]):
            pass


async def test_settings_that_contradict_earlier_ones_are_refused(urls: list[str]) -> None:
    two = [cell("a", urls[0]), cell("b", urls[1])]
    async with api_of(two):
        pass
    with pytest.raises(Conflict, match=r"revision 1 of \[cells\] differs"):
        async with api_of(two, hashing=False):
            pass
    with pytest.raises(Conflict, match=r"\[cells\] lacks b of an earlier revision"):
        async with api_of(two[:1], revision=2):
            pass


async def test_a_project_in_no_cell_is_refused(urls: list[str]) -> None:
    databases = [cell("a", urls[0], projects=["known"])]
    async with api_of(databases, hashing=False) as http:
        await of_project(http, "known").create("s", {})
        status, refused = await of_project(http, "unknown").call("GET", "/hooks")
        assert (status, refused["error"]["type"]) == (404, "ProjectInNoCell")
        assert refused["error"]["place"] == "path"
        assert "[[cells.databases]]" in refused["error"]["remedy"]
