"""OS::Heat::RandomString: length, minimums, sequences, randomness of its own."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import Invalid
from engine.types.contract import Done, Failed
from engine.types.random_string import SEQUENCES, RandomString
from engine.words import Json
from tests.unit.types.calls import a_call, findings_of

MINIMUMS = st.integers(1, 20)
CLASSES = st.lists(
    st.fixed_dictionaries({"class": st.sampled_from(sorted(SEQUENCES)), "min": MINIMUMS}),
    min_size=1,
    max_size=4,
)
#: Letters of no class, so that each sequence can be counted for itself.
OWN = "äöüßéèçñøåæþ"
ONE_SEQUENCE = st.fixed_dictionaries(
    {"sequence": st.text(st.sampled_from(OWN), min_size=1, max_size=6), "min": MINIMUMS}
)


def made(properties: dict[str, Json], seed: int = 1) -> str:
    type_ = RandomString(random.Random(seed))
    outcome = type_.create(a_call(type_, properties))
    assert isinstance(outcome, Done)
    assert type_.reference("r", outcome.physical_id, outcome.data) == outcome.attributes["value"]
    return str(outcome.attributes["value"])


def count(text: str, letters: str) -> int:
    return sum(text.count(letter) for letter in set(letters))


@given(CLASSES, st.lists(ONE_SEQUENCE, max_size=3), st.integers(0, 100), st.integers())
def test_holds_length_and_minimums(
    classes: list[Json], sequences: list[Json], more: int, seed: int
) -> None:
    length = sum(one["min"] for one in [*classes, *sequences]) + more
    text = made(
        {"length": length, "character_classes": classes, "character_sequences": sequences}, seed
    )
    assert len(text) == length
    wanted = [(SEQUENCES[one["class"]], one["min"]) for one in classes]
    wanted += [(one["sequence"], one["min"]) for one in sequences]
    for letters, least in wanted:
        assert count(text, letters) >= least
    assert set(text) <= set("".join(letters for letters, _ in wanted))


@given(st.sampled_from(sorted(SEQUENCES)), st.integers(1, 512), st.integers())
def test_a_sequence_is_the_only_class(name: str, length: int, seed: int) -> None:
    text = made({"length": length, "sequence": name}, seed)
    assert len(text) == length
    assert set(text) <= set(SEQUENCES[name])


def test_a_sequence_leaves_character_sequences_alone() -> None:
    text = made(
        {"length": 8, "sequence": "digits", "character_sequences": [{"sequence": "#", "min": 3}]}
    )
    assert set(text) <= set("#0123456789")
    assert text.count("#") >= 3


def test_by_default_32_letters_and_digits() -> None:
    text = made({})
    assert len(text) == 32
    assert text.isalnum()
    assert text.isascii()


def test_every_create_makes_a_fresh_one() -> None:
    type_ = RandomString(random.Random(5))
    call = a_call(type_, {})
    texts = [
        one.attributes["value"] for _ in range(20) if isinstance(one := type_.create(call), Done)
    ]
    assert len(set(texts)) == 20


def test_the_least_letters_are_spread_over_the_text() -> None:
    wanted = {
        "length": 10,
        "character_classes": [{"class": "digits", "min": 1}, {"class": "lowercase", "min": 9}],
    }
    at = Counter(
        next(place for place, letter in enumerate(made(wanted, seed)) if letter.isdigit())
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
def test_the_schema_refuses(wrong: dict[str, Json]) -> None:
    with pytest.raises(Invalid):
        a_call(RandomString(random.Random(1)), wrong)
