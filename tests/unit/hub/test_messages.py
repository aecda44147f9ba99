"""Messages about invalid input and failed connections."""

import asyncio
import socket
from datetime import timedelta

import aiohttp
import pytest
from pydantic import BaseModel, ValidationError

from engine.errors import Findings, Invalid, quote_value
from engine.hooks.rule import HookLimits
from engine.hooks.rule_reader import Reader
from engine.hot.environment.event_sinks import read_event_sinks
from engine.principal import principal_of_name
from engine.words import Json
from headgate.connection_errors import describe as describe_connection
from hub.api.headgate.subscriptions import CreateSubscription, UpdateSubscription
from hub.api.orchestration.stack_requests import stack_request
from hub.validation_messages import describe

LIMITS = HookLimits(timedelta(hours=24), timedelta(days=90))


@pytest.mark.parametrize(
    ("model", "body", "expected"),
    [
        (CreateSubscription, {}, "is required"),
        (CreateSubscription, {"target": 5}, "must be a string"),
        (CreateSubscription, {"target": ""}, "must have at least 1 character"),
        (CreateSubscription, {"target": "x" * 2001}, "must have at most 2000 characters"),
        (CreateSubscription, {"target": "x", "nested": "yes"}, "must be true or false"),
        (CreateSubscription, {"target": "x", "tags": {}}, "must be a list"),
        (UpdateSubscription, {"state": "off"}, 'must be "enabled" or "disabled"'),
    ],
)
def test_a_wrong_field_is_described_without_names_of_python(
    model: type[BaseModel], body: Json, expected: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(body)
    assert [describe(one) for one in caught.value.errors()] == [expected]


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "null"), (True, "true"), ("a", '"a"'), ({"a": 1}, '{"a": 1}')]
)
def test_a_value_is_quoted_as_json(value: Json, expected: str) -> None:
    assert quote_value(value) == expected


def test_a_long_value_is_shortened() -> None:
    assert len(quote_value("x" * 500)) == 80


def test_a_rule_with_wrong_values_shows_them_as_json() -> None:
    findings = Findings()
    rule: Json = {"at": "db", "on": ["pre-create"], "approvals": None, "mode": True}
    Reader(findings, LIMITS).read_requested([rule])
    assert [one.reason for one in findings.all] == [
        "true is not a valid value",
        "null is not a number of approvers",
    ]


def test_a_wrong_event_sink_is_shown_as_json() -> None:
    findings = Findings()
    read_event_sinks([None], findings)
    assert [one.reason for one in findings.all] == ["null is not an event sink."]


@pytest.mark.parametrize("digest", ["0", "A" * 64, "g" * 64, "0" * 65])
def test_a_malformed_plan_digest_is_reported_as_malformed(digest: str) -> None:
    body: Json = {"stack_name": "s", "template": {}, "plan_digest": digest}
    with pytest.raises(Invalid, match="plan_digest: is not a plan digest"):
        stack_request(body, existing=False, requested_by=principal_of_name("ann"))


def test_a_well_formed_plan_digest_is_accepted() -> None:
    body: Json = {"stack_name": "s", "template": {}, "plan_digest": "0" * 64}
    assert (
        stack_request(body, existing=False, requested_by=principal_of_name("ann")).plan_digest
        == "0" * 64
    )


async def connect(url: str, seconds: float = 5) -> str:
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as session,
            session.get(url),
        ):
            return ""
    except (aiohttp.ClientError, OSError) as error:
        return describe_connection(error)


async def test_a_failed_connection_is_described_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert await connect(f"http://127.0.0.1:{port}", 0.1) == "timeout"
    assert await connect(f"http://127.0.0.1:{port}") == "connection refused"
    assert await connect("http://name.invalid") == "the host name cannot be resolved"


async def test_a_server_without_tls_is_described_in_words() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reason = "the server does not use TLS there, so its URL begins with http://"
        assert await connect(f"https://127.0.0.1:{port}") == f"TLS error: {reason}"
