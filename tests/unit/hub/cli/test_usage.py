"""headgate usage: what it prints besides the table of days."""

from hub.cli.usage import paused_text


def test_an_endpoint_that_makes_the_project_wait_has_a_line() -> None:
    reason = "the budget of 12 requests per minute is used up"
    paused = {"endpoint": "https://a.example.org", "until": "2026-11-28T09:00:00Z"}
    assert paused_text(paused | {"reason": reason}) == (
        f"paused until 2026-11-28T09:00:00Z: https://a.example.org: {reason}"
    )
