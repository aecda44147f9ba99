"""The files in deploy/, used by systemd and Python."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from hub.settings.settings import Settings

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
IMAGE = (ROOT / "deploy" / "container" / "Containerfile").read_text()


def test_systemd_accepts_the_units_if_it_is_installed(tmp_path: Path) -> None:
    """systemd-analyze prints nothing for valid units. Without systemd, the checks of options must
    suffice.
    """
    analyze = shutil.which("systemd-analyze")
    for path in UNITS.glob("headgate*"):
        if path.is_dir():
            continue
        program = str(Path(sys.executable).parent / "headgate")
        text = path.read_text().replace("/opt/headgate/bin/headgate", program)
        (tmp_path / path.name).write_text(text)
    names = [str(tmp_path / "headgate@api.service"), str(tmp_path / "headgate.target")]
    command = [analyze, "verify", *names] if analyze else ["true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_hadolint_finds_nothing_in_the_image() -> None:
    hadolint = str(Path(sys.executable).parent / "hadolint")
    file = ROOT / "deploy" / "container" / "Containerfile"
    done = subprocess.run(
        [hadolint, "--no-color", file], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class Health(BaseHTTPRequestHandler):
    """status: of each response. paths: the requested paths so far."""

    status = 200
    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def health_url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Health) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/healthz"
        server.shutdown()
        thread.join(10)


def test_the_image_is_healthy_while_the_server_responds(
    health_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (check,) = re.findall(r"^HEALTHCHECK .*\\\n    CMD (\[.*\])$", IMAGE, re.MULTILINE)
    words = json.loads(check)
    assert words[0] == "python3"

    def healthy(url: str) -> bool:
        environment = {**os.environ, "HEADGATE_HEALTH_URL": url}
        command = [sys.executable, *words[1:]]
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, timeout=60)
        return done.returncode == 0

    assert healthy(health_url) and Health.paths == ["/healthz"]
    monkeypatch.setattr(Health, "status", 503)
    assert not healthy(health_url)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert not healthy(f"http://127.0.0.1:{closed.getsockname()[1]}/healthz")
    assert f"127.0.0.1:{Settings().server.port}/healthz" in words[2]
