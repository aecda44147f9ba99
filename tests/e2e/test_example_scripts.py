"""The programs of examples/web-service, run as Headgate::Command runs them."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.support.forks import is_running

SCRIPTS = Path(__file__).parents[2] / "examples" / "web-service"
SECRET = "hunter2-the-secret"
PATIENCE = 20.0
#: An operation key, and the ID that Headgate derives from it if the output of create was lost.
KEY, OWN_ID = "11111111-2222-4333-8444-555555555555", "web-it-111111112222"
Result = subprocess.CompletedProcess[str]


def script(name: str, operation: str, folder: Path, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPTS / name), operation],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HEADGATE_PHYSICAL_ID": ""} | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(process: subprocess.Popen[str]) -> Result:
    try:
        output, complained = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return subprocess.CompletedProcess(process.args, process.returncode, output, complained)


def run_script(name: str, operation: str, folder: Path, **variables: str) -> Result:
    return wait_for(script(name, operation, folder, **variables))


def output_of(one: Result) -> dict[str, Any]:
    assert one.returncode == 0, one.stderr
    known: dict[str, Any] = json.loads(one.stdout)
    return known


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def get(url: str) -> dict[str, Any]:
    with urlopen(url, timeout=PATIENCE) as response:
        assert response.headers["Content-Type"] == "application/json"
        known: dict[str, Any] = json.loads(response.read())
    return known


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder; processes started in it are ended afterwards."""
    yield tmp_path
    for pid in pids(tmp_path):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def pids(folder: Path) -> list[int]:
    """The PIDs of all services of this folder, with or without a PID file."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            called = (entry / "cmdline").read_bytes()
            mine = b"service.py\0serve\0" in called and (entry / "cwd").readlink() == folder
            if mine and is_running(int(entry.name)):
                found.append(int(entry.name))
    return found


@pytest.fixture
def config(folder: Path) -> str:
    output = output_of(
        run_script("write_config.py", "write", folder, SECRET=SECRET, HEADGATE_OPERATION_KEY="c")
    )
    return str(output["path"])


def start(folder: Path, config: str, key: str = "a", release: str = "1") -> Result:
    return wait_for(starting(folder, config, key, release))


def starting(
    folder: Path, config: str, key: str = "a", release: str = "1"
) -> subprocess.Popen[str]:
    return script(
        "service.py",
        "start",
        folder,
        HEADGATE_OPERATION_KEY=key,
        CONFIG=config,
        RELEASE=release,
    )


def check(folder: Path, name: str) -> int:
    return run_script("service.py", "check", folder, HEADGATE_PHYSICAL_ID=name).returncode


def stop(folder: Path, name: str) -> None:
    assert run_script("service.py", "stop", folder, HEADGATE_PHYSICAL_ID=name).returncode == 0


# -- write_config.py ------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_configuration(folder: Path) -> None:
    (folder / "config-k.new").touch(0o666)  # left by a killed write
    one = run_script("write_config.py", "write", folder, SECRET=SECRET, HEADGATE_OPERATION_KEY="k")
    path = Path(output_of(one)["path"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == {"secret": SECRET}
    assert SECRET not in one.stdout + one.stderr
    assert [*folder.iterdir()] == [path]


def test_a_configuration_is_removed_and_its_replacement_stays(folder: Path) -> None:
    old, new = [
        output_of(
            run_script("write_config.py", "write", folder, SECRET=key, HEADGATE_OPERATION_KEY=key)
        )
        for key in ("old", "new")
    ]
    for _ in range(2):  # the second one finds nothing, which is no error
        removed = run_script(
            "write_config.py", "remove", folder, HEADGATE_PHYSICAL_ID=str(old["id"])
        )
        assert removed.returncode == 0, removed.stderr
        assert [*folder.iterdir()] == [Path(new["path"])]


def test_an_interrupted_write_leaves_no_file(folder: Path) -> None:
    run_script("write_config.py", "write", folder, SECRET=SECRET, HEADGATE_OPERATION_KEY=KEY)
    (folder / f"config-{KEY}.new").touch()
    for other in ("", "web-it-0123456789ab"):
        assert (
            run_script("write_config.py", "remove", folder, HEADGATE_PHYSICAL_ID=other).returncode
            == 0
        )
        assert len([*folder.iterdir()]) == 2
    assert (
        run_script("write_config.py", "remove", folder, HEADGATE_PHYSICAL_ID=OWN_ID).returncode == 0
    )
    assert [*folder.iterdir()] == []


# -- service.py -----------------------------------------------------------------------------------


def test_the_service_starts_responds_and_stops(folder: Path, config: str) -> None:
    started = output_of(start(folder, config))
    assert started["id"] == "a"
    assert started["release"] == "1"
    assert started["url"] == f"http://127.0.0.1:{started['port']}/"
    assert get(started["url"]) == {"release": "1", "config": "read", "secret": len(SECRET)}
    assert check(folder, "a") == 0
    (pid,) = pids(folder)
    assert (folder / "service-a.pid").read_text() == str(pid)
    assert os.getsid(pid) == pid  # it outlives the command that started it
    assert "GET /" in (folder / "service-a.log").read_text()
    stop(folder, "a")
    assert not is_running(pid)
    assert [*folder.iterdir()] == [Path(config)]


def test_a_stop_waits_for_the_end_of_the_service(folder: Path, config: str) -> None:
    output_of(start(folder, config))
    (pid,) = pids(folder)
    os.kill(pid, signal.SIGSTOP)  # it cannot end yet
    stopping = script("service.py", "stop", folder, HEADGATE_PHYSICAL_ID="a")
    with pytest.raises(subprocess.TimeoutExpired):
        stopping.wait(0.5)
    assert (folder / "service-a.state").exists()
    os.kill(pid, signal.SIGCONT)
    assert wait_for(stopping).returncode == 0
    assert not is_running(pid)


def test_a_repeated_start_creates_one_service(folder: Path, config: str) -> None:
    first, second = output_of(start(folder, config)), output_of(start(folder, config))
    assert first == second
    assert len(pids(folder)) == 1


def test_two_concurrent_starts_create_one_service(folder: Path, config: str) -> None:
    both = [starting(folder, config) for _ in range(2)]
    first, second = [output_of(wait_for(one)) for one in both]
    assert first == second
    until(lambda: len(pids(folder)) == 1)
    assert check(folder, "a") == 0


def test_a_start_replaces_a_dead_instance(folder: Path, config: str) -> None:
    started = output_of(start(folder, config))
    (pid,) = pids(folder)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_running(pid))
    assert check(folder, "a") != 0
    repeated = output_of(start(folder, config, release="2"))
    assert repeated["id"] == started["id"]
    assert get(repeated["url"])["release"] == "2"


def test_a_new_release_responds_before_the_old_one_stops(folder: Path, config: str) -> None:
    old = output_of(start(folder, config, "old", "1"))
    new = output_of(start(folder, config, "new", "2"))
    assert [get(one["url"])["release"] for one in (old, new)] == ["1", "2"]
    stop(folder, "old")
    assert check(folder, "old") != 0
    assert get(new["url"])["release"] == "2"
    assert len(pids(folder)) == 1


def test_the_check_fails_without_a_configuration(folder: Path, config: str) -> None:
    started = output_of(start(folder, config))
    Path(config).unlink()
    assert check(folder, "a") != 0
    with pytest.raises(HTTPError) as caught:
        get(started["url"])
    with caught.value as error:
        assert error.code == 503
        assert json.loads(error.read()) == {"release": "1", "config": "missing"}


def test_a_failed_start_leaves_no_process(folder: Path, config: str) -> None:
    failed = run_script("service.py", "start", folder, HEADGATE_OPERATION_KEY="a", CONFIG=config)
    assert failed.returncode != 0
    assert "ended at once" in failed.stderr
    assert "RELEASE" in failed.stderr  # the missing file
    assert pids(folder) == []
    assert [*folder.iterdir()] == [Path(config)]


@pytest.mark.parametrize("moment", ["log", "pid", "new", "state"])
def test_a_terminated_start_leaves_no_process(folder: Path, config: str, moment: str) -> None:
    """End the start with SIGTERM, as Headgate does after a timeout, once this file exists."""
    process = starting(folder, config)
    until(lambda: process.poll() is not None or (folder / f"service-a.{moment}").exists())
    process.terminate()
    if wait_for(process).returncode == 0:  # it was faster
        assert len(pids(folder)) == 1
        return
    assert pids(folder) == []
    assert [*folder.iterdir()] == [Path(config)]


def test_a_service_whose_start_was_lost_is_stopped(folder: Path, config: str) -> None:
    """Ended after it started the service, before its output was read."""
    output_of(start(folder, config, KEY))
    (pid,) = pids(folder)
    stop(folder, OWN_ID)
    assert not is_running(pid)
    assert [*folder.iterdir()] == [Path(config)]


def test_a_pid_file_of_another_process_is_ignored(folder: Path, config: str) -> None:
    """The PID of an instance that died may now belong to another process."""
    other = subprocess.Popen(["/bin/sleep", "60"])
    try:
        (folder / "service-a.pid").write_text(str(other.pid))
        stop(folder, "a")
        assert other.poll() is None
        assert [*folder.iterdir()] == [Path(config)]
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("lost", ["", "web-it-0123456789ab"])
def test_a_stop_without_a_service_succeeds(folder: Path, config: str, lost: str) -> None:
    output_of(start(folder, config))
    stop(folder, lost)
    assert check(folder, "a") == 0
