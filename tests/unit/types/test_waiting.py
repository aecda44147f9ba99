"""Formats of signals, and the counts of wait conditions, without a server."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import orjson
import pytest

from engine.errors import Invalid
from engine.hooks.derived_tokens import TokenKeys
from engine.types.contract import Call, Done, Failed, Wait
from engine.types.signal_urls import SignalUrls, resource_of
from engine.types.wait_conditions.handles import (
    CFN,
    HEAT,
    SWIFT,
    LatestSignals,
    SignalFormat,
    read_signal,
)
from engine.words import Json
from tests.unit.types.calls import NOW, SIGNAL_URL, STACK, a_call, findings_of, registry, run

HANDLE = UUID(int=7)
KNOWN = registry()
CONDITION = KNOWN.get("OS::Heat::WaitCondition")
OWN = KNOWN.get("OS::Heat::WaitConditionHandle")


@pytest.mark.parametrize(
    ("form", "sent", "kept"),
    [
        (HEAT, {}, ("4", "SUCCESS", "Signal 4 received", None)),
        (HEAT, dict.fromkeys(HEAT.parts), ("4", "SUCCESS", "Signal 4 received", None)),
        (HEAT, {"id": 5, "data": {"a": 1}}, ("5", "SUCCESS", "Signal 4 received", {"a": 1})),
        (HEAT, {"status": "FAILURE", "reason": "no"}, ("4", "FAILURE", "no", None)),
        (CFN, {"Status": "SUCCESS", "Reason": "r", "UniqueId": "u", "Data": "d"},
         ("u", "SUCCESS", "r", "d")),
        (SWIFT, {"data": 1, "more": 2}, ("4", "SUCCESS", "Signal 4 received", 1)),
    ],
)  # fmt: skip
def test_the_stored_fields_of_a_signal(
    form: SignalFormat, sent: Json, kept: tuple[Json, ...]
) -> None:
    assert tuple(read_signal(sent, form, 4).values()) == kept


@pytest.mark.parametrize(
    ("form", "sent", "places"),
    [
        (HEAT, {"status": "MAYBE"}, ["status"]),
        (HEAT, {"statsu": "SUCCESS", "reason": 5}, ["statsu", "reason"]),
        (HEAT, {"id": ["x"]}, ["id"]),
        (HEAT, {"Status": "SUCCESS"}, ["Status"]),
        (CFN, {"Status": "SUCCESS", "Reason": "r", "Data": "d"}, ["UniqueId"]),
        (CFN, {}, ["Status", "Reason", "UniqueId", "Data"]),
        (SWIFT, {"status": "done", "more": 1}, ["status"]),
    ],
)
def test_all_errors_of_a_signal_are_reported_at_once(
    form: SignalFormat, sent: Json, places: list[str]
) -> None:
    with pytest.raises(Invalid) as refused:
        read_signal(sent, form, 1)
    assert [one.place for one in refused.value.findings] == places
    assert all(one.remedy for one in refused.value.findings)


def test_the_last_signal_with_an_id_counts() -> None:
    sent: list[Json] = [
        {"id": 1, "reason": "a"},
        {"id": "2", "status": "FAILURE"},
        {"id": "1", "reason": "c"},
    ]
    tally = LatestSignals(read_signal(one, HEAT, 9) for one in sent)
    assert (len(tally), tally.reasons("SUCCESS")) == (2, ["c"])
    assert tally.reasons("FAILURE") == ["Signal 9 received"]


@pytest.mark.parametrize(
    ("transport", "response"),
    [
        ("TOKEN_SIGNAL", {"token", "endpoint", "curl_cli"}),
        ("CFN_SIGNAL", {"signal"}),
        ("HEAT_SIGNAL", {"signal"}),
        ("NO_SIGNAL", {"signal"}),
    ],
)
async def test_the_attributes_of_a_handle(transport: str, response: set[str]) -> None:
    done = await run(OWN, "create", a_call(OWN, {"signal_transport": transport}))
    assert isinstance(done, Done) and set(done.attributes) == response
    signal = orjson.loads(done.attributes.get("signal", "{}"))
    assert signal == {
        "CFN_SIGNAL": {"alarm_url": SIGNAL_URL.signed_url},
        "HEAT_SIGNAL": {"alarm_url": SIGNAL_URL.url, "token": SIGNAL_URL.token},
    }.get(transport, {})
    assert (OWN.reference("r", done.physical_id, done.data) == "NO_SIGNAL") is (
        transport == "NO_SIGNAL"
    )


def test_the_curl_command_is_that_of_heat() -> None:
    done = OWN.create(a_call(OWN, {}))
    assert isinstance(done, Done)
    assert done.attributes["curl_cli"] == (
        f"curl -i -X POST -H 'X-Auth-Token: {SIGNAL_URL.token}' -H 'Content-Type: application/json'"
        f" -H 'Accept: application/json' {SIGNAL_URL.url}"
    )


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
async def test_unsupported_services_are_refused(transport: str) -> None:
    (finding,) = findings_of(OWN, {"signal_transport": transport})
    assert finding.place == "resources.r.properties.signal_transport"
    assert "Use one of TOKEN_SIGNAL" in finding.remedy
    late = await run(OWN, "create", a_call(OWN, {"signal_transport": transport}))
    assert isinstance(late, Failed) and finding.reason in late.reason


def test_an_invalid_handle_is_refused_before_anything_is_created() -> None:
    (finding,) = findings_of(CONDITION, {"handle": "h", "timeout": 9})
    assert finding.place == "resources.r.properties.handle" and "get_resource" in finding.remedy
    for handle in ("NO_SIGNAL", str(HANDLE), SIGNAL_URL.signed_url):
        assert findings_of(CONDITION, {"handle": handle, "timeout": 9}) == []


def test_urls_identify_their_resource() -> None:
    urls = SignalUrls(TokenKeys.single(b"key"), "https://hub.test/below")
    signal = urls.make_url("p", ("s", STACK), HANDLE)
    for text in (signal.url, signal.signed_url, str(HANDLE)):
        assert resource_of(text) == resource_of(text, STACK) == HANDLE
    assert resource_of(signal.signed_url, UUID(int=9)) is None
    for text in ("", "h", f"{signal.url}/more", signal.url[:-1], "https://hub.test/signals/a/b"):
        assert resource_of(text) is None
    api_path = f"/v1/p/stacks/s/{STACK}/resources/{HANDLE}/signal"
    assert signal.api_url == f"https://hub.test/below{api_path}"
    assert urls.opens(signal.token, STACK, HANDLE)
    assert not urls.opens(signal.token, HANDLE, STACK)
    assert signal.token not in repr(signal) and "key" not in repr(urls)


def waiting(count: int = 2, seconds: float = 60, **more: Json) -> tuple[Call, Wait]:
    """A waiting condition and its outcome."""
    properties = {"handle": str(HANDLE), "timeout": seconds, "count": count}
    call = a_call(CONDITION, properties, **more)
    outcome = CONDITION.create(call)
    assert isinstance(outcome, Wait)
    return replace(call, progress=outcome.progress, signal_resource_type=OWN.schema.name), outcome


def test_a_condition_first_reads_the_signals_of_its_handle() -> None:
    call, outcome = waiting()
    assert (outcome.until, outcome.signal_resource_id) == (NOW, HANDLE)
    again = CONDITION.create(replace(call, now=NOW + timedelta(seconds=59)))
    assert again == Wait(NOW + timedelta(seconds=60), outcome.progress, signal_resource_id=HANDLE)


def test_enough_signals_complete_a_condition_after_the_timeout() -> None:
    """Signals that arrived in time count even if no process was running."""
    call, _ = waiting()
    signals = [read_signal({"data": n}, HEAT, n) for n in (1, 2)]
    late = CONDITION.create(replace(call, now=NOW + timedelta(hours=1), signals=signals))
    assert isinstance(late, Done) and late.attributes == {"data": '{"1":1,"2":2}'}


@pytest.mark.parametrize(
    ("came", "reasons"),
    [([], "0 of 2 received"), ([{"reason": "a"}], "1 of 2 received - a")],
)
def test_a_timeout_has_the_reasons_of_the_received_signals(came: list[Json], reasons: str) -> None:
    call, _ = waiting()
    signals = [read_signal(one, HEAT, 1) for one in came]
    ended = CONDITION.create(replace(call, now=NOW + timedelta(seconds=60), signals=signals))
    reason = f"WaitConditionTimeout: {reasons}"
    assert ended == Failed(reason, public_reason=reason)


def test_a_newer_change_ends_a_condition_unless_it_is_complete() -> None:
    call, _ = waiting(superseded=True)
    assert isinstance(CONDITION.create(call), Failed)
    signals = [read_signal({}, HEAT, n) for n in (1, 2)]
    assert isinstance(CONDITION.create(replace(call, signals=signals)), Done)


@pytest.mark.parametrize(
    ("name", "count", "ok"),
    [
        ("OS::Heat::WaitCondition", 0, False),
        ("OS::Heat::WaitCondition", 5_000, True),
        ("OS::Heat::SwiftSignal", 1_000, True),
        ("OS::Heat::SwiftSignal", 1_001, False),
    ],
)
def test_the_allowed_values_of_count(name: str, count: int, ok: bool) -> None:
    properties = {"handle": "NO_SIGNAL", "timeout": 43_200, "count": count}
    assert (findings_of(KNOWN.get(name), properties) == []) is ok
    assert findings_of(KNOWN.get(name), properties | {"timeout": 43_201})
