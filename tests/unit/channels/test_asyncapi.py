"""The AsyncAPI document: references resolve, and every event type is included."""

from collections.abc import Iterator

import jsonschema_rs
import pytest

from channels.schemas.asyncapi import asyncapi
from channels.schemas.event_schemas import SCHEMAS
from engine.words import Decision, Json

DOCUMENT = asyncapi("the.answers")


def references(part: Json) -> Iterator[str]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"]
        for value in part.values():
            yield from references(value)
    elif isinstance(part, list):
        for value in part:
            yield from references(value)


def resolve(reference: str) -> Json:
    part: Json = DOCUMENT
    for name in reference.removeprefix("#/").split("/"):
        part = part[name.replace("~1", "/")]
    return part


def test_every_reference_resolves() -> None:
    named = set(references(DOCUMENT))
    assert named and all(isinstance(resolve(one), dict) for one in named)


def test_required_parts() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= DOCUMENT["info"].keys()
    for operation in DOCUMENT["operations"].values():
        assert operation["action"] in ("send", "receive")
        of_channel = resolve(operation["channel"]["$ref"])["messages"]
        assert {one["$ref"].rpartition("/")[2] for one in operation["messages"]} <= set(of_channel)
    assert DOCUMENT["channels"]["answers"]["address"] == "the.answers"


@pytest.mark.parametrize("channel", ["webhook", "stream", "amqp"])
def test_every_channel_sends_every_event(channel: str) -> None:
    messages = DOCUMENT["components"]["messages"]
    carried = {messages[name]["name"] for name in DOCUMENT["channels"][channel]["messages"]}
    assert set(SCHEMAS) <= carried


@pytest.mark.parametrize(
    ("answer", "fits"),
    [
        *[({"decision": one.value, "token": "t"}, True) for one in Decision],
        ({"decision": "continue"}, False),
        ({"decision": "maybe", "token": "t"}, False),
        ({"decision": "continue", "token": "t", "colour": "red"}, False),
    ],
)
def test_the_schema_of_an_answer(answer: Json, fits: bool) -> None:
    schema = DOCUMENT["components"]["messages"]["answer"]["payload"]
    assert jsonschema_rs.is_valid(schema, answer) is fits
