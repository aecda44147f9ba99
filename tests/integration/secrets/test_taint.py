"""Values that are computed from a secret are secret, however they are computed and wherever they
are shown.
"""

import asyncio
import io
import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.store.encryption.secret_values import Scope, decrypt
from engine.types.contract import Call, Done, Outcome, ResourceType
from hub.api.application import all_routes
from hub.api.openapi import plain_path
from hub.api.routes import Route
from hub.log import set_up_logging
from tests.integration.amqp.conftest import AmqpClient, running_client
from tests.support.access import insert_credential
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import Receiver, running_receiver
from tests.support.secret_chains import (
    ARITHMETIC,
    EVERY_SOURCE,
    EXTENDED_LINKS,
    EXTENDED_SOURCES,
    EXTENDED_WRAPS,
    FILES,
    LINKS,
    LOCAL_WRAPS,
    SOURCE_STACK,
    SOURCES,
    WRAPS,
    Chain,
    Step,
    chain_sections,
)
from tests.support.secret_search import SecretSearch, rows_of, wal_since, wal_start

EXAMPLES = 3
PUBLIC = "nothing-secret-here"


class SecretType(ResourceType):
    """Has a secret attribute, one that repeats a hidden property, and a secret in its data alone."""

    schema = TypeSchema(
        "Test::Safe",
        properties={"secret": Property(Kind.STRING, hidden=True, update_allowed=True)},
        attributes={
            "key": Attribute(Kind.STRING, secret=True),
            "echo": Attribute(Kind.STRING),
            "state": Attribute(Kind.STRING, public=True),
        },
    )

    def __init__(self, key: str, session: str) -> None:
        self.key, self.session = key, session

    def create(self, call: Call) -> Outcome:
        data = {"session": self.session}
        return Done(f"id-{call.resource_name}", self._attributes(call), data)

    def check(self, call: Call) -> Outcome:
        """Also reads an entry of `data`."""
        return Done(call.physical_id, self._attributes(call))

    def _attributes(self, call: Call) -> dict[str, Json]:
        return {"key": self.key, "echo": call.properties.get("secret"), "state": "ACTIVE"}

    def delete(self, call: Call) -> Outcome:
        return Done(None)


PARAMETERS: Json = {
    "hidden": {"type": "string", "hidden": True},
    "listed": {"type": "comma_delimited_list", "hidden": True},
    "mapped": {"type": "json", "hidden": True},
    "by_environment": {"type": "string"},
    "property": {"type": "string", "hidden": True},
    "number": {"type": "number", "hidden": True},
}
#: Sections of version 2026-12-01.
EXTENDED: Json = {
    "heat_template_version": "2026-12-01",
    "data": {
        "known": {"type": "Test::Safe", "id": "known-1"},
        "every": {"type": "Test::Safe", "id": "${each.key}-1", "for_each": ["n"]},
    },
    "rules": [
        {
            "assert": {"not": {"equals": [{"get_param": "hidden"}, {"get_param": "property"}]}},
            "message": "The two are equal.",
        }
    ],
}
COMMON: Json = {
    "safe": {"type": "Test::Safe", "properties": {"secret": {"get_param": "property"}}},
    "random": {"type": "OS::Heat::RandomString", "properties": {"length": 40, "salt": "x"}},
    "open": {"type": "OS::Heat::Value", "properties": {"value": PUBLIC}},
    "after_open": {
        "type": "OS::Heat::TestResource",
        "properties": {"value": {"list_join": ["", [
            {"get_attr": ["open", "value"]}, {"get_attr": ["safe", "state"]}]]}},
    },
    # One call with a secret and a value that is known later.
    "mixed": {
        "type": "OS::Heat::TestResource",
        "properties": {
            "value": {"list_join": ["-", [
                {"get_param": "hidden"}, {"get_attr": ["open", "value"]}]]},
            "client_name": "mixed",
        },
    },
    "script": {
        "type": "OS::Heat::SoftwareConfig",
        "properties": {
            "config": {"str_replace": {
                "template": "PW=$x", "params": {"$x": {"get_param": "hidden"}}}},
            "options": {"key": {"get_param": "hidden"}},
            "inputs": [{"name": "given", "description": {"get_param": "hidden"}}],
            "outputs": [{"name": "done", "description": {"get_param": "hidden"}}],
        },
    },
    "deployment": {
        "type": "OS::Heat::SoftwareDeployment",
        "properties": {
            "config": {"get_resource": "script"},
            "server": "web-1",
            "input_values": {"given": {"get_param": "hidden"}},
            "signal_transport": "NO_SIGNAL",
        },
    },
}  # fmt: skip
POINTS = ["pre-create", "post-create", "pre-update"]
#: Hook notifications of every resource except the last ones, in nested stacks and groups, too.
NOTIFYING = {
    "on": POINTS, "at": "*", "mode": "notify",
    "types": sorted({one.type for one in LINKS.values()} - {"OS::Heat::TestResource"}),
}  # fmt: skip
#: Routes that show a stack's own outputs, the metadata of resources, and exports.
ALLOWED = re.compile(r"/outputs/|/resources/[^/]+/metadata$|/export$")
#: Routes that show software configs and deployments, and the roles that see their values.
SOFTWARE, SOFTWARE_ROLES = ("/software_configs", "/software_deployments"), (
    "author", "operator", "admin",
)  # fmt: skip


