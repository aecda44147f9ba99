"""Reasons of resources that depend on a secret contain no value computed from it."""

import base64
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest
from aiohttp import web

from engine.errors import Unavailable
from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Confirm, Done, Failed, Outcome, ResourceType, Stopped, Wait
from engine.work.nodes.secret_propagation import WITHHELD_DETAILS
from hub.log import set_up_logging
from tests.integration.amqp.conftest import running_client
from tests.support.collected_output import CollectedOutput
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit
from tests.support.receiver import Receiver
from tests.support.secret_search import rows_of

SECRET = '48151623-kQz.vWm 9Xb~pT"ë&TJhyRd'
#: Forms of a secret, none of which contains the whole secret as it is written.
FORMS: Mapping[str, Callable[[str], str]] = {
    "a substring": lambda text: text[9:16],
    "a split part": lambda text: text.split("&")[1],
    "the end": lambda text: text[-5:],
    "a number": lambda text: str(int(text[:8])),
    "a sum": lambda text: str(int(text[:8]) * 3),
    "reversed": lambda text: text[::-1][-14:],
    "in capitals": lambda text: text[9:16].upper(),
    "in base64": lambda text: base64.b64encode(text.encode()).decode()[:-4],
    "in hexadecimal": lambda text: text.encode().hex(),
    "in a URL": lambda text: quote(text, safe=""),
    "in JSON": lambda text: json.dumps(text)[1:-1],
}


def derived(text: str) -> str:
    return " | ".join(form(text) for form in FORMS.values())


class DerivingType(ResourceType):
    """Ends in the way that `how` names, with a message that contains every form of `secret`."""

    schema = TypeSchema(
        "Test::Derives",
        properties={
            "secret": Property(Kind.STRING, update_allowed=True),
            "how": Property(Kind.STRING, update_allowed=True),
        },
        attributes={"out": Attribute(Kind.STRING)},
        steps=("look",),
    )
    replaces_tainted = False

    def create(self, call: Call) -> Outcome:
        message = derived(call.properties["secret"])
        match call.properties["how"]:
            case "failed":
                return Failed(message)
            case "public":
                return Failed(f"it failed: {message}", public_reason="it failed")
            case "retried":
                return Failed(message, retry=True)
            case "stopped":
                return Stopped(message)
            case "waiting" if call.progress is None:
                return Wait(call.now, {"waited": True}, message)
            case "confirmed" if call.confirmation is None:
                seen = {"plan": [message], message: 1, "size": 3}
                return Confirm("look", {}, seen, public_seen={"size": 3})
            case "refused":
                raise Unavailable(message)
            case "bug":
                raise ValueError(message)
            case "done":
                return Done("id", {}, {}, message)
            case _:
                return Failed(message)

    def update(self, call: Call) -> Outcome:
        return Failed(derived((call.previous or {})["secret"]))

    def delete(self, call: Call) -> Outcome:
        return Done(None)


SHELL = """
s="$0"; printf '%s | ' "${s#*-}" "$(printf %s "$s" | base64 -w0)" \
  "$(printf %s "$s" | tr a-z A-Z)" "$(printf %s "$s" | cut -c 10-16)" >&2
exit 3
"""
FAILING: Json = {
    "heat_template_version": "2021-04-16",
    "parameters": {"given": {"type": "string"}},
    "resources": {"inner": {
        "type": "Test::Derives",
        "properties": {"secret": {"get_param": "given"}, "how": "failed"},
    }},
}  # fmt: skip
MASKED_REASON = "not shown because the resource depends on a secret"


def cases(service: str, secret: Json) -> dict[str, tuple[Json, str]]:
    """The resource that fails and what its reason still contains, by the name of the stack."""
    request = {"url": "/things", "method": "POST", "body": {"secret": secret}}
    own = {
        how: ({"type": "Test::Derives", "properties": {"secret": secret, "how": how}}, shown)
        for how, shown in {
            "failed": MASKED_REASON, "public": "it failed", "retried": MASKED_REASON, "stopped": MASKED_REASON,
            "waiting": MASKED_REASON, "confirmed": MASKED_REASON, "refused": MASKED_REASON,
            "bug": "unexpectedly (see the server's log)", "done": "",
        }.items()
    }  # fmt: skip
    member = own["failed"][0]
    return own | {
        "http": ({"type": "Headgate::HTTP", "properties": {
            "base": service, "create": request, "id": "x"}}, "the service answered 400"),
        "command": ({"type": "Headgate::Command", "properties": {
            "create": ["/bin/sh", "-c", SHELL, secret]}}, "create exited with 3"),
        "remote": ({"type": "OS::Heat::Stack", "properties": {
            "context": {"region_name": "west"}, "parameters": {"secret": secret},
            "template": "heat_template_version: 2021-04-16"}}, "the endpoint answered 400"),
        "value": ({"type": "OS::Heat::Value", "properties": {
            "type": "json", "value": {"get_attr": ["late", "output"]}}}, "is not valid JSON"),
        "late_command": ({"type": "Headgate::Command", "properties": {
            "create": ["/bin/ls", {"get_attr": ["late", "output"]}]}}, "create may not be run"),
        "multipart": ({"type": "OS::Heat::MultipartMime", "properties": {"parts": [
            {"type": "multipart", "config": {"get_attr": ["late", "output"]}}]}},
            "parts[0]: is not a multipart message"),
        "test": ({"type": "OS::Heat::TestResource", "properties": {
            "value": secret, "fail": True}}, "Test Resource failed"),
        "nested": ({"type": "failing.yaml", "properties": {"given": secret}}, MASKED_REASON),
        "group": ({"type": "OS::Heat::ResourceGroup", "properties": {
            "count": 1, "resource_def": member}}, MASKED_REASON),
    }  # fmt: skip


