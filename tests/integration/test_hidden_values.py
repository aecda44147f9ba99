"""Hidden values are planted wherever one can be given, and looked for wherever one could come out."""

import asyncio
import base64
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.store.database import Database
from engine.types.contract import Call, Confirm, Done, Outcome, ResourceType
from hub.log import set_up_logging
from tests.integration.amqp.conftest import post
from tests.support.access import given_directly
from tests.support.collector import Collector, collecting
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import Receiver

#: What is planted, by where. No one is a part of another.
PLANTED = {
    where: f"planted-{where}-7Q9z"
    for where in (
        "parameter", "default", "file", "property", "attribute", "data", "progress", "credential",
        "token", "password", "patch", "environment", "metadata", "list", "said", "step",
    )
}  # fmt: skip
#: How a secret may be written.
WAYS = (
    lambda text: text,
    lambda text: base64.b64encode(text.encode()).decode().rstrip("=")[:-2],
    lambda text: text.encode().hex(),
    lambda text: quote(text, safe=""),
)


class Safe(ResourceType):
    """Keeps secrets: hidden properties, secret attributes, data, progress; and fails with them."""

    schema = TypeSchema(
        "Test::Safe",
        properties={
            "secret": Property(Kind.STRING, hidden=True, update_allowed=True),
            "open": Property(Kind.ANY, update_allowed=True),
            "fails": Property(Kind.BOOLEAN, default=False, update_allowed=True),
        },
        attributes={"key": Attribute(Kind.STRING, secret=True), "open": Attribute(Kind.ANY)},
        steps=("look",),
        snapshots=True,
    )

    def create(self, call: Call) -> Outcome:
        if call.properties.get("fails"):
            raise ValueError(PLANTED["said"])
        if call.confirmed is None and call.properties.get("secret"):
            return Confirm("look", {"so far": PLANTED["progress"]})
        return self._done(call)

    def update(self, call: Call) -> Outcome:
        return self._done(call)

    def _done(self, call: Call) -> Outcome:
        attributes = {"key": PLANTED["attribute"], "open": "seen"}
        return Done(f"id-{call.resource_name}", attributes, {"own": PLANTED["data"]})

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def snapshot(self, call: Call) -> Outcome:
        return Done(call.physical_id, data={"kept": PLANTED["data"]})


TEMPLATE: Json = {
    "heat_template_version": "2018-08-31",
    "parameters": {
        "password": {"type": "string", "hidden": True},
        "property": {"type": "string", "hidden": True},
        "from_environment": {"type": "string", "hidden": True},
        "in_metadata": {"type": "string", "hidden": True},
        "list": {"type": "comma_delimited_list", "hidden": True, "default": ""},
        "from_file": {"type": "json", "hidden": True, "default": {}},
    },
    "resources": {
        "safe": {
            "type": "Test::Safe",
            "properties": {
                "secret": {"get_param": "property"},
                "open": {"str_replace": {"template": "user:P", "params": {"P": {"get_param": "password"}}}},
            },
            "metadata": {"also": {"get_param": "from_environment"}},
        },
        "copy": {
            "type": "OS::Heat::Value",
            "properties": {"type": "string", "value": {"get_attr": ["safe", "key"]}},
        },
        "text": {"type": "OS::Heat::Value",
                 "properties": {"value": {"list_join": ["/", {"get_param": "list"}]}}},
        "told": {"type": "OS::Heat::None", "metadata": {"only": {"get_param": "in_metadata"}}},
        "more": {"type": "Test::Safe", "properties": {"open": {"get_param": "from_file"}}},
    },
    "outputs": {"name": {"value": {"get_attr": ["safe", "open"]}}},
}  # fmt: skip


