"""The security pages, held against the tests, settings, commands and metrics that they name."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from hub.settings.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
THREATS = (ROOT / "docs/explanation/threat-model.md").read_text()
HARDEN = (ROOT / "docs/how-to/harden.md").read_text()
SECURITY = ROOT / "SECURITY.md"
EXAMPLE = (ROOT / "config.example.toml").read_text()
ACTORS = re.findall(r"^### (.*)$", THREATS.split("\n## Actors\n")[1], re.M)
#: `[section] name`, `[section] name = value` or `[[section]] name`; and environment variables.
NAMED = re.compile(r"`\[\[?([a-z_.]+)\]?\] (\w+)(?: = ([^`]*))?`")
VARIABLE = re.compile(r"HEADGATE_([A-Z_]+?)__([A-Z_]+)")
#: Sections by a name of the operator's choice.
BY_NAME = {"quotas.projects.NAME"}


def settings_of_the_example() -> set[tuple[str, str]]:
    """Section and name of all settings, also of those that are commented out. A test of the
    settings holds the example against Settings."""
    found, section = set(), ""
    for line in EXAMPLE.splitlines():
        text = re.sub(r"^#+ (?:# )?", "", line)
        if header := re.fullmatch(r"\[\[?([\w.]+)\]\]?", text):
            section = header[1]
        elif named := re.match(r"(\w+) = ", text):
            found.add((section, named[1]))
    return found


def default(section: str, name: str) -> object:
    """Raises AttributeError for what is no setting."""
    found: object = Settings()
    for part in (*section.split("."), name):
        found = getattr(found, part)
    return found


@cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def missing_tests(page: str) -> list[str]:
    """Files and functions that the page names and that do not exist."""
    missing = []
    for path in sorted(set(re.findall(r"tests/[\w/]+(?:\.py)?(?:::\w+)?", page))):
        file, _, name = path.partition("::")
        known = functions_of(ROOT / file) if (ROOT / file).is_file() else set()
        if not name.startswith("test_") or name not in known:
            missing.append(path)
    return missing


def test_every_named_test_exists() -> None:
    assert len(re.findall(r"`tests/", THREATS)) > 100
    assert missing_tests(THREATS + HARDEN + SECURITY.read_text()) == []


def test_a_test_that_does_not_exist_is_found() -> None:
    wrong = [
        "tests/repository/test_threat_model.py::test_nothing",
        "tests/unit/test_nowhere.py::test_a",
    ]
    assert missing_tests(" ".join(wrong)) == wrong


@pytest.mark.parametrize("actor", ACTORS)
def test_each_promise_to_keep_an_actor_out_names_a_test(actor: str) -> None:
    section = THREATS.split(f"\n### {actor}\n")[1].split("\n## ")[0].split("\n### ")[0]
    header, *rows = re.findall(r"^\| .*", section, re.M)
    assert header == "| cannot | test |" and rows
    assert [row for row in rows if "`tests/" not in row.rsplit(" | ", 1)[1]] == []


def test_every_actor_is_described() -> None:
    wanted = {
        "Reader", "Author", "Approver", "Operator of a project", "Admin of a project",
        "Admin of the server", "Webhook receiver and owner of a subscription",
        "Program with a hook or signal token", "Database administrator", "Holder of a backup",
        "Other account on the host", "Network and anonymous client",
    }  # fmt: skip
    assert wanted <= set(ACTORS)


def wrong_settings(page: str) -> list[str]:
    """Settings that the page names and that do not exist."""
    known = settings_of_the_example()
    named = {(section, name) for section, name, _ in NAMED.findall(page)}
    for section, name in VARIABLE.findall(page):
        named.add((section.lower(), name.lower()))
    invalid = {f"[{section}] {name}" for section, name in named - known}
    for section, name in named & known:
        try:
            default(section, name)
        except AttributeError:  # of a list, or of sections by name
            parent, _, last = section.rpartition(".")
            one = default(parent, last) if parent else getattr(Settings(), last, None)
            if not isinstance(one, (tuple, list, dict)):
                invalid.add(f"[{section}] {name}")
    return sorted(invalid)


def test_every_named_setting_exists() -> None:
    assert len(set(NAMED.findall(HARDEN))) > 40
    assert wrong_settings(HARDEN + THREATS + SECURITY.read_text()) == []
    sections = set(re.findall(r"`\[\[?([a-z_.A-Z]+)\]\]?`", HARDEN)) - BY_NAME
    assert sections <= {section for section, _ in settings_of_the_example()}


def test_a_setting_that_does_not_exist_is_found() -> None:
    page = "`[server] lissen`, `[[hooks.rules]] onn`, `[sever] listen`, HEADGATE_DATABASE__URI"
    wrong = ["[database] uri", "[hooks.rules] onn", "[server] lissen", "[sever] listen"]
    assert wrong_settings(page) == wrong


def test_every_value_is_one_that_the_setting_takes(tmp_path: Path) -> None:
    """Each alone; a mode needs settings beside it."""
    values = [one for one in NAMED.findall(HARDEN) if one[2]]
    assert len(values) > 2
    for section, name, value in values:
        header = f"[[{section}]]" if section == "hooks.rules" else f"[{section}]"
        more = {"hooks.rules": 'on = ["pre-stack-create"]'}.get(section, "")
        file = tmp_path / "headgate.toml"
        file.write_text(f"{header}\n{more}\n{name} = {value}\n")
        load_settings(file, {}, environment={})


def test_the_starting_point_is_a_configuration(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", HARDEN, re.S)
    file = tmp_path / "headgate.toml"
    file.write_text(block)
    loaded = load_settings(file, {}, environment={})
    assert loaded.auth.mode == "tokens"
    assert len(loaded.hooks.rules) == 1 and not loaded.server.in_clear


def test_defaults_are_those_of_the_settings() -> None:
    rows = re.findall(r"^\| `\[([\w.]+)\] (\w+)` \| `(\w+)` \|", HARDEN, re.M)
    assert len(rows) > 10
    for section, name, figure in rows:
        assert default(section, name) == int(figure), name
    (off,) = re.findall(r"off by default, 0: (.*?)\.\n", HARDEN, re.S)
    assert [default(section, name) for section, name, _ in NAMED.findall(off)] == [0] * 4


def test_every_named_command_metric_and_log_line_exists() -> None:
    commands = (ROOT / "docs/reference/cli.md").read_text()
    pages = HARDEN + THREATS + SECURITY.read_text()
    for command in set(re.findall(r"headgate admin [a-z-]+", pages)):
        assert f"### `{command}" in commands, command
    metrics = (ROOT / "docs/reference/metrics.md").read_text()
    for metric in set(re.findall(r"`(headgate_\w+)", HARDEN)):
        assert f"| `{metric}`" in metrics, metric
    folders = ("hub", "engine", "channels")
    code = "".join(file.read_text() for one in folders for file in (ROOT / one).rglob("*.py"))
    for event in set(re.findall(r"log `([a-z_.]+)`", HARDEN)):
        assert f'"{event}"' in code, event


@pytest.mark.parametrize("page", ["SECURITY.md", "README.md", "CONTRIBUTING.md"])
def test_links_of_the_pages_at_the_root_resolve(page: str) -> None:
    """A test of the docs holds those of the pages in docs."""
    for target, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", (ROOT / page).read_text()):
        there = ROOT / (target or page)
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", there.read_text(), re.M)
            known = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
            assert anchor[1:] in known, target + anchor


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_security_policy_is_linked(page: str) -> None:
    assert "](SECURITY.md)" in (ROOT / page).read_text()
