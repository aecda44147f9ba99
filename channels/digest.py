"""Digests: a subscription for people gets the notifications of a period in one message."""

from datetime import datetime
from typing import Final

from channels.quiet_hours import check_can_wait, quiet_until
from engine.digest import Digest, read_digest_period
from engine.errors import Findings
from engine.weekly_window import WeeklyWindow
from engine.words import Json

#: The beginning of the reason of a delivery that waits for a digest. The time of that follows.
GATHERED: Final = "held for the digest at "


def read_digest(
    value: Json, place: str, channel: str, findings: Findings, *, ordered: bool
) -> Digest | None:
    """The digest, or None after a finding, and if there is none."""
    if value is None:
        return None
    before = len(findings.all)
    check_can_wait("digests", place, channel, findings, ordered=ordered)
    digest = read_digest_period(value, place, findings)
    return digest if len(findings.all) == before else None


def stored_digest(stored: Json) -> Digest | None:
    """The digest of a stored subscription, which was valid. Raises Invalid if the system no longer
    knows the time zone."""
    findings = Findings()
    digest = read_digest_period(stored, "digest", findings)
    findings.raise_if_any()
    return digest


def digest_time(digest: Digest, quiet: WeeklyWindow | None, now: datetime) -> datetime:
    """When the next digest is sent: at the end of the quiet hours if it would be in them."""
    at = digest.after(now)
    return (quiet_until(quiet, at) if quiet else None) or at