class Collected:
    """Everything that came out, by where."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, where: str, text: str) -> None:
        self.texts[where] = self.texts.get(where, "") + "\n" + text

    def found(self) -> list[str]:
        return [
            f"{secret} in {where}: {around(out, way(text))}"
            for where, out in self.texts.items()
            for secret, text in PLANTED.items()
            for way in WAYS
            if way(text).lower() in out.lower()
        ]


def around(text: str, found: str) -> str:
    at = text.lower().index(found.lower())
    return text[max(at - 200, 0) : at + 60]


ALL_TABLES = """
select c.oid::regclass::text as name from pg_class c
 where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1
"""


async def dump(database: Database) -> dict[str, str]:
    """All rows of all tables, as text; and how many tables have any."""
    async with database.connection() as conn:
        names = [row["name"] for row in await conn.fetch(ALL_TABLES)]
        return {
            name: "\n".join(
                row["row"] for row in await conn.fetch(f"select t::text as row from {name} t")
            )
            for name in names
        }


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    set_up_logging("json", level="debug", stream=stream)
    yield stream


async def test_hidden_values_come_out_nowhere(
    database_url: str, receiver: Receiver, rabbit: Rabbit, logged: io.StringIO
) -> None:
    out = Collected()
    async with collecting() as spans, post(rabbit) as box, AsyncExitStack() as stack:
        heat = f"heat.{box.name}"
        await box.channel.declare_exchange(heat, "topic")
        await box.queue.bind(heat, "#")
        settings = {
            "auth.mode": "tokens", "metrics.needs": "nothing", "tracing.endpoint": spans.url, "tracing.every": "1s",
            "channels.amqp.url": rabbit.url, "channels.amqp.heat_exchanges": [heat],
            **box.settings,
        }  # fmt: skip
        run = await stack.enter_async_context(program(database_url, settings, types=[Safe()]))
        token = await given_directly(run.database, "p", "ann", ["admin"])
        PLANTED["token"] = token
        await given_directly(run.database, "p", "bob", ["reader"], password=PLANTED["password"])
        who = {"Authorization": f"Bearer {token}", "X-Auth-Token": PLANTED["credential"]}
        seen = Requests(run, out, who)
        made = await seen.call("POST", "/subscriptions", {"target": receiver.url})
        PLANTED["signing"] = made.pop("secret")
        for channel, target in (("amqp", box.exchange), ("heat", heat)):
            made = await seen.call("POST", "/subscriptions", {"channel": channel, "target": target})
            made.pop("secret")
        stream = asyncio.create_task(seen.listen())
        await a_life(seen)
        await faults(seen)
        await eventually(seen.delivered)
        out.add("metrics", await seen.text("//metrics"))
        await seen.look_at_tables()
        await eventually(lambda: told_of(spans, "deliver webhook"))
        out.add("traces", spans.raw.decode("latin-1"))
        while (message := await box.queue.get(fail=False)) is not None:
            await message.ack()
            out.add(message.routing_key or "", message.body.decode() + repr(message.headers))
        stream.cancel()
        await asyncio.wait([stream])
        for one in receiver.received:
            out.add("webhook", one.body.decode() + json.dumps(one.headers))
    out.add("log", logged.getvalue())
    filled = [where for where, text in out.texts.items() if len(text) > 20]
    assert len([one for one in filled if one.startswith("table ")]) > 12, filled
    assert "headgate_" in out.texts["metrics"]
    assert {"log", "webhook", "stream", "metrics", "answers", "traces"} <= set(filled)
    routed = {
        where for where in filled if where.startswith(("headgate.hook.waiting.", "notifications."))
    }
    assert {"notifications.info", "notifications.error"} < routed, filled
    assert len(out.texts["webhook"]) > 5_000 and len(out.texts["log"]) > 5_000
    assert "headgate.hook.waiting" in out.texts["stream"]
    metadata = out.texts.pop("metadata")
    shown = {one for one, secret in PLANTED.items() if secret in metadata}
    assert shown == {"environment", "metadata"}
    assert PLANTED["parameter"] in out.texts.pop("export")
    assert out.found() == [], "\n".join(out.found())


async def told_of(spans: Collector, word: str) -> bool:
    return any(word in one.name for one in spans.spans)


class Requests:
    def __init__(self, run: Program, out: Collected, who: Mapping[str, str]) -> None:
        self.run, self.out, self.who = run, out, who

    async def call(self, method: str, path: str, body: Json = None, **more: Any) -> Json:
        """What is answered is looked at, except where it is to be shown: once, to who asks."""
        _, said = await self.run.call(method, path, body, headers=dict(self.who), **more)
        shown = dict(said) if isinstance(said, dict) else said
        if isinstance(shown, dict) and path == "/subscriptions" and method == "POST":
            shown.pop("secret", None)
        # What metadata holds is for whoever may read the resource: agents fetch it there.
        # So is an export, for whoever may have another server adopt it.
        where = "answers"
        if "/snapshots" in path or path.endswith("/metadata"):
            where = "metadata"
        elif path.endswith("/export"):
            where = "export"
        self.out.add(where, f"{method} {path} {json.dumps(shown)}")
        return said

    async def text(self, path: str) -> str:
        _, said = await self.run.call("GET", path, headers=dict(self.who))
        return str(said)

    async def listen(self) -> None:
        url = f"{self.run.url}/v1/p/events/stream"
        async with self.run.session.get(url, headers=dict(self.who)) as answer:
            async for line in answer.content:
                self.out.add("stream", line.decode())

    async def until(self, name: str, *ends: str) -> str:
        async def ended() -> str | None:
            said = await self.call("GET", f"/stacks/{name}")
            status = str(said["stack"]["stack_status"])
            return status if status.endswith(ends or ("COMPLETE", "FAILED", "STOPPED")) else None

        return str(await eventually(ended))

    async def look_at_tables(self) -> None:
        for name, rows in (await dump(self.run.database)).items():
            self.out.add(f"table {name}", rows)

    async def hook(self) -> Json:
        async def waiting() -> Json:
            said = await self.call("GET", "/hooks?state=waiting")
            return said["hooks"][0] if said["hooks"] else None

        return await eventually(waiting)

    async def delivered(self) -> bool:
        async with self.run.database.connection() as conn:
            left = await conn.fetchval("select count(*) from delivery where state = 'pending'")
        return bool(left == 0)


HELD = [{"on": ["pre-stack-adopt"]}]


def body(name: str, **more: Json) -> Json:
    return {
        "stack_name": name,
        "template": TEMPLATE,
        "parameters": {"password": PLANTED["parameter"], "property": PLANTED["property"], "in_metadata": PLANTED["metadata"],
                       "list": [PLANTED["list"], "b"]},
        "environment_files": ["one.yaml"],
        "files": {
            "one.yaml": orjson.dumps({
                "parameters": {"from_file": {"deep": [PLANTED["file"]]}},
                "parameter_defaults": {"from_environment": PLANTED["environment"]},
                "hooks": [{"at": "*", "on": ["pre-create", "confirm-look", "pre-update"]}],
            }).decode()
        },
        **more,
    }  # fmt: skip


async def answer_all(seen: Requests, name: str, *, patch: bool = False) -> None:
    """Answer whatever waits until the stack has ended."""
    async with asyncio.timeout(60):
        while True:
            said = await seen.call("GET", f"/stacks/{name}")
            if not said["stack"]["stack_status"].endswith("IN_PROGRESS"):
                return
            for hook in (await seen.call("GET", "/hooks?state=waiting"))["hooks"]:
                decision: Json = {"decision": "continue", "reason": "it is well"}
                if patch and hook["point"] == "pre-create" and hook["resource_name"] == "more":
                    patch = False
                    decision = {"decision": "patch", "properties": {"secret": PLANTED["patch"]}}
                await seen.call("POST", f"/hooks/{hook['id']}/signal", decision)
            await asyncio.sleep(0.02)


async def a_life(seen: Requests) -> None:
    await seen.call("POST", "/stacks/preview", body("s"))
    await seen.call("POST", "/validate", body("s"))
    made = await seen.call("POST", "/stacks", body("s"))
    path = f"/stacks/s/{made['stack']['id']}"
    await seen.hook()
    for rest in ("/graph", "/why", "/versions", "/environment", "/template", "/breakpoints"):
        await seen.call("GET", path + rest)
    await answer_all(seen, "s", patch=True)
    assert (await seen.call("GET", "/stacks/s"))["stack"]["stack_status"] == "CREATE_COMPLETE"
    for one in ("safe", "copy", "more", "text"):
        await seen.call("GET", f"{path}/resources/{one}?with_attr=key")
        said = await seen.call("GET", f"{path}/resources/{one}/events")
        for event in said["events"]:
            await seen.call("GET", f"{path}/resources/{one}/events/{event['id']}")
    for rest in ("/resources", "/events", "/outputs", "/decisions", "/versions/1"):
        await seen.call("GET", path + rest)
    await seen.call("POST", f"{path}/snapshots", {"name": "one"})
    await seen.until("s")
    [snapshot] = (await seen.call("GET", f"{path}/snapshots"))["snapshots"]
    await seen.call("GET", f"{path}/snapshots/{snapshot['id']}")
    await seen.call("POST", f"{path}/snapshots/{snapshot['id']}/restore")
    await answer_all(seen, "s")
    said = await seen.call("GET", "/stacks/s")
    assert said["stack"]["stack_status"] == "RESTORE_COMPLETE", said
    await seen.look_at_tables()  # while the nodes of the restore are there
    exported = await seen.call("GET", f"{path}/export")
    adopted = {"stack_name": "a", "adopt_stack_data": json.dumps(exported),
               "environment": exported["environment"] | {"hooks": HELD}}  # fmt: skip
    await seen.call("POST", "/stacks", adopted)
    await seen.hook()
    await seen.look_at_tables()  # before the types have looked at what is adopted
    await answer_all(seen, "a")
    said = await seen.call("GET", "/stacks/a")
    assert said["stack"]["stack_status"] == "ADOPT_COMPLETE", said
    await seen.call("PATCH", f"{path}/preview", {"parameters": {"list": ["x"]}})
    await seen.call("PATCH", path, {"parameters": {"list": ["x"]}})
    await answer_all(seen, "s")
    for action in ("check", "suspend", "resume"):
        await seen.call("POST", f"{path}/actions", {action: None})
        await answer_all(seen, "s")


async def faults(seen: Requests) -> None:
    """Every kind of refusal and failure that has a hidden value near."""
    wrong = {"type": "string", "hidden": True, "constraints": [{"length": {"max": 3}}]}
    template = {**TEMPLATE, "parameters": {**TEMPLATE["parameters"], "password": wrong}}
    await seen.call("POST", "/stacks", body("t") | {"template": template})
    number = {"type": "number", "hidden": True}
    template = {**TEMPLATE, "parameters": {**TEMPLATE["parameters"], "password": number}}
    await seen.call("POST", "/stacks", body("t") | {"template": template})
    failing = {
        "heat_template_version": "2018-08-31",
        "parameters": {"password": {"type": "string", "hidden": True}},
        "resources": {"a": {"type": "Test::Safe", "properties": {
            "fails": True, "open": {"get_param": "password"}}}},
    }  # fmt: skip
    sent = {
        "stack_name": "u",
        "template": failing,
        "parameters": {"password": PLANTED["parameter"]},
    }
    await seen.call("POST", "/stacks", sent)
    await answer_all(seen, "u")
    assert (await seen.call("GET", "/stacks/u"))["stack"]["stack_status"] == "CREATE_FAILED"
    basic = base64.b64encode(f"bob:{PLANTED['password']}".encode()).decode()
    for headers in ({"Authorization": f"Basic {basic}"}, {"X-Auth-Token": PLANTED["credential"]}):
        status, said = await seen.run.call("GET", "/stacks", headers=headers)
        seen.out.add("answers", f"{status} {json.dumps(said)}")
