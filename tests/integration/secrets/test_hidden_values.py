"""Hidden values are planted in every input, and searched for in every output."""

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
from engine.types.contract import Call, Confirm, Done, Outcome, ResourceType
from hub.log import set_up_logging
from tests.integration.amqp.conftest import running_client
from tests.support.access import insert_credential
from tests.support.collected_output import CollectedOutput
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import Receiver
from tests.support.secret_search import rows_of
from tests.support.span_collector import Collector, running_collector

#: Where a secret is planted -> the secret. None is a part of another one.
PLANTED = {
    where: f"planted-{where}-7Q9z"
    for where in (
        "parameter", "default", "file", "property", "attribute", "data", "progress", "credential",
        "token", "password", "patch", "environment", "metadata", "list", "exception", "step",
    )
}  # fmt: skip
#: Encodings of a secret.
ENCODINGS = (
    lambda text: text,
    lambda text: base64.b64encode(text.encode()).decode().rstrip("=")[:-2],
    lambda text: text.encode().hex(),
    lambda text: quote(text, safe=""),
)


class SecretType(ResourceType):
    """Has hidden properties, secret attributes, data and progress, and fails with secret values."""

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
            raise ValueError(PLANTED["exception"])
        if call.confirmation is None and call.properties.get("secret"):
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


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    set_up_logging("json", level="debug", stream=stream)
    yield stream


async def test_hidden_values_are_in_no_output(
    database_url: str, receiver: Receiver, rabbit: Rabbit, logged: io.StringIO
) -> None:
    out = CollectedOutput()
    async with (
        running_collector() as spans,
        running_client(rabbit) as amqp,
        AsyncExitStack() as stack,
    ):
        heat = f"heat.{amqp.name}"
        await amqp.channel.declare_exchange(heat, "topic")
        await amqp.queue.bind(heat, "#")
        settings = {
            "auth.mode": "tokens", "metrics.needs": "nothing", "tracing.endpoint": spans.url, "tracing.every": "1s",
            "channels.amqp.url": rabbit.url, "channels.amqp.heat_exchanges": [heat],
            **amqp.settings,
        }  # fmt: skip
        run = await stack.enter_async_context(program(database_url, settings, types=[SecretType()]))
        token = await insert_credential(run.database, "p", "ann", ["admin"])
        PLANTED["token"] = token
        await insert_credential(run.database, "p", "bob", ["reader"], password=PLANTED["password"])
        headers_of = {"Authorization": f"Bearer {token}", "X-Auth-Token": PLANTED["credential"]}
        requests = Requests(run, out, headers_of)
        response = await requests.call("POST", "/subscriptions", {"target": receiver.url})
        PLANTED["signing"] = response.pop("secret")
        for channel, target in (("amqp", amqp.exchange), ("heat", heat)):
            response = await requests.call(
                "POST", "/subscriptions", {"channel": channel, "target": target}
            )
            response.pop("secret")
        stream = asyncio.create_task(requests.listen())
        await run_stack(requests)
        await cause_failures(requests)
        await eventually(requests.delivered)
        out.add("metrics", await requests.text("//metrics"))
        await requests.collect_tables()
        await eventually(lambda: has_span(spans, "deliver webhook"))
        out.add("traces", spans.raw.decode("latin-1"))
        while (message := await amqp.queue.get(fail=False)) is not None:
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
    encoded = [(name, encode(text)) for name, text in PLANTED.items() for encode in ENCODINGS]
    leaks = out.find(encoded, ignore_case=True)
    assert leaks == [], "\n".join(leaks)


async def has_span(spans: Collector, name: str) -> bool:
    return any(name in one.name for one in spans.spans)


class Requests:
    def __init__(self, run: Program, out: CollectedOutput, headers_of: Mapping[str, str]) -> None:
        self.run, self.out, self.who = run, out, headers_of

    async def call(self, method: str, path: str, body: Json = None, **more: Any) -> Json:
        """Collects the response, except where it must show a secret: once, to the requester."""
        _, response = await self.run.call(method, path, body, headers=dict(self.who), **more)
        shown = dict(response) if isinstance(response, dict) else response
        if isinstance(shown, dict) and path == "/subscriptions" and method == "POST":
            shown.pop("secret", None)
        # Readers of a resource see its metadata, because agents fetch it there. Exports show values
        # for another server.
        where = "answers"
        if "/snapshots" in path or path.endswith("/metadata"):
            where = "metadata"
        elif path.endswith("/export"):
            where = "export"
        self.out.add(where, f"{method} {path} {json.dumps(shown)}")
        return response

    async def text(self, path: str) -> str:
        _, response = await self.run.call("GET", path, headers=dict(self.who))
        return str(response)

    async def listen(self) -> None:
        url = f"{self.run.url}/v1/p/events/stream"
        async with self.run.session.get(url, headers=dict(self.who)) as answer:
            async for line in answer.content:
                self.out.add("stream", line.decode())

    async def until(self, name: str, *ends: str) -> str:
        async def ended() -> str | None:
            response = await self.call("GET", f"/stacks/{name}")
            status = str(response["stack"]["stack_status"])
            return status if status.endswith(ends or ("COMPLETE", "FAILED", "STOPPED")) else None

        return str(await eventually(ended))

    async def collect_tables(self) -> None:
        for name, rows in (await rows_of(self.run.database)).items():
            self.out.add(f"table {name}", rows)

    async def hook(self) -> Json:
        async def waiting() -> Json:
            response = await self.call("GET", "/hooks?state=waiting")
            return response["hooks"][0] if response["hooks"] else None

        return await eventually(waiting)

    async def delivered(self) -> bool:
        async with self.run.database.connection() as conn:
            left = await conn.fetchval("select count(*) from delivery where state = 'pending'")
        return bool(left == 0)


