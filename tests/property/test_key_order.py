"""The order of keys that is stored beside a document gives back the document that was sent."""

import json

from hypothesis import given
from hypothesis import strategies as st

from engine.store.key_order import in_order, order_of
from engine.words import Json

KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def as_jsonb(document: Json) -> Json:
    """The document as PostgreSQL returns it: keys by their length in bytes, then by bytes."""
    if isinstance(document, list):
        return [as_jsonb(one) for one in document]
    if not isinstance(document, dict):
        return document
    names = sorted(document, key=lambda name: (len(name.encode()), name.encode()))
    return {name: as_jsonb(document[name]) for name in names}


@given(DOCUMENTS)
def test_a_document_is_read_in_the_order_in_which_it_was_sent(document: Json) -> None:
    order = order_of(document)
    assert json.dumps(in_order(as_jsonb(document), order)) == json.dumps(document)
    is_plain = json.dumps(as_jsonb(document)) == json.dumps(document)
    assert (order is None) == is_plain
    # It is stored as JSON, whose keys are texts.
    assert json.loads(json.dumps(order)) == order
