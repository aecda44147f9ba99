"""The schema of resource types, as the language uses it."""

import pytest

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Grouping,
    Kind,
    Property,
    TypeSchema,
)
from tests.unit.hot.hot_support import TYPES, defined, faults

GROUPING = Grouping(
    lambda properties: None, lambda properties: None, lambda place: place, of_each=True
)


def group(of_members: frozenset[str] | None) -> TypeSchema:
    return TypeSchema("Group", grouping=GROUPING, member_attributes=of_members)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("address", True),
        ("show", True),
        ("resource.0", True),
        ("resource.0.address", True),
        ("resource.0.resource.db", True),
        ("resource.0.adress", False),
        ("adress", False),
    ],
)
def test_attributes_of_members_are_those_of_their_type_and_nested_resources(
    name: str, there: bool
) -> None:
    assert group(frozenset({"address"})).has_attribute(name) is there
    assert group(None).has_attribute("whatever")


def test_reference_and_attributes_can_be_secret() -> None:
    assert TypeSchema("T", secret_reference=True).has_secrets()
    assert TypeSchema("T", attributes={"a": Attribute(), "b": Attribute(secret=True)}).has_secrets()
    assert not TypeSchema("T", attributes={"a": Attribute()}).has_secrets()


def test_item_constraints_apply_to_known_items_and_length_constraints_to_all() -> None:
    allowed = Constraint("allowed_values", allowed=("a", "b"))
    listed = TypeSchema(
        "Listed",
        {
            "names": Property(Kind.LIST, constraints=(allowed,)),
            "few": Property(Kind.LIST, constraints=(Constraint("length", max=1),)),
        },
    )
    types = TYPES | {"Listed": listed}
    late = {"get_attr": ["b", "output"]}
    b = {"type": "Test::Thing"}

    def template(**properties: object) -> dict[str, object]:
        return {"resources": {"a": {"type": "Listed", "properties": properties}, "b": b}}

    defined(template(names=["a", late], few=[late]), types=types)
    (one,) = faults(template(names=["c", late]), types=types)
    assert one.place == "resources.a.properties.names" and '"c"' in one.reason
    (one,) = faults(template(few=["a", late]), types=types)
    assert one.place == "resources.a.properties.few"
