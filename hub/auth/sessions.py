"""Sessions of browsers: a cookie that holds, sealed, what its owner presented once.

The server keeps nothing: what was presented is judged anew at each request, so a session ends when
its token is revoked. A browser sends cookies by itself, so whatever changes something has to show
a second secret, which only a page of ours can read (a CSRF token).
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from engine.errors import Forbidden, HeadgateError
from engine.store.sealing import Sealed, Sealer
from hub.auth.gatekeeper import UNAUTHORIZED
from hub.auth.presented import Presented

COOKIE = "headgate_session"
CSRF_HEADER = "X-CSRF-Token"
#: Methods that change nothing.
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: What sessions are sealed for, in the place of a stack.
_FOR = UUID("0d8a0f57-6a3e-4f0b-9f53-3d2f5b7a9c11")


@dataclass(frozen=True, slots=True)
class Session:
    """until: when it ends, in seconds since 1970."""

    presented: Presented = field(repr=False)
    csrf: str = field(repr=False)
    until: float


class Sessions:
    """lasts: seconds. clock: seconds since 1970. new_secret: a text nobody can guess."""

    def __init__(
        self,
        sealer: Sealer,
        *,
        lasts: float,
        clock: Callable[[], float],
        new_secret: Callable[[], str],
    ) -> None:
        self._sealer = sealer
        self.lasts = lasts
        self._clock = clock
        self._new_secret = new_secret

    def begin(self, presented: Presented) -> tuple[str, Session]:
        """The cookie's value, and what is in it."""
        session = Session(presented, self._new_secret(), self._clock() + self.lasts)
        said = [
            presented.token, presented.bearer, presented.user, presented.password,
            session.csrf, session.until,
        ]  # fmt: skip
        return self._sealer.seal(_FOR, orjson.dumps(said).decode()).hex(), session

    def read(self, cookie: str) -> Session:
        """Raises HeadgateError with the code Unauthorized."""
        try:
            token, bearer, user, password, csrf, until = orjson.loads(
                self._sealer.open(_FOR, bytes.fromhex(cookie))
            )
        except (Sealed, ValueError):
            raise _over() from None
        if self._clock() >= until:
            raise _over()
        presented = Presented(token=token, bearer=bearer, user=user, password=password)
        return Session(presented, csrf, until)


def check_origin(session: Session, method: str, csrf: str, fetch_site: str) -> None:
    """Whether a page of ours sent this. csrf: the header; fetch_site: ``Sec-Fetch-Site``.

    Raises Forbidden.
    """
    if method in SAFE:
        return
    check_site(fetch_site)
    if not hmac.compare_digest(csrf.encode(), session.csrf.encode()):
        raise _of_another_site()


def check_site(fetch_site: str) -> None:
    """Whether a browser says that a page of another site sent this. Raises Forbidden."""
    if fetch_site not in ("", "same-origin", "none"):
        raise _of_another_site()


def _of_another_site() -> Forbidden:
    return Forbidden(
        "this was not sent by a page of this server",
        remedy=f"Send {CSRF_HEADER} with the `csrf` of GET .../session, or a token in place of"
        " the cookie.",
        code="CrossSiteRequest",
    )


def _over() -> HeadgateError:
    return HeadgateError("the session is over", remedy="Sign in again.", code=UNAUTHORIZED)
