"""When a watched hook is replaced, and by what."""

import pytest

from engine.hooks.hook_watch import MAX_RENEWALS, ObservedObject, renew
from engine.words import Json, ObservedState

SHOWN: Json = {"operation": "update", "changes": {"size": {"from": 1, "to": 2}}}
PRESENT = ObservedObject(ObservedState.PRESENT)
MISSING = ObservedObject(ObservedState.MISSING, (), "404", "2026-12-01T10:00:00+00:00")


def changed(*paths: str, observed: Json = 7) -> ObservedObject:
    differences = [{"path": path, "desired": 1, "observed": observed} for path in paths]
    return ObservedObject(ObservedState.CHANGED, differences, "", "2026-12-01T10:00:00+00:00")


def renewed(found: ObservedObject, shown: Json = None) -> dict[str, Json]:
    new = renew(shown or SHOWN, found, "h1")
    assert new is not None
    return new


@pytest.mark.parametrize(
    "found", [PRESENT, ObservedObject(ObservedState.UNKNOWN, (), "it does not answer")]
)
def test_what_has_not_changed_or_is_not_known_stays(found: ObservedObject) -> None:
    assert renew(SHOWN, found, "h1") is None


def test_an_unknown_state_after_a_change_stays() -> None:
    unknown = ObservedObject(ObservedState.UNKNOWN, (), "it does not answer")
    assert renew(renewed(MISSING), unknown, "h2") is None


def test_a_change_is_shown_beside_the_plan() -> None:
    new = renewed(changed("$.size"))
    assert {key: new[key] for key in SHOWN} == SHOWN
    assert new["drift"] == changed("$.size").as_document()
    reason = "the resource has changed: $.size"
    assert new["renewed"] == {"times": 1, "previous": "h1", "reason": reason}


def test_only_another_difference_asks_again() -> None:
    first = renewed(changed("$.size"))
    assert renew(first, changed("$.size"), "h2") is None
    second = renew(first, changed("$.size", observed=8), "h2")
    assert second is not None and second["renewed"]["previous"] == "h2"
    assert second["renewed"]["times"] == 2


def test_the_end_of_a_change_asks_again_without_it() -> None:
    ended = renew(renewed(MISSING), PRESENT, "h2")
    assert ended is not None and "drift" not in ended
    assert ended["renewed"]["reason"] == "the resource is as recorded again"
    assert renew(ended, PRESENT, "h3") is None


def test_a_reason_names_the_first_paths() -> None:
    new = renewed(changed("$.a", "$.b", "$.c", "$.d", "$.e"))
    assert new["renewed"]["reason"] == "the resource has changed: $.a, $.b, $.c and 2 more"


def test_the_number_of_renewals_is_limited() -> None:
    last = SHOWN | {"renewed": {"times": MAX_RENEWALS, "previous": "h0", "reason": ""}}
    assert renew(last, MISSING, "h1") is None
