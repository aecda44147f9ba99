"""Which responses request fewer requests, and for how long."""

import pytest

from engine.types.http_client import Response, throttling

DATE = "Tue, 01 Dec 2026 10:00:00 GMT"


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, {}, 0.0),
        (429, {"retry-after": "120"}, 120.0),
        (503, {"retry-after": "7"}, 7.0),
        (503, {}, None),
        (500, {"retry-after": "7"}, None),
        (200, {"retry-after": "7"}, None),
        # A date counts from that of the response: the clocks may differ.
        (429, {"retry-after": "Tue, 01 Dec 2026 10:05:00 GMT", "date": DATE}, 300.0),
        (429, {"retry-after": "Tue, 01 Dec 2026 09:00:00 GMT", "date": DATE}, 0.0),
        (503, {"retry-after": "Tue, 01 Dec 2026 10:05:00 GMT"}, None),
        # What is not valid is as if there were none.
        (429, {"retry-after": "soon"}, 0.0),
        (503, {"retry-after": "-3"}, None),
        (503, {"retry-after": "9" * 40}, None),
        (503, {"retry-after": "٣"}, None),
        (503, {"retry-after": "Tue, 01 Dec 2026 10:05:00 -0000", "date": DATE}, None),
    ],
)
def test_throttling(status: int, headers: dict[str, str], seconds: float | None) -> None:
    assert throttling(Response(status, headers, b"")) == seconds
