"""Files of templates and environments, and the request bodies from them."""

from pathlib import Path

import pytest
import typer
import yaml

from hub.cli.commands.sources import Sources
from hub.cli.inputs.files import InputError
from hub.cli.inputs.request_bodies import merge_bodies, parameters
from hub.cli.inputs.template_bodies import environment_body, template_body
from tests.support.program import Json

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
    with pytest.raises(InputError, match=r"it is not a text file in UTF-8\. Save it"):
        template_body(path)


def test_parameters_are_split_at_the_first_equals_sign(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    found = parameters(["a=1", "b=x=y", "c=", "d=@alice"], [f"e={secret}"])
    assert found == {"a": "1", "b": "x=y", "c": "", "d": "@alice", "e": "s3cret"}


def test_a_parameter_cannot_be_a_value_and_a_file(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="a: use either"):
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


def test_templates_of_the_members_of_groups_are_sent_with_their_files(tmp_path: Path) -> None:
    """As Heat's client does: a key `type` at any depth in properties."""
    group = (
        "resources: {g: {type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def: %s}}}"
    )
    inner = "{type: OS::Heat::AutoScalingGroup, properties: {resource: {type: sub/web.yaml}}}"
    files(
        tmp_path,
        t_yaml=group % inner,
        sub__web_yaml="resources: {c: {properties: {list: [{type: db.template}, {type: 5}]}}}",
        sub__db_template="outputs: {o: {value: {get_file: run.sh}}}",
        sub__run_sh="#!",
    )
    body = template_body(tmp_path / "t.yaml")
    assert set(body["files"]) == {"sub/web.yaml", "db.template", "run.sh"}


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
    names = {"web.yaml", "./web.yaml", "other.yaml"}
    assert set(both["files"]) == {*names, *both["environment_files"]}
    (tmp_path / "web.yaml").write_text("outputs: {}")
    both = environment_body([one, other])
    assert both["files"]["web.yaml"] == "{}" and both["files"]["./web.yaml"] == "outputs: {}"
    assert both["files"][str(other)] == 'resource_registry: {A: "./web.yaml"}'


def test_a_second_file_of_a_name_is_sent_with_its_path(tmp_path: Path) -> None:
    files(
        tmp_path,
        t_yaml="resources: {a: {type: sub/web.yaml}, b: {type: db.yaml}}",
        sub__web_yaml="resources: {a: {type: db.yaml}}  # the one here",
        sub__db_yaml="outputs: {}",
        db_yaml="{}",
    )
    body = template_body(tmp_path / "t.yaml")
    assert body["template"] == (tmp_path / "t.yaml").read_text()
    assert body["files"] == {
        "db.yaml": "{}",
        "sub/web.yaml": 'resources: {a: {type: "sub/db.yaml"}}  # the one here',
        "sub/db.yaml": "outputs: {}",
    }


#: Each directory has templates and a text of the same names, to a depth of two.
LIBRARY = """
heat_template_version: 2018-08-31
resources:
  in: {type: deep/lib.yaml}
  text: {type: OS::Heat::Value, properties: {value: {get_file: text}}}
"""
LEAF = """
heat_template_version: 2018-08-31
resources:
  text: {type: OS::Heat::Value, properties: {value: {get_file: ../text}}}
  own: {type: OS::Heat::Value, properties: {value: {get_file: text}}}
"""


def tree(folder: Path) -> None:
    for name in ("", "a", "b", "env", "env/a"):
        here = folder / name
        (here / "deep").mkdir(parents=True)
        (here / "x.yaml").write_text(LIBRARY.replace("deep/", ""))
        (here / "lib.yaml").write_text(LIBRARY)
        (here / "deep" / "lib.yaml").write_text(LEAF)
        (here / "text").write_text(f"{name}/text")
        (here / "deep" / "text").write_text(f"{name}/deep/text")
    registry = "{A: x.yaml, B: a/x.yaml, resources: {r: {C: lib.yaml}}}"
    (folder / "env" / "e.yaml").write_text(f"resource_registry: {registry}\n")
    (folder / "f.yaml").write_text(f"resource_registry: {registry.replace('A:', 'D:')}\n")
    kinds = ("A", "B", "C", "D", "x.yaml", "a/x.yaml", "b/x.yaml", "lib.yaml")
    body = "".join(f"\n  r{number}: {{type: {kind}}}" for number, kind in enumerate(kinds))
    (folder / "t.yaml").write_text(f"heat_template_version: 2018-08-31\nresources:{body}\n")


def texts_below(document: Json, sent: Json, level: int = 0) -> list[str]:
    """The texts that `get_file` reads in a document and in the templates below it, as the server
    finds them."""
    assert level < 5
    found = []
    for one in document.get("resources", {}).values():
        value = one.get("properties", {}).get("value", {})
        found += [sent[value["get_file"]]] if "get_file" in value else []
        if one["type"].endswith(".yaml"):
            found += texts_below(yaml.safe_load(sent[one["type"]]), sent, level + 1)
    return found


def of(folder: str, kind: str) -> list[str]:
    """The texts below a template of a directory of `tree`."""
    leaf = [f"{folder}/text", f"{folder}/deep/text"]
    return [*leaf, f"{folder}/text", *([f"{folder}/text"] if kind == "x" else [])]


def test_directories_with_files_of_the_same_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path)
    monkeypatch.chdir(tmp_path)
    environments = [Path("env/e.yaml"), Path("f.yaml")]
    body = Sources(Path("t.yaml"), environments).body()
    sent, document = body["files"], yaml.safe_load(body["template"])
    assert body["template"] == Path("t.yaml").read_text(), "the names of the template stay short"
    by_type = {one["type"]: one for one in document["resources"].values()}
    for name, folder, kind in (
        ("x.yaml", "", "x"),
        ("a/x.yaml", "a", "x"),
        ("b/x.yaml", "b", "x"),
        ("lib.yaml", "", "lib"),
    ):
        assert name in by_type
        assert texts_below({"resources": {"r": {"type": name}}}, sent) == of(folder, kind)
    first, second = (
        yaml.safe_load(sent[name])["resource_registry"] for name in body["environment_files"]
    )
    for registry, name, folder, kind in (
        (first, "A", "env", "x"),
        (first, "B", "env/a", "x"),
        (first["resources"]["r"], "C", "env", "lib"),
        (second, "D", "", "x"),
        (second, "B", "a", "x"),
        (second["resources"]["r"], "C", "", "lib"),
    ):
        below = {"resources": {"r": {"type": registry[name]}}}
        assert texts_below(below, sent) == of(folder, kind), name
    assert not [name for name in sent if name.startswith("file:")], "relative names are enough"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resources:\n  a:\n    type: x.yaml # é", 'resources:\n  a:\n    type: "N" # é'),
        ("é: ü\nresources: {a: {type: 'x.yaml'}}", 'é: ü\nresources: {a: {type: "N"}}'),
        (
            "resources:\n  a: {type: &t x.yaml}\n  b: {type: *t}\n",
            'resources:\n  a: {type: &t "N"}\n  b: {type: *t}\n',
        ),
        (
            "resources:\n  a: &a {type: !!str x.yaml}\n  b: {<<: *a}\n",
            'resources:\n  a: &a {type: !!str "N"}\n  b: {<<: *a}\n',
        ),
        (
            "resources:\n  a:\n    type: >-\n      x.yaml\n  b: {type: T}\n",
            'resources:\n  a:\n    type: "N"\n  b: {type: T}\n',
        ),
        ('{"resources": {"a": {"type": "x.yaml"}}}', None),
        ('{"resources":\t{"a": {"type": "x.yaml"}}}', None),
    ],
    ids=["comment", "quotes", "alias", "merged", "block", "json", "json with tabs"],
)
def test_other_text_stays_as_it_is(tmp_path: Path, text: str, expected: str | None) -> None:
    files(tmp_path, t_yaml="resources: {a: {type: x.yaml}, b: {type: s/y.yaml}}", x_yaml="{}")
    files(tmp_path, s__x_yaml="outputs: {}")
    (tmp_path / "s" / "y.yaml").write_text(text)
    sent = template_body(tmp_path / "t.yaml")["files"]
    assert sent["s/x.yaml"] == "outputs: {}"
    if expected is not None:
        assert sent["s/y.yaml"] == expected.replace("N", "s/x.yaml")
    assert yaml.safe_load(sent["s/y.yaml"])["resources"]["a"]["type"] == "s/x.yaml"


def test_a_file_that_is_both_data_and_a_template_is_read_with_its_references(
    tmp_path: Path,
) -> None:
    files(
        tmp_path,
        t_yaml="resources: {a: {type: x.yaml, properties: {p: {get_file: x.yaml}}}}",
        x_yaml="resources: {a: {type: y.yaml}}",
        y_yaml="{}",
    )
    assert set(template_body(tmp_path / "t.yaml")["files"]) == {"x.yaml", "y.yaml"}


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
