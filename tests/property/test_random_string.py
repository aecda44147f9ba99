"""Random strings of arbitrary lengths and character classes."""

from hypothesis import given
from hypothesis import strategies as st

from engine.types.random_string import SEQUENCES
from engine.words import Json
from tests.unit.types.test_random_string import random_string

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


def count(text: str, letters: str) -> int:
    return sum(text.count(character) for character in set(letters))


@given(CLASSES, st.lists(ONE_SEQUENCE, max_size=3), st.integers(0, 100), st.integers())
def test_length_and_minimums_hold(
    classes: list[Json], sequences: list[Json], more: int, seed: int
) -> None:
    length = sum(one["min"] for one in [*classes, *sequences]) + more
    text = random_string(
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
    text = random_string({"length": length, "sequence": name}, seed)
    assert len(text) == length
    assert set(text) <= set(SEQUENCES[name])
