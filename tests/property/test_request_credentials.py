"""Credentials in arbitrary request headers."""

from hypothesis import HealthCheck, settings
from hypothesis import given as draw
from hypothesis import strategies as st

from hub.auth.request_credentials import RequestCredentials, request_credentials


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # it imports as it begins
@draw(st.dictionaries(
    st.sampled_from(["Authorization", "X-Auth-Token", "X-Auth-User", "X-Auth-Key", "X-Roles",
                     "X-Headgate-Credential"]),
    st.text(max_size=60)
    | st.sampled_from(["Basic", "Basic YTpi", "Bearer", "bearer x", "Basic é"]),
))  # fmt: skip
def test_credentials_in_any_headers_are_parsed_and_never_shown(headers: dict[str, str]) -> None:
    found = request_credentials(headers)
    shown = RequestCredentials(user=found.user, claimed_roles=found.claimed_roles)
    assert repr(found) == repr(shown)  # nothing else is in it