def body(name: str, resource: Json, *, hidden: bool) -> Json:
    late = {"type": "OS::Heat::TestResource", "properties": {"value": {"get_param": "secret"}}}
    return {
        "stack_name": name,
        "template": {
            "heat_template_version": "2021-04-16",
            "parameters": {"secret": {"type": "string", "hidden": hidden}},
            "resources": {"late": late, "it": resource},
        },
        "parameters": {"secret": SECRET},
        "environment": {"hooks": [{"at": "it", "on": "confirm-look", "mode": "notify"}]},
        "files": {"failing.yaml": json.dumps(FAILING)},
    }


@asynccontextmanager
async def echo_service() -> AsyncIterator[str]:
    """A service that refuses every request, with the forms of the secret in it."""

    async def refuse(request: web.Request) -> web.Response:
        sent = await request.text()
        message = derived(SECRET) if "48151623" in sent else "no secret was sent"
        return web.json_response({"error": {"message": message}}, status=400)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", refuse)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    set_up_logging("json", level="debug", stream=stream)
    yield stream


async def until_ended(run: Program, name: str) -> Json:
    async def stack() -> Json:
        _, response = await run.call("GET", f"/stacks/{name}")
        return (
            None if response["stack"]["stack_status"].endswith("IN_PROGRESS") else response["stack"]
        )

    return await eventually(stack)


async def collect(run: Program, name: str, output: CollectedOutput) -> None:
    """All that the API shows of a stack and its nested stacks."""
    stack = await until_ended(run, name)
    at = f"/stacks/{name}/{stack['id']}"
    inner = ("/resources?nested_depth=5", "/events?nested_depth=5&limit=1000", "/graph", "/why",
             "/resources/it", "/resources/it/events", "/resources/it/inspect", "/versions",
             "/decisions", "/history")  # fmt: skip
    for path in ("", *inner):
        output.add("api", json.dumps(await run.call("GET", at + path), ensure_ascii=False))


async def test_reasons_contain_no_form_of_a_secret(
    postgres: TestServer, rabbit: Rabbit, receiver: Receiver, logged: io.StringIO
) -> None:
    output = CollectedOutput()
    async with (
        echo_service() as service,
        postgres.new_database() as url,
        running_client(rabbit) as amqp,
    ):
        heat = f"heat.{amqp.name}"
        await amqp.channel.declare_exchange(heat, "topic")
        await amqp.queue.bind(heat, "#")
        settings = {
            "resource_types.http.enabled": True, "resource_types.http.allow": ["127.0.0.0/8"],
            "resource_types.command.enabled": True, "resource_types.command.run_as": "server",
            "resource_types.command.programs": [
                {"path": "/bin/sh", "projects": ["*"], "arguments": ["**"]}],
            "resource_types.remote_stack.west": {"url": f"{service}/v1/t", "projects": ["p"]},
            "engine.action_retry_limit": 1,
            "channels.amqp.url": rabbit.url, "channels.amqp.heat_exchanges": [heat],
            **amqp.settings,
        }  # fmt: skip
        async with program(url, settings, types=[DerivingType()]) as run:
            for sent in (
                {"target": receiver.url},
                {"channel": "amqp", "target": amqp.exchange},
                {"channel": "heat", "target": heat},
            ):
                status, response = await run.call("POST", "/subscriptions", sent)
                assert status < 300, response
            parameter = {"get_param": "secret"}
            wanted = cases(service, parameter)
            for name, (resource, _) in wanted.items():
                status, response = await run.call(
                    "POST", "/stacks", body(name, resource, hidden=True)
                )
                assert status == 201, response
            for name, (_, shown) in wanted.items():
                stack = await until_ended(run, name)
                assert shown in stack["stack_status_reason"], (name, stack)
                await collect(run, name, output)
            # The update removes the secret; the type still has it in the previous properties.
            plain = {"type": "Test::Derives", "properties": {"secret": "open", "how": "done"}}
            await run.call("PUT", "/stacks/done", body("done", plain, hidden=True))
            await collect(run, "done", output)

            async def delivered() -> bool:
                async with run.database.connection() as conn:
                    left = await conn.fetchval(
                        "select count(*) from delivery where state = 'pending'"
                    )
                return bool(left == 0)

            await eventually(delivered)
            for name, rows in (await rows_of(run.database)).items():
                output.add(f"table {name}", rows)
            while (message := await amqp.queue.get(fail=False)) is not None:
                await message.ack()
                output.add("amqp", message.body.decode())
            for one in receiver.received:
                output.add("webhook", one.body.decode())
            (seen,) = [
                found for one in receiver.received
                if (found := (json.loads(one.body)["data"].get("resource") or {}).get("seen"))
            ]  # fmt: skip
            assert seen == {"withheld": WITHHELD_DETAILS, "size": 3}
            output.add("log", logged.getvalue())
            leaks = output.find((form, derive(SECRET)) for form, derive in FORMS.items())
            assert leaks == [], "\n".join(leaks[:10])
            for where in ("api", "amqp", "webhook", "log", "table event"):
                assert len(output.texts[where]) > 5_000, where

            # Without a secret, the same messages are shown whole.
            resource, _ = cases(service, parameter)["http"]
            await run.call("POST", "/stacks", body("open", resource, hidden=False))
            assert (
                FORMS["reversed"](SECRET) in (await until_ended(run, "open"))["stack_status_reason"]
            )
