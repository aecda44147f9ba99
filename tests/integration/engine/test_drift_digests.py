"""Drift whose values are masked, long or too many counts as changed again when these values change."""

import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal
from uuid import UUID

import orjson
import pytest
import pytest_asyncio

from engine.hooks.drift_digests import DriftDigests
from engine.hot.expressions.masking import MASK
from engine.store.access.token_keys import rotate_token_key
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Keyring
from engine.store.hooks import drift_hooks
from engine.store.observer import drift_rows, observations
from engine.store.observer.observations import ObservedResource, WrittenObservations
from engine.types.observation import MAX_VALUE, hash_values
from engine.work.observer.drift_hooks import DriftHooks
from engine.work.observer.hook_watch import HookWatch
from engine.work.observer.observed_rows import MAX_DIFFERENCES
from engine.work.observer.observer import Observer
from hub.keys.rotation import rotate_encryption_key
from tests.integration.database.released_statements import RELEASED
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.paused_observers import paused_digests, paused_observer
from tests.support.program import Json, Program, program, template

HOLD: Json = {"observe": {"every": "10m"}, "on_drift": "hold"}
NOTIFY: Json = {"observe": {"every": "10m"}, "on_drift": "notify"}
WATCHED: Json = {"hooks": [{"at": "a", "on": "pre-update", "watch": True}]}
RIGHT, WRONG, OTHER = "right-secret-word", "wrong-secret-word", "other-secret-word"
LONG = "x" * 2 * MAX_VALUE
MANY = MAX_DIFFERENCES + 5


@dataclass(frozen=True)
class Case:
    """A difference that is not shown completely. body: of the object, as it should be. wrong, other:
    what another program sets, one after the other. shown: the first difference."""

    body: Json
    compare: Json
    wrong: Json
    other: Json
    shown: Json
    more: Json = field(default_factory=dict)

    def resource(self, things: Things, size: int = 1) -> Json:
        body = {"size": size, "v": 1, **self.body}
        requests: dict[str, Any] = {
            "create": {"url": "/things", "body": body},
            "update": {"url": "/things/${id}", "body": body},
        }
        compare = {"$.v": 1, **self.compare}
        return thing(things, size, **requests, compare=compare, **self.more)


SECRET = {"get_param": "word"}
CASES = {
    "secret-property": Case(
        {"word": SECRET}, {"$.word": SECRET}, {"word": WRONG}, {"word": OTHER},
        {"path": "$.word", "desired": MASK, "observed": MASK},
    ),
    "hidden-attribute": Case(
        {"word": RIGHT}, {"$.word": RIGHT}, {"word": WRONG}, {"word": OTHER},
        {"path": "$.word", "desired": MASK, "observed": MASK},
        {"attributes": {"word": "$.word"}, "hidden": ["word"]},
    ),
    "long": Case(
        {"text": "short"}, {"$.text": "short"}, {"text": f"{LONG}1"}, {"text": f"{LONG}2"},
        {"path": "$.text", "desired": "short", "observed": f"{LONG[:MAX_VALUE]}..."},
    ),
    "many": Case(
        {f"f{index:02}": 1 for index in range(MANY)},
        {f"$.f{index:02}": 1 for index in range(MANY)},
        {f"f{index:02}": 2 for index in range(MANY)},
        {f"f{index:02}": 3 if index == MANY - 1 else 2 for index in range(MANY)},
        {"path": "$.f00", "desired": 1, "observed": 2},
    ),
}  # fmt: skip


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture(scope="module")
def shared_settings(paused_observers: None) -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


async def observe(run: Program, digests: DriftDigests | Literal["none"] | None = None) -> None:
    """Observe all stacks that a policy has scheduled, or that are requested, also after an endpoint
    has failed. digests: None: those of the program."""
    pool = run.database.pool
    await pool.execute(
        "update observation_schedule set next_at = now() - interval '1s' where next_at is not null"
    )
    await pool.execute("delete from provider_failure")
    registry, policies = paused_observer(run)
    observer = Observer(
        run.database,
        registry,
        policies,
        approved=run.engine.repairs.start_approved,
        digests=None if digests == "none" else digests or paused_digests(run),
    )
    await observer.observe_due()


