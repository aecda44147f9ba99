"""Files of templates and environments, and the request bodies from them."""

from pathlib import Path

import pytest

from hub.cli.files import InputError
from hub.cli.request_bodies import environment_body, merge_bodies, parameters, template_body

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


def test_files_that_the_template_names_are_sent(tmp_path: Path) -> None:
    body = template_body(template(tmp_path))
    assert body["files"] == {"data/one.txt": "one", "other.txt": "other"}
    assert "get_file" in body["template"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = template(tmp_path, "nope.txt")
    with pytest.raises(
        InputError, match=r"t\.yaml:7:16: .*\[0]\.get_file: .*nope\.txt: cannot be read: No such"
    ):
        template_body(path)


@pytest.mark.parametrize(
    "name", ["../secret.txt", "/etc/hostname", "data/../../secret.txt", "link"]
)
def test_a_template_cannot_send_files_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    path = template(tmp_path / "inside", name)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InputError, match="is outside of"):
        template_body(path)


def test_files_can_be_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = template(tmp_path / "inside", "../shared.txt")
    (tmp_path / "shared.txt").write_text("shared")
    monkeypatch.chdir(tmp_path)
    assert template_body(path)["files"]["../shared.txt"] == "shared"


def test_urls_are_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a URL"):
        template_body(template(tmp_path, "http://example.com/x"))


def test_an_invalid_template_is_reported_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("{")
    with pytest.raises(InputError, match=r"t\.yaml: "):
        template_body(path)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="it is not a text file"):
        template_body(path)


def test_parameters_are_split_at_the_first_equals_sign(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    found = parameters(["a=1", "b=x=y", "c=", "d=@alice"], [f"e={secret}"])
    assert found == {"a": "1", "b": "x=y", "c": "", "d": "@alice", "e": "s3cret"}


@pytest.mark.parametrize("pair", ["novalue", "=x", ""])
def test_a_parameter_without_a_key_or_a_sign_is_refused(pair: str) -> None:
    with pytest.raises(InputError, match="key=value"):
        parameters([pair])


def test_a_parameter_cannot_be_a_value_and_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a: use either"):
        parameters(["a=1"], [f"a={tmp_path / 'x'}"])


def test_environments_keep_their_order_and_a_single_one_is_sent_as_text(tmp_path: Path) -> None:
    first, second = tmp_path / "b.yaml", tmp_path / "a.yaml"
    first.write_text("parameters: {x: 1}")
    second.write_text("parameters: {x: 2}")
    assert environment_body([]) == {}
    assert environment_body([first]) == {"environment": "parameters: {x: 1}"}
    both = environment_body([first, second])
    assert both["environment_files"] == [str(first), str(second)]
    assert both["files"][str(second)] == "parameters: {x: 2}"


def test_files_of_template_and_environments_are_sent_together() -> None:
    body = merge_bodies({"template": "t", "files": {"a": "1"}}, {"files": {"b": "2"}})
    assert body == {"template": "t", "files": {"a": "1", "b": "2"}}


def files(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


TYPES = "resources: {{a: {{type: {0}}}, b: {{type: OS::Heat::None}}, c: {{type: 5}}, d: 6}}"


def test_templates_that_are_types_are_sent_with_their_files(tmp_path: Path) -> None:
    files(
        tmp_path,
        t_yaml=TYPES.format("sub/web.yaml"),
        sub__web_yaml="Resources: {a: {Type: db.template}, b: {Type: 'https://t.test/x.yaml'}}",
        sub__db_template="outputs: {o: {value: {get_file: run.sh}}, p: {value: sub/web.yaml}}",
        sub__run_sh="#!",
    )
    body = template_body(tmp_path / "t.yaml")
    assert {name: text[:6] for name, text in body["files"].items()} == {
        "sub/web.yaml": "Resour",
        "db.template": "output",
        "run.sh": "#!",
    }


def test_a_template_can_name_itself(tmp_path: Path) -> None:
    files(tmp_path, t_yaml=TYPES.format("t.yaml"))
    assert list(template_body(tmp_path / "t.yaml")["files"]) == ["t.yaml"]


def test_templates_that_an_environment_maps_to_are_sent(tmp_path: Path) -> None:
    files(
        tmp_path,
        env__e_yaml="resource_registry: {base_url: x.yaml, A: web.yaml, B: OS::Heat::None, C: null,"
        " resources: {a: {D: other.yaml, hooks: pre-create}}}",
        env__web_yaml="{}",
        env__other_yaml="{}",
        f_yaml="resource_registry: {A: web.yaml}",
        web_yaml="{}",
        empty_yaml="",
    )
    one, other = tmp_path / "env" / "e.yaml", tmp_path / "f.yaml"
    assert environment_body([one])["files"] == {"web.yaml": "{}", "other.yaml": "{}"}
    both = environment_body([one, other, tmp_path / "empty.yaml"])
    assert set(both["files"]) == {"web.yaml", "other.yaml", *both["environment_files"]}
    (tmp_path / "web.yaml").write_text("outputs: {}")
    with pytest.raises(InputError, match=r"web\.yaml: two files have this name"):
        environment_body([one, other])


def test_a_name_for_two_files_is_refused(tmp_path: Path) -> None:
    files(
        tmp_path,
        t_yaml="resources: {a: {type: sub/web.yaml}, b: {type: db.yaml}}",
        sub__web_yaml="resources: {a: {type: db.yaml}}",
        sub__db_yaml="{}",
        db_yaml="{}",
    )
    with pytest.raises(InputError, match=r"already refers to .*db\.yaml; rename one of them"):
        template_body(tmp_path / "t.yaml")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../t.yaml", "is outside of"),
        ("file:///etc/t.yaml", "is a URL; download it"),
        ("gone.yaml", "a.type: .*gone.yaml: cannot be read"),
    ],
)
def test_types_that_cannot_be_sent(tmp_path: Path, name: str, message: str) -> None:
    files(tmp_path, x__t_yaml=TYPES.format(f"'{name}'"))
    with pytest.raises(InputError, match=message):
        template_body(tmp_path / "x" / "t.yaml")


def test_a_nested_template_cannot_send_files_outside_of_the_folder(tmp_path: Path) -> None:
    files(
        tmp_path,
        x__t_yaml=TYPES.format("in/web.yaml"),
        x__in__web_yaml="resources: {a: {type: ../ok.yaml}, b: {type: ../../no.yaml}}",
        x__ok_yaml="{}",
        no_yaml="{}",
    )
    with pytest.raises(InputError, match=r"\.\./\.\./no\.yaml: is outside of"):
        template_body(tmp_path / "x" / "t.yaml")
