"""What is sent to a broker, and what is read from it."""

from datetime import UTC, datetime
from uuid import uuid4

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.amqp.answers import Refused, read
from channels.amqp.publisher import message_of, routing_key
from channels.contract import EventMessage
from engine.words import Json

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def a_letter(data: Json, *, waiting: bool = False) -> EventMessage:
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
def test_routing_keys_read_like_the_types(stack: Json, key: str) -> None:
    assert routing_key(a_letter({"stack": stack} if stack else {})) == key


@given(project=st.text(max_size=300), name=st.text(max_size=300))
def test_every_routing_key_fits_and_has_as_many_words(project: str, name: str) -> None:
    key = routing_key(a_letter({"stack": {"project": project, "name": name}}))
    assert len(key.encode()) <= 255
    assert key.startswith("headgate.hook.waiting.") and key.count(".") <= 4
    assert not {"*", "#"} & set(key)


def test_only_notices_of_waiting_hooks_say_where_answers_go() -> None:
    hook = {"hook": {"id": "h"}, "token": "t"}
    waiting = message_of(a_letter(hook, waiting=True), "answers")
    assert (waiting.reply_to, waiting.correlation_id) == ("answers", "h")
    of_another = message_of(a_letter(hook | {"token": None}, waiting=True), "answers")
    for over in (message_of(a_letter(hook), "answers"), of_another):
        assert (over.reply_to, over.correlation_id) == (None, None)


@given(body=st.binary(max_size=200), correlation=st.none() | st.text(max_size=50))
def test_whatever_comes_is_read_or_refused_in_words(body: bytes, correlation: str | None) -> None:
    try:
        read(correlation, body)
    except Refused as refused:
        assert str(refused)


def test_an_answer_is_read_without_its_token() -> None:
    hook = uuid4()
    body = orjson.dumps({"token": "t", "decision": "continue", "data": [1]})
    assert read(str(hook), body) == (hook, "t", {"decision": "continue", "data": [1]})