def body(chains: Sequence[Chain], search: SecretSearch, *, extended: bool = False) -> Json:
    """A request for a stack with the chains. The last resource is also an output. extended: in
    version 2026-12-01, with its sections."""
    made = {f"c{place}": one for place, one in enumerate(chains)}
    resources = dict(COMMON)
    local: dict[str, Json] = {}
    for name, chain in made.items():
        sections = chain_sections(name, chain)
        resources |= sections["resources"]
        local |= sections["locals"]
    added: Json = {**EXTENDED, "locals": local} if extended else {}
    gates = [{"at": f"{name}_gate", "on": ["pre-create", "pre-update"]} for name in made]
    return {
        "template": {
            "heat_template_version": "2021-04-16",
            "parameters": PARAMETERS,
            "conditions": {"always": True},
            "resources": resources,
            "outputs": {name: {"value": {"get_attr": [f"{name}_gate", "output"]}} for name in made},
            **added,
        },
        "environment": {
            "encrypted_param_names": ["by_environment"],
            "hooks": [{"at": "after_open", "on": POINTS, "mode": "notify"}, *gates],
        },
        "parameters": {
            "hidden": search.secrets["parameter"],
            "listed": ["x", search.secrets["item"]],
            "mapped": {"deep": {"k": search.secrets["entry"]}},
            "by_environment": search.secrets["environment"],
            "property": search.secrets["property"],
            "number": int(search.secrets["number"]),
        },
        "files": {name: json.dumps(one) for name, one in FILES.items()},
    }


