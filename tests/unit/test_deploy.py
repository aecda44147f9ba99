"""What is in deploy/: units that systemd takes, an image that is made of what is there."""

import configparser
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

from hub.program.app import ROLES
from hub.settings.settings import Settings

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
IMAGE = (ROOT / "deploy" / "container" / "Containerfile").read_text()
PRODUCTION = (ROOT / "docs" / "how-to" / "run-in-production.md").read_text()
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text()
#: Options of systemd's that the unit uses, as its manual has them.
KNOWN = {
    "Unit": {"Description", "Wants", "After", "PartOf", "StartLimitIntervalSec"},
    "Service": {
        "IPAddressDeny",
        "Type", "User", "Group", "EnvironmentFile", "ExecStart", "ExecReload", "Restart",
        "RestartSec", "TimeoutStopSec", "StateDirectory", "StateDirectoryMode",
        "ConfigurationDirectory", "ConfigurationDirectoryMode", "WorkingDirectory", "UMask",
        "LimitNOFILE", "NoNewPrivileges", "CapabilityBoundingSet", "AmbientCapabilities",
        "ProtectSystem", "ProtectHome", "ProtectProc", "ProcSubset", "ProtectClock",
        "ProtectHostname", "ProtectControlGroups", "ProtectKernelLogs", "ProtectKernelModules",
        "ProtectKernelTunables", "PrivateTmp", "PrivateDevices", "PrivateUsers", "LockPersonality",
        "MemoryDenyWriteExecute", "RemoveIPC", "RestrictAddressFamilies", "RestrictNamespaces",
        "RestrictRealtime", "RestrictSUIDSGID", "SystemCallArchitectures", "SystemCallFilter",
        "SystemCallErrorNumber",
    },
    "Install": {"WantedBy"},
}  # fmt: skip


def unit(name: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    read.optionxform = str  # type: ignore[assignment]
    read.read_string((UNITS / name).read_text())
    return read


@pytest.mark.parametrize("name", ["headgate@.service", "headgate.target"])
def test_a_unit_has_no_option_that_systemd_does_not_know(name: str) -> None:
    read = unit(name)
    used = {section: set(read[section]) for section in read.sections()}
    assert {one: found - KNOWN[one] for one, found in used.items() if found - KNOWN[one]} == {}


def test_systemd_takes_the_units_where_it_is_there(tmp_path: Path) -> None:
    """It says nothing of units that are well. Without systemd the options above have to do."""
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


def test_the_units_start_what_there_is_as_somebody_who_may_do_little() -> None:
    service = unit("headgate@.service")["Service"]
    assert service["User"] == "headgate" and service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict" and service["CapabilityBoundingSet"] == ""
    assert service["ExecStart"].endswith("--role %i")
    named = set(re.findall(r"headgate@(\w+)", (UNITS / "headgate.target").read_text()))
    assert named == ROLES


def test_a_unit_reaches_no_metadata_service() -> None:
    service = unit("headgate@.service")["Service"]
    assert "link-local" in service["IPAddressDeny"].split()


def test_a_unit_that_runs_commands_can_become_their_account_and_no_more() -> None:
    usual = unit("headgate@.service")["Service"]
    more = unit("headgate@engine.service.d/commands.conf")["Service"]
    assert (usual["CapabilityBoundingSet"], more["User"]) == ("", "root")
    assert set(more["CapabilityBoundingSet"].split()) == {"CAP_SETUID", "CAP_SETGID", "CAP_KILL"}
    assert set(more) <= KNOWN["Service"]


def test_the_guide_installs_nothing_without_a_hash() -> None:
    """Without --no-build-isolation, pip fetches what builds the package, whatever it is then."""
    installs = re.findall(r"pip install (.*)", PRODUCTION)
    assert installs
    for one in installs:
        assert "--require-hashes" in one or {"--no-deps", "--no-build-isolation"} <= set(
            one.split()
        )
        for lock in re.findall(r"-r (\S+)", one):
            assert (ROOT / lock).exists()


def test_the_image_is_made_of_what_is_there_and_locked_and_not_run_by_root() -> None:
    for line in re.findall(r"^COPY (?!--from)(.*)$", IMAGE, re.MULTILINE):
        *sources, _ = line.split()
        assert [one for one in sources if not (ROOT / one).exists()] == []
    installs = re.findall(r"pip install [^\n\\]*", IMAGE)
    assert all("--require-hashes" in one or "--no-deps" in one for one in installs)
    images = re.findall(r"^FROM (\S+)", IMAGE, re.MULTILINE)
    assert set(images) == {"debian:bookworm-slim"}
    user = re.findall(r"^USER (\S+)$", IMAGE, re.MULTILINE)[-1]
    assert user.isdigit() and int(user) > 0


def test_the_guide_installs_what_is_secret_for_its_owner_alone() -> None:
    """As `headgate admin doctor` and the hardening guide ask for: mode 0600."""
    installed = re.findall(r"install -m (\d+) (.*) (/etc/headgate/\S+)", PRODUCTION)
    assert {path.rpartition("/")[2] for *_, path in installed} == {
        "headgate.toml", "credentials.key",
    }  # fmt: skip
    for mode, rest, path in installed:
        assert (mode, "-o headgate" in rest) == ("0600", True), path


class Health(BaseHTTPRequestHandler):
    """status: of each answer. asked: the paths so far."""

    status = 200
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
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


def test_the_image_is_healthy_while_the_server_answers(
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

    assert healthy(health_url) and Health.asked == ["/healthz"]
    monkeypatch.setattr(Health, "status", 503)
    assert not healthy(health_url)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert not healthy(f"http://127.0.0.1:{closed.getsockname()[1]}/healthz")
    assert f"127.0.0.1:{Settings().server.port}/healthz" in words[2]


def test_what_is_watched_is_measured() -> None:
    """Prometheus gives histograms a name for their buckets."""
    named = {one.removesuffix("_bucket") for one in re.findall(r"\bheadgate_\w+", PRODUCTION)}
    known = set(re.findall(r"^\| `(headgate_\w+)`", METRICS, re.MULTILINE))
    assert named - known == {"headgate_drill"}


def test_locks_hold_requirements_with_their_hashes_and_nothing_else() -> None:
    """So that pip takes each of them."""
    line = re.compile(r"[A-Za-z0-9._\[\]-]+==\S+.*|    --hash=sha256:[0-9a-f]{64}( \\)?|    #.*")
    for lock in (ROOT / "requirements").glob("*.lock"):
        strange = [one for one in lock.read_text().splitlines() if not line.fullmatch(one)]
        assert strange == [], lock


def test_locks_that_are_installed_together_agree() -> None:
    """A requirement of two of them has one version, or pip refuses the second one."""
    versions: dict[str, set[str]] = {}
    for name in ("run.lock", "tracing.lock", "build.lock"):
        text = (ROOT / "requirements" / name).read_text()
        for package, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE):
            versions.setdefault(package, set()).add(version)
    assert {one: found for one, found in versions.items() if len(found) > 1} == {}
