"""Routing keys of arbitrary events, and arbitrary messages."""

from hypothesis import given
from hypothesis import strategies as st

from channels.amqp.answer_queue import InvalidMessage, read
from channels.amqp.publisher import routing_key
from tests.unit.channels.test_amqp import make_message


@given(project=st.text(max_size=300), name=st.text(max_size=300))
def test_every_routing_key_has_a_valid_length_and_the_same_number_of_words(
    project: str, name: str
) -> None:
    key = routing_key(make_message({"stack": {"project": project, "name": name}}))
    assert len(key.encode()) <= 255
    assert key.startswith("headgate.hook.waiting.") and key.count(".") <= 4
    assert not {"*", "#"} & set(key)


@given(body=st.binary(max_size=200), correlation=st.none() | st.text(max_size=50))
def test_every_message_is_parsed_or_refused_with_a_reason(
    body: bytes, correlation: str | None
) -> None:
    try:
        read(correlation, body)
    except InvalidMessage as refused:
        assert str(refused)