class SecretHunt:
    """A server with every channel, on which stacks are created and searched for secrets."""

    def __init__(self, run: Program, search: SecretSearch) -> None:
        self.run, self.findings = run, search
        self.tokens: dict[str, str] = {}
        self.stacks = 0

    async def call(self, method: str, path: str, body: Json = None, role: str = "admin") -> Json:
        """The response, which is searched for secrets unless it may contain them."""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"}
        status, response = await self.run.call(method, path, body, headers=headers)
        assert status < 500, response
        if not _may_show_secrets(path, role):
            shown = _without_outputs(response) if method == "GET" else response
            if "/snapshots" in path:
                shown = _without_metadata(shown)
            self.findings.search(f"{method} {path} for {role}", json.dumps(shown))
        return response

    async def until_ended(self, name: str) -> Json:
        """Answer hooks until the stack has ended, and search all outputs meanwhile."""

        async def ended() -> Json:
            stack = (await self.call("GET", f"/stacks/{name}"))["stack"]
            if not stack["stack_status"].endswith("IN_PROGRESS"):
                return stack
            for hook in (await self.call("GET", "/hooks?state=waiting"))["hooks"]:
                at = f"/stacks/{name}/{stack['id']}/resources/{hook['resource_name']}"
                await self.call("GET", f"{at}/inspect")
                await self.call("POST", f"/hooks/{hook['id']}/signal", {"decision": "continue"})
            return None

        return await eventually(ended)

    async def create_source(self) -> None:
        """The stack whose outputs `stack_output` reads."""
        secret = self.findings.secrets["stack output"]
        sent = {"template": SOURCE_STACK, "parameters": {"given": secret}}
        await self.call("POST", "/stacks", {"stack_name": "source", **sent})
        assert (await self.until_ended("source"))["stack_status"] == "CREATE_COMPLETE"

    async def run_stack(
        self, chains: Sequence[Chain], *, whole: bool = False, extended: bool = False
    ) -> str:
        """Create a stack and delete it; return its name. whole: also update and check it.
        extended: as of `body`."""
        self.stacks += 1
        name, sent = f"s{self.stacks}", body(chains, self.findings, extended=extended)
        await self.call("POST", "/stacks/preview", {"stack_name": name, **sent})
        response = await self.call("POST", "/stacks", {"stack_name": name, **sent})
        assert "stack" in response, response
        stack = await self.until_ended(name)
        assert stack["stack_status"] == "CREATE_COMPLETE", stack["stack_status_reason"]
        await self._learn()
        at = f"/stacks/{name}/{stack['id']}"
        await self._check_public_values(name, at)
        if not whole:
            return name
        changed = {"parameters": {"hidden": self.findings.secrets["second"]}}
        await self.call("PATCH", f"{at}/preview", changed)
        await self.call("PATCH", at, changed)
        stack = await self.until_ended(name)
        assert stack["stack_status"] == "UPDATE_COMPLETE", stack["stack_status_reason"]
        await self.call("POST", f"{at}/actions", {"check": None})
        await self.until_ended(name)
        return name

    async def snapshot(self, name: str) -> None:
        """Take a snapshot of a stack without nested stacks."""
        stack = (await self.call("GET", f"/stacks/{name}"))["stack"]
        await self.call("POST", f"/stacks/{name}/{stack['id']}/snapshots", {"name": "kept"})
        assert (await self.until_ended(name))["stack_status"] == "SNAPSHOT_COMPLETE"

    async def _learn(self) -> None:
        """Values of RandomString are secret, too."""
        async with self.run.database.connection() as conn:
            rows = await conn.fetch(
                "select stack_id, id, attributes from resource"
                " where type = 'OS::Heat::RandomString'"
            )
        for row in rows:
            scope = Scope("p", row["stack_id"], "resource.attributes")
            made = decrypt(row["attributes"], scope)
            self.findings.new_secret(f"random {row['id']}", made["value"])

    async def _check_public_values(self, name: str, at: str) -> None:
        """Values that depend on no secret are still shown."""
        hooks = (await self.call("GET", f"/hooks?stack={name}&limit=1000"))["hooks"]
        [notice] = [
            one["resource"]["properties"] for one in hooks
            if one["resource_name"] == "after_open" and one["point"] == "pre-create"
        ]  # fmt: skip
        assert notice["value"] == PUBLIC + "ACTIVE"
        response = await self.call("GET", f"{at}/resources/after_open")
        assert response["resource"]["attributes"] == {"output": PUBLIC + "ACTIVE"}

    async def call_all_routes(self, *names: str) -> None:
        """Call every GET route for every role, for the stacks and their nested stacks."""
        there = [one for name in names for one in await self._path_values(name)]
        for route in all_routes():
            if route.method == "GET" and not route.path.startswith(NOT_CALLED):
                paths = list(_paths(route, there))
                assert paths, f"no value for a placeholder of {route.path}"
                for path in paths:
                    for role in ("reader", "author", "approver", "operator"):
                        await self.call("GET", path, role=role)

    async def _path_values(self, name: str) -> list[dict[str, list[str]]]:
        """The values of path parameters: of the stack and of each nested stack."""
        found: list[dict[str, list[str]]] = []
        listed = await self.call("GET", "/stacks?show_nested=true&limit=1000")
        hooks = (await self.call("GET", "/hooks?limit=1000"))["hooks"]
        configs = (await self.call("GET", "/software_configs"))["software_configs"]
        deployments = (await self.call("GET", "/software_deployments"))["software_deployments"]
        subscriptions = (await self.call("GET", "/subscriptions"))["subscriptions"]
        of_project = {
            "config": [each["id"] for each in configs],
            "deployment": [each["id"] for each in deployments],
            "server": ["web-1"],
            "subscription": [each["id"] for each in subscriptions],
        }
        for one in listed["stacks"]:
            if one["stack_name"] != name and not one["stack_name"].startswith(f"{name}-"):
                continue
            at = f"/stacks/{one['stack_name']}/{one['id']}"
            events = (await self.call("GET", f"{at}/events?limit=1000"))["events"]
            resources = (await self.call("GET", f"{at}/resources"))["resources"]
            names = [each["resource_name"] for each in resources]
            outputs = (await self.call("GET", f"{at}/outputs"))["outputs"]
            snapshots = (await self.call("GET", f"{at}/snapshots"))["snapshots"]
            found.append({
                **of_project, "snapshot": [each["id"] for each in snapshots],
                "name": [one["stack_name"]], "id": [one["id"]], "stack": [one["id"]],
                "resource": names, "event": [events[0]["id"]],
                "version": ["1", "heat_template_version.2021-04-16"],
                "key": [each["output_key"] for each in outputs], "type": ["OS::Heat::Value"],
                "hook": [each["id"] for each in hooks if each["stack_id"] == one["id"]][:5],
            })  # fmt: skip
        return found


