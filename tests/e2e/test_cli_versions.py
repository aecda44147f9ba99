"""Texts of templates: as they were sent, and compared."""

from pathlib import Path

import pytest

from tests.support.command_line import headgate, headgate_json
from tests.support.program import ServerProcess
from tests.support.terminal import terminal

FIRST = """\
heat_template_version: 2018-08-31   # the version
# The only resource.
resources:
    z: {type: OS::Heat::TestResource, properties: {value: {get_file: motd}}}
outputs: {}
"""
SECOND = FIRST.replace("outputs: {}", 'outputs: {z: {value: "one"}}')


@pytest.fixture(scope="module")
def stack(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template of the stack `texts`, which has two versions; its file has changed since."""
    folder = tmp_path_factory.mktemp("texts")
    template = folder / "t.yaml"
    (folder / "motd").write_text("hello\n")
    template.write_text(FIRST)
    headgate(server, "stack", "create", "texts", "-t", str(template), "--wait")
    template.write_text(SECOND)
    headgate(server, "stack", "update", "texts", "-t", str(template), "--wait")
    return template


def test_a_template_is_printed_as_it_was_sent(server: ServerProcess, stack: Path) -> None:
    assert headgate(server, "stack", "template", "texts") == SECOND
    assert headgate(server, "stack", "template", "texts", "--version", "1") == FIRST
    content = headgate_json(server, "stack", "template", "texts")
    assert (content["version"], content["source"], content["files"]) == (2, SECOND, {"motd": "hello\n"})  # fmt: skip
    assert content["template"]["outputs"] == {"z": {"value": "one"}}
    with terminal("stack", "template", "texts", server=server) as user:
        assert "# The only resource.\n" in user.wait()


def test_two_versions_are_compared(server: ServerProcess, stack: Path) -> None:
    expected = [
        "--- template (version 1)",
        "+++ template (version 2)",
        "@@ -2,4 +2,4 @@",
        " # The only resource.",
        " resources:",
        "     z: {type: OS::Heat::TestResource, properties: {value: {get_file: motd}}}",
        "-outputs: {}",
        '+outputs: {z: {value: "one"}}',
    ]
    assert headgate(server, "stack", "diff", "texts").splitlines() == expected
    assert headgate_json(server, "stack", "diff", "texts") == {
        "from": 1,
        "to": 2,
        "lines": expected,
    }
    reverse = headgate(server, "stack", "diff", "texts", "--from", "2", "--to", "1")
    assert "+outputs: {}" in reverse.splitlines()
    with terminal("stack", "diff", "texts", server=server) as user:
        assert "\x1b[32m+outputs" in user.wait()


def test_a_version_is_compared_with_a_file(server: ServerProcess, stack: Path) -> None:
    compare = ("stack", "diff", "texts", "-t", str(stack))
    assert headgate(server, *compare).strip() == ""
    assert "-outputs: {}" in headgate(server, *compare, "--from", "1").splitlines()
    (stack.parent / "motd").write_text("bye\n")
    shown = headgate(server, *compare).splitlines()
    (stack.parent / "motd").write_text("hello\n")
    assert shown[0] == "--- file motd (version 2)"
    assert shown[1] == f"+++ file motd ({stack})"
    assert shown[-2:] == ["-hello", "+bye"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--to", "1"), 1, "no stored version before version 1; compare with a file"),
        (("--from", "9"), 1, "there is no version 9"),
        (("--from", "0"), 2, "--from"),
        (("-t", "x", "--to", "1"), 2, "use either --template or --to"),
        (("-t", "/nope.yaml"), 1, "/nope.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    server: ServerProcess, stack: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    assert message in headgate(server, "stack", "diff", "texts", *words, code=code)
