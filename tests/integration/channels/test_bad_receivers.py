"""Faulty receivers of every kind next to good ones: the delivery history of each."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.support.bad_receivers import (
    Fault,
    faulty_receiver,
    never_respond,
    respond,
    respond_endlessly,
    respond_slowly,
    send_bytes,
)
from tests.support.certificates import Authority, CertificateFiles
from tests.support.ports import free_port
from tests.support.program import Json, Program, eventually, program, resource
from tests.support.receiver import Receiver, running_receiver, until

HOOKS = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
NOTIFICATION = "headgate.hook.waiting"
LISTENING = "127.0.0.1"
TIMED_OUT = "no complete response within 2 s"
CLOSED = "the connection was closed before the response was complete"
REDIRECTS = "it redirects; redirects are not followed"
UNSAFE = "no secure connection to 127.0.0.1: "
LAST = "select sequence from stack where name = $1"

#: Arguments: a trusted certificate authority, and another one.
Certified = Callable[[Authority, Authority], CertificateFiles]


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


def delivered(name: str, fault: Fault, error: str | None = None) -> Case:
    return Case(name, fault, "delivered", 1, 200, error)


def unsafe(name: str, error: str, certified: Certified) -> Case:
    message = f"{UNSAFE}{error}; 2 attempts failed"
    return Case(name, respond("200 OK"), "dead", 2, None, message, certified)


CASES = [
    dead("hangs", never_respond, None, TIMED_OUT),
    dead("drips", respond_slowly, None, TIMED_OUT),
    dead("500", respond("500 Oh"), 500, "it answered 500"),
    dead("404", respond("404 No"), 404, "it answered 404"),
    dead("redirects", respond("302 Found", "Location: http://127.0.0.1:1/"), 302, REDIRECTS),
    Case("429, later", respond("429 Slow", "Retry-After: 3600"), "pending", 1, 429, "it answered 429"),
    dead("429, now", respond("429 Slow", "Retry-After: 0"), 429, "it answered 429"),
    Case("410", respond("410 Gone"), "dead", 1, 410, "it answered 410; the endpoint is gone"),
    dead("no server", None, None, r"no connection to 127\.0\.0\.1:\d+: .*"),
    dead("closes", send_bytes(b""), None, CLOSED),
    dead("half an answer", send_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"), None,
         "the response is incomplete"),
    dead("no HTTP", send_bytes(b"\x00\xff no HTTP\r\n\r\n"), None, "the response is not valid HTTP"),
    dead("endless header", send_bytes(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000), None,
         "the response is not valid HTTP"),
    delivered("huge body", respond_endlessly, "the response is too long and was not read, so a decision in it is ignored"),
    delivered("no JSON", respond("200 OK", "Content-Type: application/json", body=b'{"decision": ')),
    delivered("no decision", respond("200 OK", body=b'{"decision": "burn"}'),
         "the decision in the response is unknown; it must be .*"),
    unsafe("self-signed", "self-signed certificate", lambda _, other: other.self_signed(LISTENING)),
    unsafe("a stranger's word", "unable to get local issuer certificate",
           lambda _, other: other.issue("one", LISTENING)),
    unsafe("expired", "certificate has expired",
           lambda ours, _: ours.issue("two", LISTENING, expired=True)),
    unsafe("wrong name", "IP address mismatch, certificate is not valid for '127.0.0.1'",
           lambda ours, _: ours.issue("three", "127.0.0.2")),
    Case("good certificate", respond("200 OK"), "delivered", 1, 200, None,
         lambda ours, _: ours.issue("four", LISTENING)),
]  # fmt: skip


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def run(database_url: str, authority: Authority) -> AsyncIterator[Program]:
    settings = {"channels.webhook.attempts": 2, "channels.webhook.timeout": "2s",
            "channels.webhook.connect_timeout": "2s",
            "channels.webhook.ca_file": str(authority.file)}  # fmt: skip
    async with program(database_url, settings) as run:
        yield run


async def test_the_history_of_bad_receivers_and_the_good_one_gets_everything(
    run: Program, authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "other")
    async with AsyncExitStack() as stack:
        good = await stack.enter_async_context(running_receiver())
        healthy = await subscribed(run, good.url)
        listening: dict[str, str] = {}
        for case in CASES:
            target = f"http://{LISTENING}:{free_port()}/"
            if case.fault is not None:
                pair = case.certified(authority, other) if case.certified else None
                target = await stack.enter_async_context(faulty_receiver(case.fault, pair))
            listening[case.name] = await subscribed(run, target, events=[NOTIFICATION])
        await run.create("s", {"a": resource()}, environment=HOOKS)
        await eventually(
            lambda: all_ended(run, [listening[c.name] for c in CASES if c.state == "dead"])
        )
        log = {name: await notification_of(run, one) for name, one in listening.items()}
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
        assert pause > timedelta(minutes=14) and waits["ended_at"] is None
        # The subscription of the endpoint that is gone is disabled.
        _, response = await run.call("GET", f"/subscriptions/{listening['410']}")
        assert (response["state"], response["reason"]) == (
            "disabled",
            "its endpoint answered that it is permanently gone",
        )
        # No receiver delayed another one, and none of their responses decided the hook.
        arrived = (await notification_of(run, healthy))["ended_at"]
        assert arrived < min(log[name]["ended_at"] for name in ("hangs", "drips"))
        (hook,) = await run.waiting_hooks("s")
        await run.signal(hook)
        assert await run.until_ended("s") == "CREATE_COMPLETE"
        await until(lambda: has_all(run, good))
    attempts = sum(one["attempts"] for one in log.values())
    print(
        f"{len(CASES)} receivers, {attempts} attempts, each as expected; {len(good.events)} events beside"
    )


async def subscribed(run: Program, target: str, **more: Json) -> str:
    status, response = await run.call("POST", "/subscriptions", {"target": target, **more})
    assert status == 201, response
    return str(response["id"])


async def notification_of(run: Program, subscription: str) -> Json:
    """The delivery of the hook notification in the history."""
    _, response = await run.call("GET", f"/subscriptions/{subscription}/deliveries")
    (one,) = [each for each in response["deliveries"] if each["type"] == NOTIFICATION]
    return one


async def all_ended(run: Program, subscriptions: list[str]) -> bool:
    for one in subscriptions:
        _, response = await run.call("GET", f"/subscriptions/{one}/deliveries")
        if [each["state"] for each in response["deliveries"]] != ["dead"]:
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
