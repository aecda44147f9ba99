"""Concurrent attempts to guess are limited, and do not delay the sign-in of others."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from engine.hooks.derived_tokens import hook_token
from engine.store.access.token_keys import signing_key
from engine.store.access.tokens import weak_passwords
from hub.auth import secrets
from hub.auth.passwords import EACH, WAITING
from tests.integration.api.test_access import (
    PASSWORD,
    basic,
    bearer,
    create_waiting,
    run_with_tokens,
    token,
)
from tests.support.access import insert_credential
from tests.support.keys import KEYRING
from tests.support.program import PATIENCE, Program, eventually

pytestmark = pytest.mark.usefixtures("cheap_hashes")
PROXY = {"server.trusted_proxies": ["127.0.0.0/8"], "auth.lockout": "1h"}
FAILURES = 5
ATTACKER, OTHER = "203.0.113.7", "203.0.113.8"
Access = tuple[Program, dict[str, str]]


class BlockedComparison:
    """Compares passwords, except the right one, only after `release` is set.

    started: the number of comparisons of wrong passwords that have started.
    """

    def __init__(self) -> None:
        self.started = 0
        self.release = threading.Event()
        self._compare = secrets.is_password

    def __call__(self, password: str, hashed: str) -> bool:
        if password != PASSWORD:
            self.started += 1
            assert self.release.wait(PATIENCE)
        return self._compare(password, hashed)


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> BlockedComparison:
    made = BlockedComparison()
    monkeypatch.setattr(secrets, "is_password", made)
    return made


@pytest.fixture
async def access(database_url: str) -> AsyncIterator[Access]:
    async with run_with_tokens(database_url, PROXY | {"auth.failures": FAILURES}) as run:
        await insert_credential(run[0].database, "p", "ann", ["reader"], password=PASSWORD)
        await insert_credential(run[0].database, "p", "bob", ["reader"], password=PASSWORD)
        yield run


def sent_from(address: str, headers: dict[str, str]) -> dict[str, str]:
    return headers | {"X-Forwarded-For": address}


async def status_of(run: Program, headers: dict[str, str]) -> int:
    async with run.session.get(f"{run.url}/v1/p/session", headers=headers) as answer:
        if answer.status == 429:
            assert int(answer.headers["Retry-After"]) >= 1
            assert (await answer.json())["error"]["type"] == "TooManyRequests"
        return answer.status


async def burst(runs: Sequence[Program], requests: Sequence[dict[str, str]]) -> Counter[int]:
    """Counts of the statuses of concurrent requests, which alternate between the processes."""
    calls = [status_of(runs[at % len(runs)], one) for at, one in enumerate(requests)]
    return Counter(await asyncio.gather(*calls))


def guesses(count: int, user: str = "ann", address: str = ATTACKER) -> list[dict[str, str]]:
    return [sent_from(address, basic(user, f"wrong guess {at}")) for at in range(count)]


async def test_concurrent_attempts_do_not_exceed_the_limit(
    access: Access,
) -> None:
    run, _ = access
    found = await burst([run], guesses(200))
    assert found == {401: FAILURES, 429: 200 - FAILURES}
    assert await status_of(run, guesses(1)[0]) == 429
    assert await status_of(run, sent_from(ATTACKER, basic("bob", PASSWORD))) == 429


async def test_processes_count_together(access: Access, database_url: str) -> None:
    run, _ = access
    settings = PROXY | {"auth.failures": FAILURES}
    async with (
        run_with_tokens(database_url, settings) as (two, _),
        run_with_tokens(database_url, settings) as more,
    ):
        found = await burst([run, two, more[0]], guesses(60))
    assert found == {401: FAILURES, 429: 60 - FAILURES}


async def test_addresses_of_one_ipv6_network_count_together(access: Access) -> None:
    run, _ = access
    network = [
        one
        for at in range(30)
        for one in guesses(1, f"user{at}", f"2001:db8:0:1:{at:x}::{at + 1:x}")
    ]
    assert (await burst([run], network))[401] == FAILURES
    assert await status_of(run, sent_from("2001:db8:0:2::1", basic("bob", PASSWORD))) == 200


async def test_attempts_for_a_name_count_over_all_addresses(access: Access) -> None:
    run, _ = access
    spread = [guesses(1, "ann", f"198.51.100.{at}")[0] for at in range(30)]
    assert (await burst([run], spread))[401] == FAILURES
    # An unknown name behaves the same.
    spread = [guesses(1, "no one", f"198.51.101.{at}")[0] for at in range(30)]
    assert (await burst([run], spread))[401] == FAILURES


async def test_a_name_can_sign_in_where_it_did_before_while_others_guess(
    access: Access, database_url: str
) -> None:
    run, _ = access
    again = PROXY | {"auth.failures": FAILURES}
    ann = sent_from(OTHER, basic("ann", PASSWORD))
    assert await status_of(run, ann) == 200
    spread = [guesses(1, "ann", f"198.51.100.{at}")[0] for at in range(20)]
    assert (await burst([run], spread))[401] == FAILURES
    async with run_with_tokens(database_url, again) as (fresh, _):  # with an empty cache
        assert await status_of(fresh, ann) == 200
        other_address = sent_from("198.51.100.77", basic("ann", PASSWORD))
        assert await status_of(fresh, other_address) == 429
        # There, too, attempts are limited.
        found = await burst([fresh], guesses(20, "ann", OTHER))
        assert found[401] == FAILURES


async def test_a_cached_password_does_not_bypass_the_lockout(access: Access) -> None:
    """At a locked-out address, the right password is refused like a wrong one, also if its owner
    has just used it there. The order of the keys by which attempts are counted varies with the
    address.
    """
    run, _ = access
    for at in range(8):
        here = f"203.0.113.{at}"
        right = sent_from(here, basic("ann", PASSWORD))
        assert await status_of(run, right) == 200
        assert (await burst([run], guesses(FAILURES + 5, address=here)))[401] == FAILURES
        assert await status_of(run, right) == 429, here


async def test_correct_passwords_do_not_count(access: Access) -> None:
    run, _ = access
    for at in range(2 * FAILURES):
        there = f"198.51.100.{at}"
        assert await status_of(run, sent_from(there, basic("ann", PASSWORD))) == 200
    at_once = [sent_from(OTHER, basic("bob", PASSWORD))] * (4 * FAILURES)
    assert await burst([run], at_once) == {200: 4 * FAILURES}


async def test_a_valid_token_is_accepted_while_its_address_is_locked_out(access: Access) -> None:
    run, admin = access
    late = bearer(await token(run, admin, "late", "reader"))
    _, hook = await create_waiting(run, admin)
    assert (await burst([run], guesses(40)))[429] > 0
    wrong = [sent_from(ATTACKER, bearer(f"guess {at}")) for at in range(40)]
    assert await burst([run], wrong) == {401: FAILURES, 429: 40 - FAILURES}
    assert await status_of(run, sent_from(ATTACKER, late)) == 200
    assert await status_of(run, sent_from(ATTACKER, {})) == 401
    # Public routes and hook tokens are not affected.
    here = {"X-Forwarded-For": ATTACKER}
    for path in ("//healthz", f"//hooks/{hook}", "//"):
        status, _ = await run.call("GET", path, headers=here)
        assert status in (200, 300), path
    path, go_on = f"//hooks/{hook}/signal", {"decision": "continue"}
    status, _ = await run.call("POST", path, go_on, headers=here | bearer("x"))
    assert status == 429
    async with run.database.connection() as conn:
        key = await signing_key(conn, b"", KEYRING)
    _, response = await run.call(
        "POST", "/subscriptions", {"target": "http://127.0.0.1:9/"}, headers=admin
    )
    own = here | bearer(hook_token(key, UUID(hook), UUID(response["id"])))
    assert (await run.call("POST", path, go_on, headers=own))[0] == 200


async def test_guessing_from_one_address_does_not_delay_sign_in_from_another(
    access: Access, comparison: BlockedComparison
) -> None:
    """Another address signs in while one guess is checked and others wait."""
    run, _ = access
    statuses = Counter[int]()

    async def guess(headers: dict[str, str]) -> None:
        statuses[await status_of(run, headers)] += 1

    async def full() -> bool:
        return comparison.started == 1 and statuses[429] == 5

    flood = [asyncio.create_task(guess(one)) for one in guesses(EACH + WAITING + 5)]
    try:
        await eventually(full)
        async with asyncio.timeout(PATIENCE):
            signed_in = await status_of(run, sent_from(OTHER, basic("bob", PASSWORD)))
        assert signed_in == 200
        assert comparison.started == 1 and statuses == {429: 5}, "guesses were judged first"
    finally:
        comparison.release.set()
        await asyncio.wait(flood)
    assert statuses == {401: FAILURES, 429: EACH + WAITING + 5 - FAILURES}


async def test_a_weak_password_hash_is_replaced_at_sign_in(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = access
    monkeypatch.setattr(secrets, "_COST", 2**13)

    async def weak_hashes() -> int:
        async with run.database.connection() as conn:
            return await weak_passwords(conn, secrets.full_cost())

    assert await weak_hashes() == 2
    assert await status_of(run, sent_from(OTHER, basic("ann", "not the password"))) == 401
    assert await weak_hashes() == 2
    assert await status_of(run, sent_from(OTHER, basic("ann", PASSWORD))) == 200
    assert await weak_hashes() == 1
    assert await status_of(run, sent_from("198.51.100.1", basic("ann", PASSWORD))) == 200