def parts(resource: Json) -> Json:
    """The template and its parameters."""
    parameters = {"word": {"type": "string", "hidden": True}}
    return {
        "template": template({"a": resource}, parameters=parameters),
        "parameters": {"word": RIGHT},
    }


async def created(run: Program, things: Things, case: Case, convergence: Json) -> Json:
    """Create a stack; return the object of its resource."""
    body = {"stack_name": "s", **parts(case.resource(things))}
    body["environment"] = {"convergence": convergence}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    await observe(run)
    assert await drift_of(run) == []
    return things.objects[(await run.resources("s"))["a"]["physical_resource_id"]]


async def drift_of(run: Program) -> list[Json]:
    found: list[Json] = (await run.stack_request("GET", "s", "/drift"))["resources"]
    return found


async def hooks(run: Program, state: str = "waiting") -> list[Json]:
    _, found = await run.call("GET", f"/hooks?state={state}&stack=s&point=drift")
    return list(found["hooks"])


async def events_of(run: Program, kind: str) -> list[Json]:
    history = await run.stack_request("GET", "s", "/history")
    return [one for one in history["events"] if one["type"] == f"headgate.resource.drift.{kind}"]


async def test_hidden_drift_that_changes_again_is_asked_again_and_the_same_is_not(
    run: Program, things: Things, case: Case
) -> None:
    found = await created(run, things, case, HOLD)
    found.update(case.wrong)
    for _ in range(3):
        await observe(run)
    (first,) = await hooks(run)
    shown = first["resource"]["drift"]["differences"]
    assert shown[0] == case.shown and len(shown) <= MAX_DIFFERENCES
    found.update(case.other)
    for _ in range(3):
        await observe(run)
    (second,) = await hooks(run)
    assert [one["id"] for one in await hooks(run, "superseded")] == [first["id"]]
    # All that is shown is the same, but an answer that names the first digest is of the first hook.
    assert second["resource"]["drift"]["differences"] == shown
    assert second["digest"] != first["digest"]
    assert (await run.signal(second, "reject", digest=first["digest"]))[0] == 409
    assert (await run.signal(second, "reject", digest=second["digest"]))[0] == 200
    for _ in range(2):
        await observe(run)
    assert await hooks(run) == []
    found.update(case.wrong)
    await observe(run)
    assert len(await hooks(run)) == 1


async def test_an_approved_repair_is_of_the_hidden_drift_that_was_asked(
    run: Program, things: Things, case: Case
) -> None:
    found = await created(run, things, case, HOLD)
    found.update(case.wrong)
    await observe(run)
    (first,) = await hooks(run)
    assert (await run.signal(first, "repair"))[0] == 200
    found.update(case.other)
    await observe(run)
    (second,) = await hooks(run)
    assert len((await run.stack_request("GET", "s", "/versions"))["traversals"]) == 1
    assert (await run.signal(second, "repair"))[0] == 200
    await observe(run)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert all(found[name] != value for name, value in case.other.items())


