"""headgate usage: what it prints besides the table of days."""

from hub.cli.commands.usage import paused_text, requested_text


def test_the_requests_of_today_are_shown_beside_the_budget() -> None:
    one = {"endpoint": "https://a.example.org", "requests": 12}
    assert requested_text(one | {"requests_per_minute": None, "used": None}) == (
        "https://a.example.org: 12 requests today"
    )
    assert requested_text(one | {"requests_per_minute": 60.0, "used": 3}) == (
        "https://a.example.org: 12 requests today, 3 of 60 per minute used"
    )


def test_an_endpoint_that_makes_the_project_wait_has_a_line() -> None:
    reason = "the budget of 12 requests per minute is used up"
    paused = {"endpoint": "https://a.example.org", "until": "2026-11-28T09:00:00Z"}
    assert paused_text(paused | {"reason": reason}) == (
        f"paused until 2026-11-28T09:00:00Z: https://a.example.org: {reason}"
    )
