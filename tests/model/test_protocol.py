"""Small stacks, explored whole: every order of things, every rule in each state."""

import pytest

from tests.model import sizes
from tests.model.explore import explored
from tests.model.world import Size


@pytest.mark.parametrize("size", sizes.ALL, ids=lambda size: size.name)
def test_nothing_breaks_a_rule_but_what_is_known_to(size: Size) -> None:
    found = explored(size)
    print(f"{size.name}: {found.states} states, {found.steps} moves, {found.ends} ends")
    new = [str(one) for rule, one in found.violations.items() if rule not in size.known]
    assert not new, "\n\n".join(new)
    mended = size.known - found.violations.keys()
    assert not mended, f"these are kept now; take them out of `known`: {sorted(mended)}"
    assert found.ends
