"""Arbitrary values in the paths of URLs."""

from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from engine.types.http.requests import fill_url


@given(st.text(min_size=1))
def test_a_value_stays_one_path_segment(value: str) -> None:
    if value in (".", "..") or any("\ud800" <= one <= "\udfff" for one in value):
        return
    url = URL(fill_url("https://h.example.org/things/${id}/rest?q=${id}&z=1", {"id": value}))
    assert url.host == "h.example.org" and url.raw_path.startswith("/things/")
    assert len(url.raw_parts) == 4 and url.raw_parts[-1] == "rest"
    assert url.parts[2] == value and url.fragment == ""
    assert dict(url.query) == {"q": value, "z": "1"}
