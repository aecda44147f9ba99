"""Adopted values: when they replace the values of the template, and when they end."""

from dataclasses import replace

import pytest

from engine.plan.overrides import (
    Override,
    add_overrides,
    apply_overrides,
    decode_overrides,
    with_adopted,
)
from engine.words import Json


def override(template: Json, value: Json, *places: tuple[str, ...], by: str = "ann") -> Override:
    return Override("size", places or (("size",),), template, value, by, f"user:{by}", "2026-01-01")


@pytest.mark.parametrize(
    ("template", "size", "left"),
    [(3, 5, True), (5, 5, False), (7, 7, False), (None, None, False)],
    ids=["as it was", "agrees", "changed", "removed"],
)
def test_an_override_lasts_while_the_template_has_the_same_value(
    template: Json, size: Json, left: bool
) -> None:
    one = override(3, 5)
    properties, kept = apply_overrides({"size": template, "place": "here"}, [one])
    assert (properties, kept) == ({"size": size, "place": "here"}, [one] if left else [])


def test_all_places_of_an_override_change_together() -> None:
    one = override(3, 5, ("compare", "$.size"), ("update", "body", "size"))
    before = {"compare": {"$.size": 3, "$.a": 1}, "update": {"body": {"size": 3}, "url": "/"}}
    after, left = apply_overrides(before, [one])
    assert left == [one]
    assert after == {
        "compare": {"$.size": 5, "$.a": 1},
        "update": {"body": {"size": 5}, "url": "/"},
    }
    assert before["compare"] == {"$.size": 3, "$.a": 1}
    assert one.is_in(after) and not one.is_in(before)
    changed = before | {"update": {"body": {"size": 4}, "url": "/"}}
    assert apply_overrides(changed, [one]) == (changed, [])


def test_a_property_that_the_template_does_not_set_can_be_adopted() -> None:
    one = override(None, 5)
    assert apply_overrides({}, [one]) == ({"size": 5}, [one])
    assert with_adopted({"place": "here"}, [one]) == {"size": 5, "place": "here"}


def test_a_second_adoption_keeps_the_value_of_the_template() -> None:
    first = override(3, 5)
    (second,) = add_overrides({"size": 5}, [first], [override(5, 6, by="bob")])
    assert (second.template, second.value, second.by) == (3, 6, "bob")
    # The observed value is that of the template again.
    assert add_overrides({"size": 5}, [first], [override(5, 3)]) == []


def test_an_override_that_ended_unnoticed_says_nothing_about_the_template() -> None:
    (one,) = add_overrides({"size": 7}, [override(3, 5)], [override(7, 8)])
    assert (one.template, one.value) == (7, 8)


def test_a_place_can_have_the_values_in_another_form() -> None:
    places = (("compare", "$.note"), ("body",))
    one = replace(override("${a}", "${b}", *places), written=(("${a}", "${b}"), ("$${a}", "$${b}")))
    before, after = ({"compare": {"$.note": f"${{{x}}}"}, "body": f"$${{{x}}}"} for x in "ab")
    assert apply_overrides(before, [one]) == (after, [one])
    assert one.is_in(after) and not one.is_in(before)
    assert apply_overrides(before | {"body": "${a}"}, [one])[1] == []
    assert decode_overrides([one.encode()]) == [one]
    assert "written" not in override(1, 2).encode()  # as former releases store it
    (again,) = add_overrides(after, [one], [override("${b}", "two", *places)])
    assert (again.template, again.value) == ("${a}", "two")
    assert again.written == (("${a}", "two"), ("$${a}", "two"))


def test_overrides_are_stored_as_json() -> None:
    one = override({"a": [1]}, "five", ("compare", "$.size"))
    assert decode_overrides([one.encode()]) == [one]
    assert decode_overrides(None) == []
