"""Sessions of browsers: sealed in a cookie, until their time."""

import os

import pytest

from engine.errors import Forbidden, HeadgateError
from engine.store.sealing import Sealer
from hub.auth.presented import Presented
from hub.auth.sessions import Session, Sessions, check_origin


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def sessions(clock: Clock, key: bytes = b"k" * 32) -> Sessions:
    sealer = Sealer(key, random_bytes=os.urandom)
    return Sessions(sealer, lasts=60.0, clock=clock, new_secret=lambda: "of the page")


def test_a_session_holds_what_was_presented_until_its_time() -> None:
    clock = Clock()
    presented = Presented(token="t", bearer="b", user="ada", password="p")
    cookie, begun = sessions(clock).begin(presented)
    assert sessions(clock).read(cookie) == begun == Session(presented, "of the page", 1060.0)
    clock.now = 1059.9
    assert sessions(clock).read(cookie).presented == presented
    clock.now = 1060.0
    with pytest.raises(HeadgateError, match="the session is over") as over:
        sessions(clock).read(cookie)
    assert over.value.code == "Unauthorized"


def test_what_another_key_sealed_or_somebody_made_up_is_no_session() -> None:
    clock = Clock()
    cookie, _ = sessions(clock, b"o" * 32).begin(Presented(token="t"))
    changed = cookie[:40] + ("0" if cookie[40] != "0" else "1") + cookie[41:]
    for one in (cookie, changed, "", "zz", "00" * 40, "é"):
        with pytest.raises(HeadgateError, match="Sign in again"):
            sessions(clock).read(one)


@pytest.mark.parametrize(
    ("method", "csrf", "site", "allowed"),
    [
        ("GET", "", "cross-site", True),
        ("HEAD", "", "", True),
        ("POST", "of the page", "same-origin", True),
        ("POST", "of the page", "", True),
        ("POST", "of the page", "none", True),
        ("POST", "", "same-origin", False),
        ("POST", "of the pagé", "same-origin", False),
        ("DELETE", "of the page", "cross-site", False),
        ("PATCH", "of the page", "same-site", False),
        ("MADE-UP", "", "", False),
    ],
)
def test_what_changes_something_comes_from_a_page_of_ours(
    method: str, csrf: str, site: str, allowed: bool
) -> None:
    session = Session(Presented(token="t"), "of the page", 0.0)
    if allowed:
        check_origin(session, method, csrf, site)
    else:
        with pytest.raises(Forbidden, match="X-CSRF-Token"):
            check_origin(session, method, csrf, site)