async def test_no_repair_of_other_hidden_drift_starts_before_it_is_asked_about(
    run: Program, things: Things, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a failure between the observation and its hook."""
    found = await created(run, things, case, HOLD)
    found.update(case.wrong)
    await observe(run)
    (first,) = await hooks(run)
    assert (await run.signal(first, "repair"))[0] == 200

    async def none_due(self: DriftHooks, policies: Mapping[UUID, Any]) -> list[UUID]:
        return []

    monkeypatch.setattr(DriftHooks, "read_due", none_due)
    found.update(case.other)
    await observe(run)
    assert len((await run.stack_request("GET", "s", "/versions"))["traversals"]) == 1
    found.update(case.wrong)
    await observe(run)
    assert len((await run.stack_request("GET", "s", "/versions"))["traversals"]) == 2


async def test_hidden_drift_is_reported_once_and_again_when_it_changes(
    run: Program, things: Things, case: Case
) -> None:
    found = await created(run, things, case, NOTIFY)
    for wrong, count in ((case.wrong, 1), (case.other, 2), (case.wrong, 3)):
        found.update(wrong)
        for _ in range(2):
            await observe(run)
            assert len(await events_of(run, "detected")) == count
    assert len({one["since"] for one in await drift_of(run)}) == 1


async def test_a_change_of_hidden_drift_withdraws_a_watched_hook(
    run: Program, things: Things, case: Case
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HookWatch, "run", lambda self, stop: stop.wait())
        found = await created(run, things, case, {"observe": {"every": "10m"}})
        body = parts(case.resource(things, 2)) | {"environment": WATCHED}
        await run.update("s", "PUT", **body)
        hook_ids = [(await run.waiting_hooks("s"))[0]["id"]]
        for times, wrong in enumerate((case.wrong, case.other), 1):
            found.update(wrong)
            for _ in range(2):
                await run.act("s", "observe")
                await observe(run)
                (hook,) = await run.waiting_hooks("s")
                hook_ids.append(hook["id"])
                assert hook["resource"]["drift"]["differences"][0] == case.shown
                assert hook["resource"]["renewed"]["times"] == times
    # Each difference has withdrawn the hook once.
    assert hook_ids[1] == hook_ids[2] and hook_ids[3] == hook_ids[4]
    assert len({*hook_ids}) == 3


async def test_what_found_hidden_drift_is_of_its_last_change(
    run: Program, things: Things, case: Case
) -> None:
    found = await created(run, things, case, NOTIFY)
    found.update(case.wrong)
    await observe(run)
    assert [one["found_by"] for one in await drift_of(run)] == ["policy"]
    await run.act("s", "observe")
    await observe(run)
    assert [one["found_by"] for one in await drift_of(run)] == ["policy"]
    for wrong, cause in ((case.wrong, "policy"), (case.other, "request")):
        things.faults = [503]
        await observe(run)
        assert [one["state"] for one in await drift_of(run)] == ["unknown"]
        things.faults = []
        found.update(wrong)
        await run.act("s", "observe")
        await observe(run)
        assert [one["found_by"] for one in await drift_of(run)] == [cause]


async def test_neither_a_secret_nor_a_plain_hash_of_it_is_stored(
    run: Program, things: Things
) -> None:
    case = CASES["secret-property"]
    found = await created(run, things, case, HOLD)
    found.update(case.wrong)
    await observe(run)
    texts = [
        await run.database.pool.fetchval(f"select string_agg(t::text, ' ') from {table} t")
        for table in ("observation", "drift_hook", "hook", "event")
    ]
    stored = " ".join(texts)
    row = await run.database.pool.fetchrow("select * from observation")
    assert row is not None and row["drift_digest"] in stored
    plain = [WRONG.encode(), orjson.dumps(WRONG), orjson.dumps([RIGHT, WRONG])]
    hashes = [hashlib.sha256(one).hexdigest() for one in plain]
    hashes.append(hash_values(RIGHT, WRONG).hex())
    for text in (WRONG, RIGHT, *hashes):
        assert text not in stored


async def test_the_digest_of_another_installation_asks_nothing_again(
    run: Program, things: Things, case: Case
) -> None:
    """As after a project has moved to another cell."""
    found = await created(run, things, case, HOLD)
    found.update(case.wrong)
    others = DriftDigests(b"k" * 32)
    await observe(run, others)
    (first,) = await hooks(run)
    assert len(await events_of(run, "detected")) == 1
    for _ in range(2):
        await observe(run)
        assert [one["id"] for one in await hooks(run)] == [first["id"]]
        assert len(await events_of(run, "detected")) == 1
    # From then on, a change is noticed.
    found.update(case.other)
    await observe(run)
    (second,) = await hooks(run)
    assert second["id"] != first["id"] and len(await events_of(run, "detected")) == 2


async def test_a_rotation_of_the_keys_asks_nothing_again(
    database_url: str, paused_observers: None, tmp_path: Path
) -> None:
    case = CASES["secret-property"]
    old, new = tmp_path / "old.key", tmp_path / "new.key"
    for path, key in ((old, b"o" * 32), (new, b"n" * 32)):
        path.write_bytes(key)
        path.chmod(0o600)
    with_old = HTTP_SETTINGS | {"credentials.key_file": str(old)}
    with_both = HTTP_SETTINGS | {
        "credentials.key_file": str(new),
        "credentials.fallback_key_files": [str(old)],
    }
    with_new = HTTP_SETTINGS | {"credentials.key_file": str(new)}
    async with serve_things() as things:
        async with program(database_url, with_old) as run:
            found = await created(run, things, case, HOLD)
            found.update(case.wrong)
            await observe(run)
            (first,) = await hooks(run)
        async with program(database_url, with_both) as run:
            await rotate(run, old, new)
            await observe(run)
            assert [one["id"] for one in await hooks(run)] == [first["id"]]
        async with program(database_url, with_new) as run:
            await observe(run)
            assert [one["id"] for one in await hooks(run)] == [first["id"]]
            found.update(case.other)
            await observe(run)
            (second,) = await hooks(run)
            assert second["id"] != first["id"]


async def rotate(run: Program, old: Path, new: Path) -> None:
    """Encrypt everything with the new key, and replace the token key."""
    keyring = Keyring(
        new.read_bytes(), random_bytes=secrets.token_bytes, fallbacks=[old.read_bytes()]
    )
    async with run.database.connection() as conn:
        assert (await rotate_encryption_key(conn, keyring)).rows
        await rotate_token_key(conn, b"t" * 32, keyring, keep=timedelta(0), revoke=True)


class EarlierProcess:
    """Observes with the statements of the previous release, which know no digests."""

    STATEMENTS: ClassVar = (
        (drift_rows, "UNREPORTED"),
        (drift_rows, "REPORT"),
        (drift_hooks, "OPEN"),
    )

    def __init__(self, run: Program) -> None:
        self._run = run

    async def observe(self) -> None:
        recorded = json.loads(RELEASED.read_text())["statements"]
        with pytest.MonkeyPatch.context() as patch:
            for module, name in self.STATEMENTS:
                patch.setattr(module, name, recorded[f"{module.__name__}.{name}"]["text"])
            self._write_statement = recorded[f"{observations.__name__}.WRITE"]["text"]
            patch.setattr(observations, "write", self._write)
            patch.setattr(DriftHooks, "read_due", self._read_due)
            await observe(self._run, "none")

    async def _write(
        self, conn: Connection, observed: Sequence[ObservedResource]
    ) -> WrittenObservations:
        rows = [asdict(one) | {"recorded_at": one.recorded_at.isoformat()} for one in observed]
        (row,) = await conn.fetch(self._write_statement, rows)
        return WrittenObservations(row[0], ())

    async def _read_due(self, policies: Mapping[UUID, Any]) -> list[UUID]:
        return [*policies]


async def test_a_process_of_the_previous_release_beside_this_one_causes_no_second_hook(
    run: Program, things: Things, case: Case
) -> None:
    found, earlier = await created(run, things, case, HOLD), EarlierProcess(run)
    found.update(case.wrong)
    await observe(run)
    (first,) = await hooks(run)
    # The other process opens a hook about what it sees, and leaves the digest of what it replaces.
    found.update(case.other, v=5)
    await earlier.observe()
    (second,) = await hooks(run)
    assert second["id"] != first["id"] and len(await events_of(run, "detected")) == 2
    for _ in range(2):
        await observe(run)
        await earlier.observe()
    assert [one["id"] for one in await hooks(run)] == [second["id"]]
    assert len(await events_of(run, "detected")) == 2
    found.update(case.wrong)
    await observe(run)
    (third,) = await hooks(run)
    assert third["id"] != second["id"] and len(await events_of(run, "detected")) == 3


async def test_hidden_drift_of_before_the_upgrade_is_asked_again_when_it_changes(
    run: Program, things: Things, case: Case
) -> None:
    found = await created(run, things, case, HOLD)
    found.update(case.wrong)
    await EarlierProcess(run).observe()
    (first,) = await hooks(run)
    await observe(run)
    assert [one["id"] for one in await hooks(run)] == [first["id"]]
    assert len(await events_of(run, "detected")) == 1
    found.update(case.other)
    await observe(run)
    (second,) = await hooks(run)
    assert second["id"] != first["id"] and len(await events_of(run, "detected")) == 2
