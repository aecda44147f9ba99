"""The hosts of a database URL, and the servers that a process refuses."""

from datetime import UTC, datetime

import pytest

from engine.errors import Conflict
from engine.store.hosts import Host, hosts_of, target_of
from engine.store.server_check import MAX_SKEW, ServerState, judge_servers
from engine.store.server_connector import DatabaseServer, NoPrimary

NOW = datetime(2026, 11, 27, tzinfo=UTC)


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql:///db", []),
        ("postgresql://u@h/db", [Host("h", 5432)]),
        ("postgresql://u:p%40@h1,h2:6000/db", [Host("h1", 5432), Host("h2", 6000)]),
        ("postgresql://u@h1,h2/db?port=6000", [Host("h1", 6000), Host("h2", 6000)]),
        ("postgresql:///db?host=/a,/b&port=1,2", [Host("/a", 1), Host("/b", 2)]),
        ("postgresql://u:p%23%5B@h:65535/db", [Host("h", 65535)]),
        ("postgresql://[::1]:7,[fe80::1]/db", [Host("::1", 7), Host("fe80::1", 5432)]),
    ],
)
def test_hosts_are_read_in_order(
    url: str, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPORT", raising=False)
    assert hosts_of(url) == hosts


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u@h1,h2,h3/db?port=1,2",
        "postgresql://u@h1,:6/db",
        "postgresql://u@h:x,h2/db",
        "postgresql://u@h:0/db",
        "postgresql://u@h1,h2:65536/db",
        "postgresql:///db?host=/a&port=70000",
        "postgresql://u:p[@h/db",
        "postgresql://u:p#@h/db",
    ],
)
def test_hosts_that_cannot_be_read_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        hosts_of(url)


def test_the_target_is_read() -> None:
    assert target_of("postgresql://h1,h2/db?target_session_attrs=primary") == "primary"
    assert target_of("postgresql://h1,h2/db") == ""


def test_the_error_names_each_host_with_its_reason() -> None:
    failures = {Host("::1", 7): TimeoutError(), Host("h2", 5432): ConnectionError("refused")}
    assert str(NoPrimary(failures)) == (
        "no host of [database] url accepts writes: [::1]:7 (no answer within 3 s),"
        " h2:5432 (refused)"
    )


def state(*, system: int = 1, standby: bool = False, ahead: float = 0.0) -> ServerState:
    return ServerState(DatabaseServer(system, None if standby else 1, NOW), standby, ahead)


SKEW = MAX_SKEW.total_seconds()


@pytest.mark.parametrize(
    ("states", "code", "reason"),
    [
        ({"the server": state(standby=True)}, "ReplicaNotPrimary", "is a read-only replica"),
        ({"a": state(), "b": state(system=2, standby=True)}, "DifferentClusters", "a and b"),
        ({"a": state(), "b": state()}, "TwoPrimaries", "a and b both accept writes"),
        ({"a": state(ahead=SKEW + 1)}, "ClocksApart", "of a is 301 s ahead of"),
        ({"a": state(), "b": state(standby=True, ahead=-SKEW - 1)}, "ClocksApart", "301 s behind"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_servers_that_must_not_be_used_are_refused(
    states: dict[str, ServerState], code: str, reason: str
) -> None:
    with pytest.raises(Conflict, match=reason) as refused:
        judge_servers(states)
    assert (refused.value.code, refused.value.finding.place) == (code, "[database] url")
    assert refused.value.finding.remedy


def test_a_primary_with_replicas_or_replicas_alone_are_accepted() -> None:
    judge_servers({"a": state(ahead=SKEW), "b": state(standby=True)})
    judge_servers({"a": state(standby=True), "b": state(standby=True)})  # one is promoted soon
    judge_servers({"b": state(standby=True)})  # of several hosts, the others do not answer
    judge_servers({"the server": ServerState(None, False, 0.0)})
