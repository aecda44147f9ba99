"""What is in deploy/: units that systemd takes, an image that is made of what is there."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hub.app import ROLES

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "deploy" / "systemd"
IMAGE = (ROOT / "deploy" / "container" / "Containerfile").read_text()
PRODUCTION = (ROOT / "docs" / "how-to" / "run-in-production.md").read_text()
METRICS = (ROOT / "docs" / "reference" / "metrics.md").read_text()
#: Options of systemd's that the unit uses, as its manual has them.
KNOWN = {
    "Unit": {"Description", "Wants", "After", "PartOf", "StartLimitIntervalSec"},
    "Service": {
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
    for path in UNITS.iterdir():
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
