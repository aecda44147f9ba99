"""The operator's environment: a folder of files, read at start."""

from pathlib import Path

import pytest

from engine.errors import Invalid
from engine.hot.syntax.document import DocumentLimits
from hub.program.operator_environment import read_operator_environment
from hub.program.wiring import make_limits
from hub.settings.settings import Settings

LIMITS = DocumentLimits(max_bytes=2000)
TEMPLATE = "heat_template_version: 2018-08-31\n"


def folder(tmp_path: Path, **files: str) -> str:
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return str(tmp_path)


def end(found: object, name: str) -> str | None:
    led = found.registry.find(name, "r", {"T", "U"})  # type: ignore[attr-defined]
    return led.type if led else None


def findings_of(directory: str) -> list[str]:
    with pytest.raises(Invalid) as caught:
        read_operator_environment(directory, LIMITS)
    return [str(one).replace(directory, "") for one in caught.value.findings]


def test_without_a_folder_there_is_no_environment() -> None:
    found = read_operator_environment("", LIMITS)
    assert (found.registry.mapped, found.files) == ({}, {})


def test_files_are_merged_in_order(tmp_path: Path) -> None:
    directory = folder(
        tmp_path,
        b="resource_registry: {A: U, B: null, resources: {r: {R: U}}}",
        a="resource_registry: {A: T, B: T, C: T, resources: {q: {Q: T}}}",
        c="",
        d="{parameters: {}, resource_registry: {}}",
    )
    (tmp_path / ".hidden").write_text("{")
    (tmp_path / "folder").mkdir()
    found = read_operator_environment(directory, LIMITS)
    assert [end(found, name) for name in "ABCRQ"] == ["U", None, "T", "U", None]


def test_templates_in_the_folder_can_be_types(tmp_path: Path) -> None:
    below = tmp_path / "environment.d"
    below.mkdir()
    (tmp_path / "a b.yaml").write_text(TEMPLATE)
    address = (tmp_path / "a b.yaml").as_uri()
    registry = {
        "A": '"../a b.yaml"',
        "B": f'"{address}"',
        "C": '"https://t.example.org/far.yaml"',
        "resources": '{r: {D: "../a b.yaml"}}',
    }
    text = ", ".join(f"{name}: {target}" for name, target in registry.items())
    found = read_operator_environment(folder(below, a=f"resource_registry: {{{text}}}"), LIMITS)
    assert found.files == {"../a b.yaml": TEMPLATE, address: TEMPLATE}
    assert "%20" in address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "/a.yaml: Error parsing environment"),
        ("[]", "/a.yaml: The environment is not a valid YAML mapping data type."),
        ("rsource_registry: {}", '/a.yaml: rsource_registry: environment has wrong section "rsour'),
        (
            "parameter_defaults: {a: 1}",
            "/a.yaml: parameter_defaults: It is not supported in the op",
        ),
        ("resource_registry: {A: 5}", "/a.yaml: resource_registry.A: This must be the name of a"),
        ("resource_registry: {A: B, B: A}", "/a.yaml: resource_registry.A: Circular aliases"),
        (
            "resource_registry: {resources: {a: {hooks: pre-create}}}",
            "/a.yaml: resource_registry.resources.a.hooks: It is not supported in the operator's "
            "environment. The operator's own breakpoints are [[hooks.rules]] in the settings.",
        ),
        (
            "resource_registry: {resources: {a: {b: {hooks: pre-create}}}}",
            "/a.yaml: resource_registry.resources.a.b.hooks: It is not supported",
        ),
        ("hooks: [{on: pre-create}]", "/a.yaml: hooks: It is not supported"),
        (
            "resource_registry: {resources: {a: {restricted_actions: update}}}",
            "/a.yaml: resource_registry.resources.a.restricted_actions: It is not supported",
        ),
        ("resource_registry: {A: gone.yaml}", "/gone.yaml: It cannot be read: No such file or dir"),
        ("resource_registry: {A: ../bad.yaml}", "/../bad.yaml: The template version is invalid: "),
        (
            "#" * 2001,
            "/a.yaml: It is larger than 2000 bytes. The limit is [quotas] template_bytes.",
        ),
    ],
)
def test_an_error_has_its_file(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "bad.yaml").write_text("{}")
    below = tmp_path / "environment.d"
    below.mkdir()
    assert findings_of(folder(below, a=text))[0].startswith(expected)


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    messages = findings_of(folder(tmp_path, a="{", b="event_sinks: [1]", c="parameters: {a: 1}"))
    assert [one.partition(":")[0] for one in messages] == ["/a.yaml", "/b.yaml", "/c.yaml"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    (message,) = findings_of(str(tmp_path / "gone"))
    assert message == (
        "[environment] directory:  cannot be read: No such file or directory. "
        "Name an existing folder."
    )


def test_cycles_between_files_are_errors(tmp_path: Path) -> None:
    (message, *_) = findings_of(folder(tmp_path, a="resource_registry: {A: B}",
                              b="resource_registry: {B: A}"))  # fmt: skip
    assert "Circular aliases: A -> B -> A" in message


def test_the_environment_applies_to_projects_with_their_own_quotas(tmp_path: Path) -> None:
    directory = folder(tmp_path, a="resource_registry: {A: T}")
    settings = Settings.model_validate(
        {
            "environment": {"directory": directory},
            "quotas": {"projects": {"p": {"stacks_per_project": 1}}},
        }
    )
    limits = make_limits(settings)
    assert (
        end(limits.for_project("p").environment, "A")
        == end(limits.for_project("q").environment, "A")
        == "T"
    )
