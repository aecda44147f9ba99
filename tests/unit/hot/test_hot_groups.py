"""Members of groups, as the language looks at them before there are any."""

import pytest

from engine.errors import LimitReached
from engine.hot.nesting import Nesting
from engine.types.groups.resource_group import ResourceGroup
from tests.unit.hot.hot_support import TYPES, defined, thing
from tests.unit.hot.nested_support import template

GROUP = ResourceGroup().schema
SERVER = {"server.yaml": template(resources={"x": thing(), "y": thing()})}


@pytest.mark.parametrize(
    ("type_", "count"),
    [("Test::Thing", 1 + 4), ("server.yaml", 1 + 4 * 3)],
    ids=["plain", "with what is inside of each"],
)
def test_members_are_counted_with_all_that_each_holds(type_: str, count: int) -> None:
    group = {"type": GROUP.name, "properties": {"count": 4, "resource_def": {"type": type_}}}

    def made(most: int) -> None:
        nesting = Nesting(SERVER, most_resources=most)
        defined({"resources": {"g": group}}, types=TYPES | {GROUP.name: GROUP}, nesting=nesting)

    made(count)
    with pytest.raises(LimitReached):
        made(count - 1)
