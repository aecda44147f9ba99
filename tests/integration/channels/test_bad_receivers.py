"""Every kind of bad receiver at once beside good ones: the delivery history of each."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.support.bad_receivers import Fault, answers, drips, hangs, pours, says, serving
from tests.support.certificates import Authority, Pair
from tests.support.program import Json, Program, eventually, free_port, program, resource
from tests.support.receiver import Receiver, receiving, until

HELD = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
NOTICE = "headgate.hook.waiting"
HERE = "127.0.0.1"
LATE = "no whole answer within 2 s"
CLOSED = "the connection was closed before the response was complete"
REDIRECTS = "it redirects, which is not followed"
UNSAFE = "no secure connection to 127.0.0.1: "
LAST = "select sequence from stack where name = $1"

#: Arguments: a trusted certificate authority, and another one.
Certified = Callable[[Authority, Authority], Pair]


@dataclass(frozen=True)
class Case:
    """The expected delivery of the hook notification. error: a pattern. fault: None: no server."""

    name: str
    fault: Fault | None
    state: str
    attempts: int
    code: int | None
    error: str | None = None
    certified: Certified | None = None


def dead(name: str, fault: Fault | None, code: int | None, error: str) -> Case:
    """Dead after two attempts."""
    return Case(name, fault, "dead", 2, code, f"{error}; 2 attempts failed")


def fine(name: str, fault: Fault, error: str | None = None) -> Case:
    return Case(name, fault, "delivered", 1, 200, error)


def unsafe(name: str, error: str, certified: Certified) -> Case:
    said = f"{UNSAFE}{error}; 2 attempts failed"
    return Case(name, answers("200 OK"), "dead", 2, None, said, certified)


CASES = [
    dead("hangs", hangs, None, LATE),
    dead("drips", drips, None, LATE),
    dead("500", answers("500 Oh"), 500, "it answered 500"),
    dead("404", answers("404 No"), 404, "it answered 404"),
    dead("redirects", answers("302 Found", "Location: http://127.0.0.1:1/"), 302, REDIRECTS),
    Case("429, later", answers("429 Slow", "Retry-After: 3600"), "pending", 1, 429, "it answered 429"),
    dead("429, now", answers("429 Slow", "Retry-After: 0"), 429, "it answered 429"),
    Case("410", answers("410 Gone"), "dead", 1, 410, "it answered 410; the endpoint is gone"),
    dead("no server", None, None, r"no connection to 127\.0\.0\.1:\d+: .*"),
    dead("closes", says(b""), None, CLOSED),
    dead("half an answer", says(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"), None,
         "no whole answer: ClientPayloadError"),
    dead("no HTTP", says(b"\x00\xff no HTTP\r\n\r\n"), None, "no whole answer: ClientResponseError"),
    dead("endless header", says(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000), None,
         "no whole answer: ClientResponseError"),
    fine("huge body", pours, "the response is too long and was not read, so a decision in it is ignored"),
    fine("no JSON", answers("200 OK", "Content-Type: application/json", body=b'{"decision": ')),
    fine("no decision", answers("200 OK", body=b'{"decision": "burn"}'),
         "the decision in the response is unknown; it must be .*"),
    unsafe("self-signed", "self-signed certificate", lambda _, other: other.itself(HERE)),
    unsafe("a stranger's word", "unable to get local issuer certificate",
           lambda _, other: other.pair("one", HERE)),
    unsafe("expired", "certificate has expired",
           lambda ours, _: ours.pair("two", HERE, expired=True)),
    unsafe("wrong name", "IP address mismatch, certificate is not valid for '127.0.0.1'",
           lambda ours, _: ours.pair("three", "127.0.0.2")),
    Case("good certificate", answers("200 OK"), "delivered", 1, 200, None,
         lambda ours, _: ours.pair("four", HERE)),
]  # fmt: skip


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def run(database_url: str, authority: Authority) -> AsyncIterator[Program]:
    said = {"channels.webhook.attempts": 2, "channels.webhook.timeout": "2s",
            "channels.webhook.connect_timeout": "2s",
            "channels.webhook.ca_file": str(authority.file)}  # fmt: skip
    async with program(database_url, said) as made:
        yield made


async def test_the_history_of_bad_receivers_and_the_good_one_gets_everything(
    run: Program, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "other")
    async with AsyncExitStack() as stack:
        good = await stack.enter_async_context(receiving())
        healthy = await subscribed(run, good.url)
        listening: dict[str, str] = {}
        for case in CASES:
            target = f"http://{HERE}:{free_port()}/"
            if case.fault is not None:
                pair = case.certified(authority, other) if case.certified else None
                target = await stack.enter_async_context(serving(case.fault, pair))
            listening[case.name] = await subscribed(run, target, events=[NOTICE])
        await run.create("s", {"a": resource()}, environment=HELD)
        await eventually(
            lambda: none_left(run, [listening[c.name] for c in CASES if c.state == "dead"])
        )
        log = {name: await notice(run, one) for name, one in listening.items()}
        wrong = [
            f"{case.name}: {log[case.name]}"
            for case in CASES
            if not as_expected(case, log[case.name])
        ]
        assert not wrong, "\n".join(wrong)
        # It requested an hour; the settings allow 15 minutes, and the usual wait is a second.
        waits = log["429, later"]
        pause = datetime.fromisoformat(waits["next_at"]) - datetime.fromisoformat(
            waits["created_at"]
        )
        assert pause > timedelta(minutes=14) and waits["settled_at"] is None
        # The subscription of the endpoint that is gone is disabled.
        _, gone = await run.call("GET", f"/subscriptions/{listening['410']}")
        assert (gone["state"], gone["reason"]) == (
            "disabled",
            "its endpoint answered that it is permanently gone",
        )
        # No receiver delayed another one, and none of their responses decided the hook.
        arrived = (await notice(run, healthy))["settled_at"]
        assert arrived < min(log[name]["settled_at"] for name in ("hangs", "drips"))
        (hook,) = await run.waiting("s")
        await run.signal(hook)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        await until(lambda: has_all(run, good))
    attempts = sum(one["attempts"] for one in log.values())
    print(
        f"{len(CASES)} receivers, {attempts} attempts, each as expected; {len(good.events)} events beside"
    )


async def subscribed(run: Program, target: str, **more: Json) -> str:
    status, said = await run.call("POST", "/subscriptions", {"target": target, **more})
    assert status == 201, said
    return str(said["id"])


async def notice(run: Program, subscription: str) -> Json:
    """The delivery of the hook notification in the history."""
    _, said = await run.call("GET", f"/subscriptions/{subscription}/deliveries")
    (one,) = [each for each in said["deliveries"] if each["type"] == NOTICE]
    return one


async def none_left(run: Program, subscriptions: list[str]) -> bool:
    for one in subscriptions:
        _, said = await run.call("GET", f"/subscriptions/{one}/deliveries")
        if [each["state"] for each in said["deliveries"]] != ["dead"]:
            return False
    return True


def as_expected(case: Case, log: Json) -> bool:
    if (log["state"], log["attempts"], log["code"]) != (case.state, case.attempts, case.code):
        return False
    if case.error is None or log["error"] is None:
        return bool(case.error == log["error"])
    return re.fullmatch(case.error, log["error"]) is not None


async def has_all(run: Program, good: Receiver) -> bool:
    """Every event of the stack, in order, once."""
    async with run.database.connection() as conn:
        last = await conn.fetchval(LAST, "s")
    found = [one["sequence"] for one in good.events if one["source"].startswith("/v1/p/stacks/s/")]
    return found == list(range(1, last + 1))
