"""The messages to a broker, and the parsing of answers."""

from datetime import UTC, datetime
from uuid import uuid4

import orjson
import pytest

from channels.amqp.answer_queue import read
from channels.amqp.publisher import message_of, routing_key
from channels.contract import EventMessage
from engine.words import Json

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def make_message(data: Json, *, waiting: bool = False) -> EventMessage:
    return EventMessage("an-id", "headgate.hook.waiting", {"data": data}, NOW, waiting)


@pytest.mark.parametrize(
    ("stack", "key"),
    [
        ({"project": "demo", "name": "web"}, "headgate.hook.waiting.demo.web"),
        ({"project": "a.b", "name": "c#*.d"}, "headgate.hook.waiting.a_b.c___d"),
        ({"project": "", "name": "web"}, "headgate.hook.waiting._.web"),
        (None, "headgate.hook.waiting._._"),
    ],
)
def test_routing_keys_begin_with_the_event_type(stack: Json, key: str) -> None:
    assert routing_key(make_message({"stack": stack} if stack else {})) == key


def test_only_hook_notifications_have_a_reply_queue() -> None:
    hook = {"hook": {"id": "h"}, "token": "t"}
    waiting = message_of(make_message(hook, waiting=True), "answers")
    assert (waiting.reply_to, waiting.correlation_id) == ("answers", "h")
    of_another = message_of(make_message(hook | {"token": None}, waiting=True), "answers")
    for over in (message_of(make_message(hook), "answers"), of_another):
        assert (over.reply_to, over.correlation_id) == (None, None)


def test_the_parsed_answer_does_not_contain_its_token() -> None:
    hook = uuid4()
    body = orjson.dumps({"token": "t", "decision": "continue", "data": [1]})
    assert read(str(hook), body) == (hook, "t", {"decision": "continue", "data": [1]})
