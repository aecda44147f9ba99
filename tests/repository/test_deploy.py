"""The files in deploy/: systemd units, the container image and the Helm chart."""

import configparser
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hub.program.app import ROLES
from tools.helm_values_schema import SCHEMA, with_settings

Json = Any
ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "headgate"
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
        "LimitNOFILE", "Environment", "KillMode",
        "NoNewPrivileges", "CapabilityBoundingSet", "AmbientCapabilities",
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


def test_the_units_run_existing_commands_as_an_unprivileged_account() -> None:
    service = unit("headgate@.service")["Service"]
    assert service["User"] == "headgate" and service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict" and service["CapabilityBoundingSet"] == ""
    assert service["ExecStart"].endswith("--role %i")
    named = set(re.findall(r"headgate@(\w+)", (UNITS / "headgate.target").read_text()))
    assert named == ROLES


def test_a_unit_reaches_no_metadata_service() -> None:
    service = unit("headgate@.service")["Service"]
    assert "link-local" in service["IPAddressDeny"].split()


def test_a_unit_that_runs_commands_can_only_switch_to_their_account() -> None:
    usual = unit("headgate@.service")["Service"]
    more = unit("headgate@engine.service.d/commands.conf")["Service"]
    assert (usual["CapabilityBoundingSet"], more["User"]) == ("", "root")
    assert set(more["CapabilityBoundingSet"].split()) == {"CAP_SETUID", "CAP_SETGID", "CAP_KILL"}
    # systemd gives a StateDirectory to the account of the unit that started last, and ProtectHome
    # hides root's home, where the client of PostgreSQL looks for certificates.
    own = "/var/lib/" + more["StateDirectory"]
    assert usual["StateDirectory"] != more["StateDirectory"]
    assert (more["WorkingDirectory"], more["Environment"]) == (own, f"HOME={own}")
    assert set(more) <= KNOWN["Service"]


def test_a_unit_stops_by_its_main_process_and_reloads_without_another_program() -> None:
    """Programs of Headgate::Command and an embedded database get no SIGTERM from systemd, and a
    minimal Debian has no /bin/kill."""
    service = unit("headgate@.service")["Service"]
    assert service["KillMode"] == "mixed"
    assert service["ExecReload"] == "/bin/sh -c 'kill -HUP $$MAINPID'"


def test_the_guide_installs_nothing_without_a_hash() -> None:
    """Without --no-build-isolation, pip fetches the build requirements without hashes."""
    installs = re.findall(r"pip install (.*)", PRODUCTION)
    assert installs
    for one in installs:
        assert "--require-hashes" in one or {"--no-deps", "--no-build-isolation"} <= set(
            one.split()
        )
        for lock in re.findall(r"-r (\S+)", one):
            assert (ROOT / lock).exists()


def test_the_image_uses_existing_files_and_locked_packages_and_does_not_run_as_root() -> None:
    for line in re.findall(r"^COPY (?!--from)(.*)$", IMAGE, re.MULTILINE):
        *sources, _ = line.split()
        assert [one for one in sources if not (ROOT / one).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["setuptools"]["packages"]["find"]["include"]
    for package in {name.removesuffix(".*") for name in included}:
        assert f"COPY {package} {package}\n" in IMAGE
    installs = re.findall(r"pip install [^\n\\]*", IMAGE)
    assert all("--require-hashes" in one or "--no-deps" in one for one in installs)
    images = re.findall(r"^FROM (\S+)", IMAGE, re.MULTILINE)
    assert set(images) == {"debian:bookworm-slim"}
    user = re.findall(r"^USER (\S+)$", IMAGE, re.MULTILINE)[-1]
    assert user.isdigit() and int(user) > 0


def test_the_builder_of_the_image_gets_what_is_copied_and_no_keys_or_data() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", IMAGE, re.MULTILINE)
    wanted = {one.partition("/")[0] for line in copied for one in line.split()}
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    assert {one.removeprefix("!") for one in rules if one.startswith("!")} == wanted
    assert {"**/__pycache__", "hub/dashboard/node_modules"} <= set(rules)


def test_keys_and_passwords_of_the_guides_are_not_committed() -> None:
    """deploy/compose/.env, credentials.key and audit.key, in a clone."""
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {"/deploy/compose/.env", "*.key"} <= set(ignored)


def test_the_guide_installs_secrets_readable_by_their_owner_only() -> None:
    """As `headgate admin doctor` and the hardening guide ask for: mode 0600."""
    installed = re.findall(r"install -m (\d+) (.*) (/etc/headgate/\S+)", PRODUCTION)
    assert {path.rpartition("/")[2] for *_, path in installed} == {
        "headgate.toml", "credentials.key",
    }  # fmt: skip
    for mode, rest, path in installed:
        assert (mode, "-o headgate" in rest) == ("0600", True), path


def test_alerts_use_existing_metrics() -> None:
    """Prometheus gives histograms a name for their buckets."""
    named = {one.removesuffix("_bucket") for one in re.findall(r"\bheadgate_\w+", PRODUCTION)}
    known = set(re.findall(r"^\| `(headgate_\w+)`", METRICS, re.MULTILINE))
    assert named - known == {"headgate_drill"}


def test_the_chart_has_the_version_and_the_roles_of_headgate() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values["roles"]) == ROLES


def test_the_chart_refuses_unknown_settings() -> None:
    """If this fails, run `make helm-schema`."""
    assert SCHEMA.read_text() == with_settings(SCHEMA.read_text())
    schema = json.loads(SCHEMA.read_text())["definitions"]["settings"]
    example = tomllib.loads((ROOT / "config.example.toml").read_text())
    jsonschema.validate(example, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(example | {"sever": {}}, schema)


def test_each_value_of_the_chart_has_a_default() -> None:
    schema = json.loads(SCHEMA.read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert missing(schema, values, schema["definitions"]) == ["global"]


def missing(schema: Json, values: Json, definitions: Json, place: str = "") -> list[str]:
    """The properties of a schema without a value, except settings, whose defaults Headgate has."""
    if reference := schema.get("$ref"):
        schema = definitions[reference.rpartition("/")[2]]
    found = []
    for name, one in schema.get("properties", {}).items():
        own = f"{place}{name}"
        if own == "config":
            continue
        if name not in values:
            found.append(own)
        elif isinstance(values[name], dict):
            found += missing(one, values[name], definitions, f"{own}.")
    return found


def test_lock_files_contain_requirements_with_hashes_only() -> None:
    """So that pip takes each of them."""
    line = re.compile(r"[A-Za-z0-9._\[\]-]+==\S+.*|    --hash=sha256:[0-9a-f]{64}( \\)?|    #.*")
    for lock in (ROOT / "requirements").glob("*.lock"):
        strange = [one for one in lock.read_text().splitlines() if not line.fullmatch(one)]
        assert strange == [], lock


def test_lock_files_installed_together_have_the_same_versions() -> None:
    """A requirement of two of them has one version, or pip refuses the second one."""
    versions: dict[str, set[str]] = {}
    for name in ("run.lock", "tracing.lock", "apprise.lock", "build.lock"):
        text = (ROOT / "requirements" / name).read_text()
        for package, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE):
            versions.setdefault(package, set()).add(version)
    assert {one: found for one, found in versions.items() if len(found) > 1} == {}
