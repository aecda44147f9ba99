"""The number of processes, and the share of one in the limits of the server."""

import os
from pathlib import Path

import pytest

from hub.program.process_slot import (
    MAX_DEFAULT_PROCESSES,
    ProcessSlot,
    count_processes,
    usable_cores,
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


def test_a_server_with_all_roles_uses_every_core() -> None:
    settings = load_settings(None, {}, environment={})
    expected = min(usable_cores(), MAX_DEFAULT_PROCESSES)
    assert count_processes(settings, has_all_roles=True) == expected
    assert count_processes(settings, has_all_roles=False) == 1


@pytest.mark.parametrize("has_all_roles", [True, False])
def test_a_configured_number(has_all_roles: bool) -> None:
    settings = load_settings(None, {"server.processes": 7}, environment={})
    assert count_processes(settings, has_all_roles=has_all_roles) == 7


@pytest.mark.parametrize(("total", "count", "share"), [(20, 1, 20), (20, 3, 7), (2, 4, 1)])
def test_share(total: int, count: int, share: int) -> None:
    assert ProcessSlot(count=count).share(total) == share
