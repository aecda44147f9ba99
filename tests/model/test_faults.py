"""The rules see what they are for: each is shown a mistake, and must find it."""

from collections.abc import Iterator

import pytest

from tests.model import telling
from tests.model.explore import explore
from tests.model.faults import FAULTS, Fault


@pytest.fixture
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fault]:
    chosen: Fault = request.param
    telling.decided.cache_clear()
    with monkeypatch.context() as broken:
        broken.setattr(chosen.module, chosen.name, chosen.wrong)
        yield chosen
    telling.decided.cache_clear()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.what, indirect=True)
def test_a_mistake_is_seen(fault: Fault) -> None:
    found = explore(fault.size, behind=fault.behind).violations
    assert fault.breaks in found, sorted(found)
    print(f"{fault.what}: {found[fault.breaks]}")
