"""The number of processes, and the share of one in the limits of the server."""

import os
from pathlib import Path

import pytest

from hub.program import process_slot
from hub.program.process_slot import (
    MEMORY_PER_PROCESS,
    ProcessSlot,
    count_processes,
    usable_cores,
    usable_memory,
)
from hub.settings.settings import load_settings

CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def membership(tmp_path: Path) -> Path:
    """A control group `a/b` below the folder `cgroups`."""
    (tmp_path / "cgroups" / "a" / "b").mkdir(parents=True)
    file = tmp_path / "membership"
    file.write_text("0::/a/b\n")
    return file


@pytest.mark.parametrize(
    ("own", "parent", "cores"),
    [
        pytest.param("max 100000", "max 100000", CORES, id="no quota"),
        pytest.param("100000 100000", "max 100000", 1, id="one core"),
        pytest.param("50000 100000", "max 100000", 1, id="half of a core"),
        pytest.param("900000 100000", "100000 100000", 1, id="quota of the parent"),
        pytest.param("9000000000 100000", "max 100000", CORES, id="more than the machine has"),
    ],
)
def test_usable_cores(membership: Path, own: str, parent: str, cores: int) -> None:
    cgroups = membership.parent / "cgroups"
    (cgroups / "a" / "cpu.max").write_text(parent)
    (cgroups / "a" / "b" / "cpu.max").write_text(own)
    assert usable_cores(cgroups, membership) == cores


def test_a_machine_without_control_groups(tmp_path: Path) -> None:
    assert usable_cores(tmp_path, tmp_path / "missing") == CORES


@pytest.mark.parametrize(
    ("own", "parent", "limit"),
    [
        pytest.param("max", "max", None, id="no limit"),
        pytest.param("1073741824", "max", 2**30, id="own limit"),
        pytest.param("max", "1073741824", 2**30, id="limit of the parent"),
        pytest.param("9000000000000000", "max", None, id="more than the machine has"),
    ],
)
def test_usable_memory(membership: Path, own: str, parent: str, limit: int | None) -> None:
    cgroups = membership.parent / "cgroups"
    (cgroups / "a" / "memory.max").write_text(parent)
    (cgroups / "a" / "b" / "memory.max").write_text(own)
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert usable_memory(cgroups, membership) == min(whole, limit or whole)


VERSION_1 = "12:cpuset:/c\n4:memory:/a/b\n2:cpu,cpuacct:/a/b\n1:name=systemd:/c\n"


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    """Control groups of version 1, or of both, with `a/b` below the folder of each controller."""
    for controller in ("cpu", "memory"):
        (tmp_path / "cgroups" / controller / "a" / "b").mkdir(parents=True)
    file = tmp_path / "membership"
    file.write_text(VERSION_1)
    return file


@pytest.mark.parametrize("of_both", ["", "0::/\n"], ids=["version 1", "both"])
@pytest.mark.parametrize(
    ("folder", "quota", "cores"),
    [
        pytest.param("a/b", "-1", CORES, id="no quota"),
        pytest.param("a/b", "150000", 1, id="own quota"),
        pytest.param("a", "100000", 1, id="quota of the parent"),
        pytest.param("", "100000", 1, id="quota of the container"),
    ],
)
def test_usable_cores_in_version_1(
    version_1: Path, of_both: str, folder: str, quota: str, cores: int
) -> None:
    version_1.write_text(VERSION_1 + of_both)
    cgroups = version_1.parent / "cgroups"
    (cgroups / "cpu" / folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (cgroups / "cpu" / folder / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(cgroups, version_1) == cores


@pytest.mark.parametrize(
    ("folder", "text", "limit"),
    [
        pytest.param("a/b", "9223372036854771712", None, id="no limit"),
        pytest.param("a/b", "1073741824", 2**30, id="own limit"),
        pytest.param("a", "1073741824", 2**30, id="limit of the parent"),
        pytest.param("", "1073741824", 2**30, id="limit of the container"),
    ],
)
def test_usable_memory_in_version_1(
    version_1: Path, folder: str, text: str, limit: int | None
) -> None:
    cgroups = version_1.parent / "cgroups"
    (cgroups / "memory" / folder / "memory.limit_in_bytes").write_text(f"{text}\n")
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert usable_memory(cgroups, version_1) == min(whole, limit or whole)


EXTERNAL = {"database.url": "postgresql://db.example.org/headgate"}
POOLED = EXTERNAL | {"database.pooler_url": "postgresql://pooler.example.org/headgate"}


@pytest.mark.parametrize(
    ("cores", "processes_in_memory", "database", "expected"),
    [
        (16, 100, {}, 16),
        (16, 3, {}, 3),
        (16, 0, {}, 1),
        (1, 100, {}, 1),
        (16, 100, EXTERNAL, 6),  # 6, and one more that replaces another one, with 12 connections
        (16, 100, EXTERNAL | {"database.pool": 4}, 14),
        (16, 100, EXTERNAL | {"database.pool": 89}, 1),
        (4, 100, EXTERNAL, 4),
        (16, 100, POOLED, 16),
    ],
)
def test_a_server_with_all_roles_has_a_process_for_each_core_within_memory_and_connections(
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    processes_in_memory: int,
    database: dict[str, object],
    expected: int,
) -> None:
    monkeypatch.setattr(process_slot, "usable_cores", lambda: cores)
    memory = processes_in_memory * MEMORY_PER_PROCESS + 1
    monkeypatch.setattr(process_slot, "usable_memory", lambda: memory)
    settings = load_settings(None, database, environment={})
    assert count_processes(settings, has_all_roles=True) == expected
    assert count_processes(settings, has_all_roles=False) == 1


@pytest.mark.parametrize("has_all_roles", [True, False])
def test_a_configured_number(has_all_roles: bool) -> None:
    settings = load_settings(None, {"server.processes": 7}, environment={})
    assert count_processes(settings, has_all_roles=has_all_roles) == 7


@pytest.mark.parametrize(("total", "count", "share"), [(20, 1, 20), (20, 3, 7), (2, 4, 1)])
def test_share(total: int, count: int, share: int) -> None:
    assert ProcessSlot(count=count).share(total) == share
