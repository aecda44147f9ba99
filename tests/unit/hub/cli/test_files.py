"""Templates, environments and parameters as they are read for a request."""

from pathlib import Path

import pytest

from hub.cli.files import Unreadable, environment_body, joined, parameters, template_body

TEMPLATE = """
heat_template_version: 2018-08-31
resources:
  a:
    type: OS::Heat::Value
    properties:
      value: [{get_file: %s}, {nested: {get_file: other.txt}}]
"""


def template(folder: Path, name: str = "data/one.txt") -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "one.txt").write_text("one")
    (folder / "other.txt").write_text("other")
    path = folder / "t.yaml"
    path.write_text(TEMPLATE % name)
    return path


def test_files_named_by_the_template_are_sent_along(tmp_path: Path) -> None:
    body = template_body(template(tmp_path))
    assert body["files"] == {"data/one.txt": "one", "other.txt": "other"}
    assert "get_file" in body["template"]


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    path = template(tmp_path, "nope.txt")
    with pytest.raises(
        Unreadable, match=r"t\.yaml: get_file: .*nope\.txt: cannot be read: No such"
    ):
        template_body(path)


@pytest.mark.parametrize(
    "name", ["../secret.txt", "/etc/hostname", "data/../../secret.txt", "link"]
)
def test_a_template_cannot_send_files_from_elsewhere(tmp_path: Path, name: str) -> None:
    path = template(tmp_path / "inside", name)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(Unreadable, match="lies outside of"):
        template_body(path)


def test_files_beside_the_template_may_be_in_the_folder_one_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = template(tmp_path / "inside", "../shared.txt")
    (tmp_path / "shared.txt").write_text("shared")
    monkeypatch.chdir(tmp_path)
    assert template_body(path)["files"]["../shared.txt"] == "shared"


def test_addresses_are_not_followed(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="is an address"):
        template_body(template(tmp_path, "http://example.com/x"))


def test_a_broken_template_is_told_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("{")
    with pytest.raises(Unreadable, match=r"t\.yaml: "):
        template_body(path)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Unreadable, match="it is no text"):
        template_body(path)


def test_parameters_are_split_at_the_first_equals_sign(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    found = parameters(["a=1", "b=x=y", "c=", "d=@alice"], [f"e={secret}"])
    assert found == {"a": "1", "b": "x=y", "c": "", "d": "@alice", "e": "s3cret"}


@pytest.mark.parametrize("pair", ["novalue", "=x", ""])
def test_a_parameter_without_a_key_or_a_sign_is_refused(pair: str) -> None:
    with pytest.raises(Unreadable, match="key=value"):
        parameters([pair])


def test_a_parameter_cannot_be_a_value_and_a_file(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="a: is given twice"):
        parameters(["a=1"], [f"a={tmp_path / 'x'}"])


def test_environments_keep_their_order_and_one_goes_as_text(tmp_path: Path) -> None:
    first, second = tmp_path / "b.yaml", tmp_path / "a.yaml"
    first.write_text("parameters: {x: 1}")
    second.write_text("parameters: {x: 2}")
    assert environment_body([]) == {}
    assert environment_body([first]) == {"environment": "parameters: {x: 1}"}
    both = environment_body([first, second])
    assert both["environment_files"] == [str(first), str(second)]
    assert both["files"][str(second)] == "parameters: {x: 2}"


def test_files_of_template_and_environments_travel_together() -> None:
    body = joined({"template": "t", "files": {"a": "1"}}, {"files": {"b": "2"}})
    assert body == {"template": "t", "files": {"a": "1", "b": "2"}}
