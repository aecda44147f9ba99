"""The commands of examples/shop/README.md, executed as written in a folder like a clone's."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.page_commands import ROOT, page_command
from tests.support.ports import free_port
from tests.support.postgres import copy_cluster, open_directory
from tests.support.program import PATIENCE, intervals

#: What the commands use of a clone. The server stores its data beside it.
OF_CLONE = ("Makefile", "examples", "pyproject.toml", "requirements", "tools")


@pytest.fixture
def clone() -> Iterator[Path]:
    with open_directory() as folder:
        for name in OF_CLONE:
            (folder / name).symlink_to(ROOT / name)
        # The environment of this test, which make must not install again.
        (folder / ".venv").mkdir()
        (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
        (folder / ".venv" / ".ready").touch()
        copy_cluster(folder / "headgate-data")
        yield folder


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=PATIENCE):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False


def test_the_page_starts_a_server_and_creates_the_shop(clone: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    here = os.environ | {
        "HEADGATE_SERVER__LISTEN": address,
        "HEADGATE_URL": f"http://{address}",
        "HEADGATE_PROJECT": "default",
    }
    serve = page_command("examples/shop/README.md", "make serve")
    create = page_command("examples/shop/README.md", ".venv/bin/headgate stack create")
    with subprocess.Popen(
        ["bash", "-c", f"{serve}\nwait $!"], cwd=clone, env=here, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as shell:  # fmt: skip
        try:
            end, pauses = time.monotonic() + PATIENCE, intervals()
            while not (ready := is_ready(f"http://{address}")) and shell.poll() is None:
                assert time.monotonic() < end
                time.sleep(next(pauses))
            created = subprocess.run(
                ["bash", "-c", create], cwd=clone, env=here, capture_output=True, text=True,
                timeout=PATIENCE, check=False,
            )  # fmt: skip
        finally:
            # make ends with its server, which inherits the pipe.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)
            logged, _ = shell.communicate(timeout=PATIENCE)
    assert ready, logged
    assert created.returncode == 0, (created.stdout, created.stderr, logged)
    assert "shop" in created.stdout
    assert (clone / "headgate-data").is_dir() and "Traceback" not in logged
