"""OS::Heat::RandomString: length, minimums, sequences, randomness of its own."""

import random
from collections import Counter

import pytest

from engine.errors import Invalid
from engine.types.contract import Done, Failed
from engine.types.random_string import RandomString
from engine.words import Json
from tests.unit.types.calls import a_call, findings_of


def random_string(properties: dict[str, Json], seed: int = 1) -> str:
    type_ = RandomString(random.Random(seed))
    outcome = type_.create(a_call(type_, properties))
    assert isinstance(outcome, Done)
    assert type_.reference("r", outcome.physical_id, outcome.data) == outcome.attributes["value"]
    return str(outcome.attributes["value"])


def test_a_sequence_leaves_character_sequences_alone() -> None:
    text = random_string(
        {"length": 8, "sequence": "digits", "character_sequences": [{"sequence": "#", "min": 3}]}
    )
    assert set(text) <= set("#0123456789")
    assert text.count("#") >= 3


def test_the_default_is_32_letters_and_digits() -> None:
    text = random_string({})
    assert len(text) == 32
    assert text.isalnum()
    assert text.isascii()


def test_every_create_generates_a_new_string() -> None:
    type_ = RandomString(random.Random(5))
    call = a_call(type_, {})
    texts = [
        one.attributes["value"] for _ in range(20) if isinstance(one := type_.create(call), Done)
    ]
    assert len(set(texts)) == 20


def test_required_characters_are_spread_over_the_text() -> None:
    wanted = {
        "length": 10,
        "character_classes": [{"class": "digits", "min": 1}, {"class": "lowercase", "min": 9}],
    }
    at = Counter(
        next(
            place
            for place, character in enumerate(random_string(wanted, seed))
            if character.isdigit()
        )
        for seed in range(300)
    )
    assert len(at) == 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"length": 2, "character_classes": [{"class": "digits", "min": 3}]},
        {"length": 1, "character_sequences": [{"sequence": "ab", "min": 1}]},
        {"character_classes": [{"class": "digits", "min": 30}, {"class": "letters", "min": 3}]},
    ],
)
def test_minimums_above_the_length_are_refused(wrong: dict[str, Json]) -> None:
    type_ = RandomString(random.Random(1))
    assert isinstance(type_.create(a_call(type_, wrong)), Failed)
    (finding,) = findings_of(type_, wrong)
    assert finding.place == "resources.r.properties.length"
    assert "characters that are required" in finding.reason
    assert finding.remedy


@pytest.mark.parametrize(
    "wrong",
    [
        {"length": 0},
        {"length": 513},
        {"sequence": "emoji"},
        {"character_classes": [{"class": "emoji"}]},
        {"character_classes": [{"min": 0}]},
        {"character_sequences": [{"min": 1}]},
        {"character_sequences": [{"sequence": ""}]},
        {"size": 3},
    ],
)
def test_invalid_properties_are_refused(wrong: dict[str, Json]) -> None:
    with pytest.raises(Invalid):
        a_call(RandomString(random.Random(1)), wrong)