#: The dashboard's files, the event stream (read by `Server.listen`), and unknown API versions.
NOT_CALLED = ("/dashboard", "//", "/v1/{project}/events/stream", "/{version:")


def _paths(route: Route, there: Sequence[Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """The route with each known value for its parameters."""
    path = plain_path(route.path).replace("/v1/{project}", "", 1)
    if not plain_path(route.path).startswith("/v1/{project}"):
        path = f"/{path}"
    placeholders = re.findall(r"\{(\w+)\}", path)
    seen: set[str] = set()
    for values in there:
        unknown = set(placeholders) - set(values)
        assert not unknown, f"unknown placeholders in {route.path}: {unknown}"
        for chosen in itertools.product(*(values[name] for name in placeholders)):
            one = path.format(**dict(zip(placeholders, chosen, strict=True)))
            if one not in seen:
                seen.add(one)
                yield one


def _may_show_secrets(path: str, role: str) -> bool:
    if path.startswith(SOFTWARE):
        return role in SOFTWARE_ROLES
    return ALLOWED.search(path) is not None


def _without_outputs(found: Json) -> Json:
    """Every reader of a stack may see its own outputs."""
    stack = found.get("stack") if isinstance(found, dict) else None
    if isinstance(stack, dict) and stack.get("parent") is None:
        return {**found, "stack": {**stack, "outputs": None}}
    return found


def _without_metadata(found: Json) -> Json:
    """Snapshots contain the metadata of resources, which everyone who can read the stack sees."""
    if isinstance(found, dict):
        return {key: _without_metadata(one) for key, one in found.items() if key != "metadata"}
    return [_without_metadata(one) for one in found] if isinstance(found, list) else found


def chains() -> st.SearchStrategy[list[Chain]]:
    steps = st.builds(
        Step, st.sampled_from(sorted(LINKS)), st.sampled_from(sorted(WRAPS)), st.integers(0, 4)
    )
    links = st.lists(steps, min_size=1, max_size=4).map(tuple)
    one = st.builds(Chain, st.sampled_from(sorted(SOURCES)), links)
    return st.lists(one, min_size=2, max_size=3)


#: Every type, every way to read it, every function and every source at least once.
EACH_READ = [
    Chain("parameter", (Step(name, "as it is", read),))
    for name, link in LINKS.items()
    for read in range(len(link.reads))
]
EACH_WRAP = [Chain("parameter", (Step("value", name), Step("value"))) for name in WRAPS]
#: Searched on every route, for every role.
WHOLE = [
    Chain("parameter", (Step("config"), Step("outer"), Step("group"))),
    Chain("parameter", (Step("nested", "str_replace", 2), Step("scaling"), Step("test"))),
]
WHOLE_EXTENDED = [
    Chain("stack output", (Step("each", "local in text"),)),
    Chain("data", (Step("conditions", "to_json"),)),
]
#: Without nested stacks, so that a snapshot can be taken.
FLAT = [Chain("parameter", (Step("value"), Step("test")))]
EACH_SOURCE = [Chain(name, (Step("value"), Step("test"))) for name in SOURCES]
#: As EACH_READ, EACH_WRAP and EACH_SOURCE, of version 2026-12-01.
EACH_EXTENDED = [
    *(
        Chain("parameter", (Step(name, "as it is", read),))
        for name, link in EXTENDED_LINKS.items()
        for read in range(len(link.reads))
        if name != "value of each"  # refused: its values do not come from a hidden parameter
    ),
    *(
        Chain("parameter", (Step("value", name), Step("test")))
        for name in (*EXTENDED_WRAPS, *LOCAL_WRAPS)
    ),
    *(Chain("number", (Step("typed number", name), Step("value"))) for name in ARITHMETIC),
    *(Chain(name, (Step("value"), Step("test"))) for name in EXTENDED_SOURCES),
]
#: What a property needs that is computed after the value of another resource is known.
LATER = [
    *(
        Chain("parameter", (Step("value"), Step("value", name)))
        for name in (*EXTENDED_WRAPS, *LOCAL_WRAPS)
    ),
    *(Chain("attribute", (Step("value"), Step(name))) for name in EXTENDED_LINKS),
    Chain("data", (Step("nested", "local in text"), Step("each", "to_json"))),
    Chain("stack output", (Step("config", "local"), Step("outer"))),
]


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    set_up_logging("json", level="debug", stream=stream)
    yield stream


def test_values_computed_from_a_secret_are_in_no_output(
    postgres: TestServer, rabbit: Rabbit, logged: io.StringIO
) -> None:
    with asyncio.Runner() as runner:
        search = SecretSearch()
        for where in (*EVERY_SOURCE, "second", "data alone"):
            number = str(random.SystemRandom().randint(10**17, 10**18 - 1))
            search.new_secret(where, number if where == "number" else None)
        stack = AsyncExitStack()
        server = runner.run(_running_server(stack, postgres, rabbit, search))
        try:

            @settings(
                max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
                phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            @example(EACH_READ)
            @example(EACH_WRAP)
            @example(EACH_SOURCE)
            @given(chains())
            def hunt(drawn_chains: list[Chain]) -> None:
                runner.run(server.hunt.run_stack(drawn_chains))
                assert search.found == [], "\n".join(search.found[:20])

            hunt()
            whole = runner.run(server.hunt.run_stack(WHOLE, whole=True))
            runner.run(server.hunt.create_source())
            for one in (EACH_EXTENDED, LATER):
                runner.run(server.hunt.run_stack(one, extended=True))
            both = runner.run(server.hunt.run_stack(WHOLE_EXTENDED, whole=True, extended=True))
            flat = runner.run(server.hunt.run_stack(FLAT))
            runner.run(server.hunt.snapshot(flat))
            runner.run(server.hunt.call_all_routes(whole, flat, both))
            runner.run(server.search_all())
        finally:
            runner.run(stack.aclose())
    search.search("log", logged.getvalue())
    assert search.found == [], "\n".join(search.found[:20])
    for where in ("log", "webhook", "amqp", "stream", "wal", "table hook", "table resource"):
        assert search.seen[where] > 5_000, (where, search.seen)


class Server:
    """All channels through which secrets could leave."""

    def __init__(
        self, hunt: SecretHunt, receiver: Receiver, amqp: AmqpClient, postgres: TestServer, wal: str
    ) -> None:
        self.hunt, self.receiver, self.amqp = hunt, receiver, amqp
        self.postgres, self.wal = postgres, wal

    async def listen(self) -> None:
        run, search = self.hunt.run, self.hunt.findings
        headers = {"Authorization": f"Bearer {self.hunt.tokens['reader']}"}
        async with run.session.get(f"{run.url}/v1/p/events/stream", headers=headers) as answer:
            async for line in answer.content:
                search.search("stream", line)

    async def search_all(self) -> None:
        """Search all that is stored, and all that was sent."""
        search, run = self.hunt.findings, self.hunt.run
        await eventually(self._delivered)
        for name, rows in (await rows_of(run.database)).items():
            search.search(f"table {name}", rows)
        async with self.postgres.administer() as conn:
            for _, raw in await wal_since(conn, self.wal):
                search.search("wal", raw)
        while (message := await self.amqp.queue.get(fail=False)) is not None:
            await message.ack()
            search.search("amqp", message.body + repr(message.headers).encode())
        for one in self.receiver.received:
            search.search("webhook", one.body + json.dumps(one.headers).encode())

    async def _delivered(self) -> bool:
        async with self.hunt.run.database.connection() as conn:
            left = await conn.fetchval("select count(*) from delivery where state = 'pending'")
        return bool(left == 0)


async def _running_server(
    stack: AsyncExitStack, postgres: TestServer, rabbit: Rabbit, search: SecretSearch
) -> Server:
    async with postgres.administer() as conn:
        wal = await wal_start(conn)
    url = await stack.enter_async_context(postgres.new_database())
    receiver = await stack.enter_async_context(running_receiver())
    amqp = await stack.enter_async_context(running_client(rabbit))
    heat = f"heat.{amqp.name}"
    await amqp.channel.declare_exchange(heat, "topic")
    await amqp.queue.bind(heat, "#")
    settings: dict[str, Any] = {
        "auth.mode": "tokens", "hooks.rules": [NOTIFYING], "channels.amqp.url": rabbit.url,
        "channels.amqp.heat_exchanges": [heat], **amqp.settings,
    }  # fmt: skip
    safe = SecretType(search.secrets["attribute"], search.secrets["data alone"])
    run = await stack.enter_async_context(program(url, settings, types=[safe]))
    hunt = SecretHunt(run, search)
    for role in ("admin", "reader", "author", "approver", "operator"):
        hunt.tokens[role] = await insert_credential(run.database, "p", role, [role])
        search.new_secret(f"token of {role}", hunt.tokens[role])
    for sent in (
        {"target": receiver.url},
        {"channel": "amqp", "target": amqp.exchange},
        {"channel": "heat", "target": heat},
    ):
        headers = {"Authorization": f"Bearer {hunt.tokens['admin']}"}
        _, response = await run.call("POST", "/subscriptions", sent, headers=headers)
        if response.get("secret"):
            search.new_secret(f"secret of {response['channel']}", response["secret"])
    server = Server(hunt, receiver, amqp, postgres, wal)
    stream = asyncio.create_task(server.listen())
    stack.callback(stream.cancel)
    return server