HOOKS = [{"on": ["pre-stack-adopt"]}]


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


async def answer_all(requests: Requests, name: str, *, patch: bool = False) -> None:
    """Answer all waiting hooks until the stack has ended."""
    async with asyncio.timeout(60):
        while True:
            response = await requests.call("GET", f"/stacks/{name}")
            if not response["stack"]["stack_status"].endswith("IN_PROGRESS"):
                return
            for hook in (await requests.call("GET", "/hooks?state=waiting"))["hooks"]:
                decision: Json = {"decision": "continue", "reason": "it is well"}
                if patch and hook["point"] == "pre-create" and hook["resource_name"] == "more":
                    patch = False
                    decision = {"decision": "patch", "properties": {"secret": PLANTED["patch"]}}
                await requests.call("POST", f"/hooks/{hook['id']}/signal", decision)
            await asyncio.sleep(0.02)


async def run_stack(requests: Requests) -> None:
    await requests.call("POST", "/stacks/preview", body("s"))
    await requests.call("POST", "/validate", body("s"))
    created = await requests.call("POST", "/stacks", body("s"))
    path = f"/stacks/s/{created['stack']['id']}"
    await requests.hook()
    for rest in ("/graph", "/why", "/versions", "/environment", "/template", "/breakpoints"):
        await requests.call("GET", path + rest)
    await answer_all(requests, "s", patch=True)
    assert (await requests.call("GET", "/stacks/s"))["stack"]["stack_status"] == "CREATE_COMPLETE"
    for one in ("safe", "copy", "more", "text"):
        await requests.call("GET", f"{path}/resources/{one}?with_attr=key")
        response = await requests.call("GET", f"{path}/resources/{one}/events")
        for event in response["events"]:
            await requests.call("GET", f"{path}/resources/{one}/events/{event['id']}")
    for rest in ("/resources", "/events", "/outputs", "/decisions", "/versions/1"):
        await requests.call("GET", path + rest)
    await requests.call("POST", f"{path}/snapshots", {"name": "one"})
    await requests.until("s")
    [snapshot] = (await requests.call("GET", f"{path}/snapshots"))["snapshots"]
    await requests.call("GET", f"{path}/snapshots/{snapshot['id']}")
    await requests.call("POST", f"{path}/snapshots/{snapshot['id']}/restore")
    await answer_all(requests, "s")
    response = await requests.call("GET", "/stacks/s")
    assert response["stack"]["stack_status"] == "RESTORE_COMPLETE", response
    await requests.collect_tables()  # while the nodes of the restore exist
    exported = await requests.call("GET", f"{path}/export")
    adopted = {"stack_name": "a", "adopt_stack_data": json.dumps(exported),
               "environment": exported["environment"] | {"hooks": HOOKS}}  # fmt: skip
    await requests.call("POST", "/stacks", adopted)
    await requests.hook()
    await requests.collect_tables()  # before the types check the adopted resources
    await answer_all(requests, "a")
    response = await requests.call("GET", "/stacks/a")
    assert response["stack"]["stack_status"] == "ADOPT_COMPLETE", response
    await requests.call("PATCH", f"{path}/preview", {"parameters": {"list": ["x"]}})
    await requests.call("PATCH", path, {"parameters": {"list": ["x"]}})
    await answer_all(requests, "s")
    for action in ("check", "suspend", "resume"):
        await requests.call("POST", f"{path}/actions", {action: None})
        await answer_all(requests, "s")


async def cause_failures(requests: Requests) -> None:
    """Every kind of refusal and failure with a hidden value near."""
    invalid = {"type": "string", "hidden": True, "constraints": [{"length": {"max": 3}}]}
    template = {**TEMPLATE, "parameters": {**TEMPLATE["parameters"], "password": invalid}}
    await requests.call("POST", "/stacks", body("t") | {"template": template})
    number = {"type": "number", "hidden": True}
    template = {**TEMPLATE, "parameters": {**TEMPLATE["parameters"], "password": number}}
    await requests.call("POST", "/stacks", body("t") | {"template": template})
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
    await requests.call("POST", "/stacks", sent)
    await answer_all(requests, "u")
    assert (await requests.call("GET", "/stacks/u"))["stack"]["stack_status"] == "CREATE_FAILED"
    basic = base64.b64encode(f"bob:{PLANTED['password']}".encode()).decode()
    for headers in ({"Authorization": f"Basic {basic}"}, {"X-Auth-Token": PLANTED["credential"]}):
        status, response = await requests.run.call("GET", "/stacks", headers=headers)
        requests.out.add("answers", f"{status} {json.dumps(response)}")
