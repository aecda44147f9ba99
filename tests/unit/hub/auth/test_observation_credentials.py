"""Which application credentials are fit for observations of a project."""

from dataclasses import replace
from typing import Any

import pytest

from engine.errors import Invalid
from hub.auth.keystone_client import ApplicationCredential
from hub.auth.observation_credentials import check

FIT = ApplicationCredential("c", "name", "u", "ann", "p", ("reader",), True, False)


def test_a_restricted_credential_of_the_project_is_fit() -> None:
    check("p", FIT)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"project_id": "q"}, "another project"), ({"is_restricted": False}, "unrestricted")],
)
def test_others_are_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as caught:
        check("p", replace(FIT, **change))
    [finding] = caught.value.findings
    assert finding.place == "application_credential_id" and finding.remedy
