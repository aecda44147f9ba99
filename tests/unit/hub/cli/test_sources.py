"""Warnings and errors of the command line name the user's files."""

from pathlib import Path

import pytest

from headgate.errors import RequestError
from hub.cli.commands.sources import Sources, named_warnings, warning_text
from hub.cli.inputs.documents import parse
from hub.cli.inputs.files import InputError
from tests.support.program import Json

WARNING = {"code": "DuplicateKey", "message": "Twice.\nRemove\x1b one.", "path": "a.b",
           "file": "template", "line": 4, "column": 3}  # fmt: skip
FINDING: Json = {"place": "a", "reason": "Wrong", "remedy": "Mend it.", "type": "X",
                 "file": "template", "line": 2, "column": 3, "quote": "  a: 1\n  ^"}  # fmt: skip
SOURCES = Sources(Path("site/web.yaml"), [Path("env.yaml")])


@pytest.mark.parametrize("inside", [False, True])
def test_each_warning_has_its_position_and_the_quoted_line(inside: bool) -> None:
    others = [
        {**WARNING, "file": "environment", "line": 1},
        {**WARNING, "file": "in.yaml"},
        {**WARNING, "file": None, "line": None, "column": None},
    ]
    found = {"warnings": [WARNING, *others]}
    end = "Twice. Remove\ufffd one. (DuplicateKey)"
    named = named_warnings({"stack": found} if inside else found, SOURCES.names)
    assert [warning_text(one) for one in named] == [
        f"headgate: warning: {where}: {end}"
        for where in ("site/web.yaml:4:3", "env.yaml:1:3", "in.yaml:4:3", "a.b")
    ]
    quoted = warning_text({**WARNING, "quote": "  a: \x1b1\n  ^"})
    assert quoted.splitlines()[1:] == ["      a: \ufffd1", "      ^"]
    assert named_warnings({"stack": {}}, {}) == named_warnings({}, {}) == []


async def test_an_error_has_the_name_of_the_file_and_the_line() -> None:
    async def refused() -> Json:
        more: Json = {"place": "b", "reason": "Bad"}
        raise RequestError(400, "", "X", [FINDING, more])

    with pytest.raises(RequestError) as caught:
        await SOURCES.check_response(refused())
    assert str(caught.value).splitlines() == [
        "site/web.yaml:2:3: a: Wrong. Mend it.", "      a: 1", "      ^", "b: Bad",
    ]  # fmt: skip
    assert (caught.value.status, caught.value.code) == (400, "X")


async def test_the_warnings_of_a_refused_request_are_printed_before_its_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def refused() -> Json:
        raise RequestError(400, "Wrong", "X", [FINDING], {"warnings": [WARNING]})

    with pytest.raises(RequestError) as caught:
        await SOURCES.check_response(refused())
    assert "headgate: warning: site/web.yaml:4:3: Twice." in capsys.readouterr().err
    assert caught.value.warnings == [{**WARNING, "file": "site/web.yaml"}]


def test_a_file_that_cannot_be_parsed_is_quoted() -> None:
    with pytest.raises(InputError) as caught:
        parse("a: 1\nb: c: d\n", Path("x.yaml"))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("x.yaml:2:5: Error parsing x.yaml: mapping values")
    assert lines[1:] == ["    b: c: d", "        ^"]
