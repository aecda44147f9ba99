"""Warnings about requests, and the positions of warnings and errors."""

import pytest

from tests.support.program import Json, Program, resource, template

TEXT = """heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 3}
  size: {type: number, default: 4}
conditions:
  unused: {equals: [{get_param: nix}, 1]}
resources:
  a:
    type: OS::Heat::Value
    properties:
      value: [{get_atr: [a, value]}, {80: http}]
outputs:
  wrong: {value: {get_param: nix}}
"""
KEYS = {"code", "message", "path", "file", "line", "column", "quote"}
#: The lines of the warnings, each with a caret at its column.
QUOTES = [
    "  size: {type: number, default: 4}\n  ^",
    "      value: [{get_atr: [a, value]}, {80: http}]\n" + " " * 38 + "^",
    "  wrong: {value: {get_param: nix}}\n" + " " * 18 + "^",
    "      value: [{get_atr: [a, value]}, {80: http}]\n" + " " * 15 + "^",
    "  unused: {equals: [{get_param: nix}, 1]}\n  ^",
]
#: code, path, line, column, sorted.
EXPECTED = [
    ("DuplicateKey", "parameters.size", 4, 3),
    ("KeyNotText", "resources.a.properties.value[1].80", 11, 39),
    ("OutputError", "outputs.wrong.value.get_param", 13, 19),
    ("UnknownFunction", "resources.a.properties.value[0].get_atr", 11, 16),
    ("UnusedCondition", "conditions.unused", 6, 3),
]


STARTED = """
select e.data from event e join stack s on s.id = e.stack_id
 where s.project = $1 and e.type like 'headgate.stack.%.started'
"""


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def summary(response: Json) -> list[tuple[str, str, int | None, int | None]]:
    found = response["warnings"]
    assert all(set(one) == KEYS for one in found)
    assert {one["file"] for one in found} <= {"template"}
    assert all(one["quote"] in QUOTES for one in found)
    return sorted((one["code"], one["path"], one["line"], one["column"]) for one in found)


async def test_every_request_with_a_template_has_its_warnings(running: Program) -> None:
    sent = {"stack_name": "s", "template": TEXT}
    for path in ("/validate", "/stacks/preview", "/stacks"):
        status, response = await running.call("POST", path, sent)
        assert status in (200, 201), response
        shown = response["stack"] if path == "/stacks/preview" else response
        assert summary(shown) == EXPECTED, path
    stack = await running.stack("s")
    path = f"/stacks/s/{stack['id']}"
    status, response = await running.call("PUT", f"{path}/preview", sent)
    assert (status, summary(response)) == (200, EXPECTED)
    status, response = await running.call("PUT", path, sent)
    assert (status, summary(response)) == (202, EXPECTED)


async def test_the_stack_has_the_last_of_two_values_and_the_error_of_an_output(
    running: Program,
) -> None:
    status, _ = await running.call("POST", "/stacks", {"stack_name": "s", "template": TEXT})
    assert status == 201
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    stack = await running.stack("s")
    assert stack["parameters"]["size"] == "4"
    ((output),) = stack["outputs"]
    assert output["output_value"] is None
    assert "The Parameter (nix) was not provided." in output["output_error"]


async def test_the_started_event_has_the_warnings_without_lines_of_the_template(
    running: Program,
) -> None:
    await running.call("POST", "/stacks", {"stack_name": "s", "template": TEXT})
    async with running.database.pool.acquire() as conn:
        (data,) = (one["data"] for one in await conn.fetch(STARTED, running.project))
    texts = str(data)
    assert "is given twice" in texts and "was not provided" in texts
    assert "{type: number" not in texts


async def test_a_stack_without_warnings_has_an_empty_list(running: Program) -> None:
    sent = {"stack_name": "s", "template": template({"a": resource()})}
    _, response = await running.call("POST", "/stacks", sent)
    assert response["warnings"] == []


@pytest.mark.parametrize("path", ["/validate", "/stacks/preview", "/stacks"])
async def test_a_strict_request_has_errors_instead(running: Program, path: str) -> None:
    sent = {"stack_name": "s", "template": TEXT, "strict": True}
    status, response = await running.call("POST", path, sent)
    assert status == 400
    found = response["error"]["findings"]
    places = sorted((one["place"], one["line"], one["column"]) for one in found)
    assert places == sorted((path, line, column) for _, path, line, column in EXPECTED)
    assert {one["type"] for one in found} <= {"StackValidationFailed", "Invalid"}
    duplicate = next(one for one in found if one["place"] == "parameters.size")
    assert duplicate["quote"] == "  size: {type: number, default: 4}\n  ^"


async def test_a_pattern_without_a_match_is_a_warning(running: Program) -> None:
    sent = {"stack_name": "s", "template": template({"a": resource()}),
            "environment": {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}}  # fmt: skip
    status, response = await running.call("POST", "/stacks", {**sent, "strict": True})
    assert status == 400 and "matches no resource" in response["error"]["message"]
    _, response = await running.call("POST", "/stacks", sent)
    assert [one["code"] for one in response["warnings"]] == ["UnmatchedPattern"]


NESTED = """{"heat_template_version": "2018-08-31",
 "resources": {
  "v": {"type": "OS::Heat::Value", "properties": {"valeu": 1}}
 }}
"""
ENVIRONMENT = """
resource_registry:
  My::Type: in.yaml
  resources:
    r: {hooks: pre-craete}
"""


async def test_errors_name_file_line_and_column(running: Program) -> None:
    text = (
        "heat_template_version: 2018-08-31\nresources:\n  r: {type: My::Type}\n  x: {type: Nope}\n"
    )
    sent = {"stack_name": "s", "template": text, "files": {"in.yaml": NESTED, "env": ENVIRONMENT}}
    status, response = await running.call("POST", "/stacks", {**sent, "environment_files": ["env"]})
    assert status == 400
    places = [(one["file"], one["line"], one["column"]) for one in response["error"]["findings"]]
    assert ("env", 5, 9) in places
    fixed = ENVIRONMENT.replace("craete", "create")
    status, response = await running.call("POST", "/stacks", {**sent, "environment": fixed})
    assert status == 400
    found = response["error"]["findings"]
    places = [(one["file"], one["line"], one["column"]) for one in found]
    assert places == [("template", 4, 7), ("in.yaml", 3, 51), ("in.yaml", 3, 36)]
    assert found[0]["quote"] == "  x: {type: Nope}\n      ^"


async def test_the_line_of_a_hidden_parameter_is_not_quoted(running: Program) -> None:
    text = (
        "heat_template_version: 2018-08-31\n"
        "parameters:\n  key: {type: number, hidden: true}\nresources: {}\n"
    )
    for given in ("key: its-secret", "keey: its-secret\n  key: 1"):
        sent = {"stack_name": "s", "template": text, "environment": f"parameters:\n  {given}\n"}
        status, response = await running.call("POST", "/stacks", sent)
        assert status == 400
        [found] = response["error"]["findings"]
        assert (found["file"], found["line"], found["quote"]) == ("environment", 2, None)
        assert "its-secret" not in str(response)


async def test_warnings_quote_the_line_of_a_text_in_yaml_json_and_files(running: Program) -> None:
    inner = '{"heat_template_version": "2018-08-31",\n "outputs": {}, "outputs": {}}'
    text = "heat_template_version: 2018-08-31\nresources: {r: {type: in.yaml}}\n"
    environment = "resource_registry:\n  resources: {nix: {hooks: pre-create}}\n"
    sent = {"stack_name": "s", "files": {"in.yaml": inner}, "environment": environment}
    _, response = await running.call("POST", "/stacks/preview", {**sent, "template": text})
    found = {one["code"]: one for one in response["stack"]["warnings"]}
    duplicate, unmatched = found["DuplicateKey"], found["UnmatchedPattern"]
    assert (duplicate["file"], duplicate["line"]) == ("in.yaml", 2)
    assert duplicate["quote"] == ' "outputs": {}, "outputs": {}}\n                ^'
    assert (unmatched["file"], unmatched["line"]) == ("environment", 2)
    assert unmatched["quote"].startswith("  resources: {nix: {hooks: pre-create}}\n")


async def test_warnings_about_objects_quote_nothing(running: Program) -> None:
    sent = {"stack_name": "s", "template": template({"a": resource()}),
            "environment": {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}}  # fmt: skip
    _, response = await running.call("POST", "/stacks", sent)
    [found] = response["warnings"]
    assert set(found) == KEYS and (found["line"], found["quote"]) == (None, None)


@pytest.mark.parametrize("strict", [False, True])
async def test_warnings_about_values_in_an_environment_quote_no_line(
    running: Program, strict: bool
) -> None:
    text = (
        "heat_template_version: 2018-08-31\n"
        "parameters:\n  key: {type: string, hidden: true}\nresources: {}\n"
    )
    environment = "parameters:\n  key: its-secret\n  key: its-secret\n"
    sent = {"template": text, "environment": environment, "stack_name": "s", "strict": strict}
    status, response = await running.call("POST", "/stacks", sent)
    found = response["error"]["findings"] if strict else response["warnings"]
    assert status == (400 if strict else 201)
    assert [(one["line"], one["quote"]) for one in found] == [(3, None)]
    assert "its-secret" not in str(response)


async def test_an_unknown_key_of_the_body_is_a_warning_as_heat_ignores_it(running: Program) -> None:
    """In every request of stacks; the event that starts the action records it."""
    sent = {"stack_name": "s", "template": template({"a": resource()}), "paramters": {"a": 1}}
    expected = {
        "code": "UnknownKey",
        "message": '"paramters" is not a known key here. Did you mean "parameters"?',
        "path": "paramters",
        **dict.fromkeys(("file", "line", "column", "quote")),
    }
    for path in ("/validate", "/stacks/preview", "/stacks"):
        status, response = await running.call("POST", path, sent)
        assert status in (200, 201), response
        shown = response["stack"] if path == "/stacks/preview" else response
        assert shown["warnings"] == [expected], path
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    path = f"/stacks/s/{(await running.stack('s'))['id']}"
    for method, route, adds in (
        ("PUT", path, []),
        ("PATCH", path, []),
        ("PUT", f"{path}/preview", []),
        ("PATCH", f"{path}/preview", []),
        ("PUT", f"{path}/preview", ["adopt_stack_data"]),
    ):
        more = dict.fromkeys(adds, "{}")
        status, response = await running.call(method, route, sent | more)
        assert status in (200, 202), response
        assert [one["path"] for one in response["warnings"]] == ["paramters", *adds]
    async with running.database.pool.acquire() as conn:
        started = await conn.fetch(STARTED, running.project)
    warned = ["is not a known key here" in str(row["data"]) for row in started]
    assert len(warned) >= 3 and all(warned), started


async def test_an_unknown_key_of_the_body_is_an_error_of_a_strict_request(
    running: Program,
) -> None:
    sent = {"stack_name": "s", "template": template({}), "tag": "a", "strict": True}
    for path in ("/validate", "/stacks/preview", "/stacks"):
        status, response = await running.call("POST", path, sent)
        assert status == 400, path
        (finding,) = response["error"]["findings"]
        assert (finding["place"], finding["remedy"]) == ("tag", 'Did you mean "tags"?')
        assert finding["file"] is finding["line"] is None


async def test_a_missing_template_names_the_unknown_keys(running: Program) -> None:
    status, response = await running.call("POST", "/stacks", {"stack_name": "s", "tempalte": {}})
    assert status == 400
    found = {one["place"]: one["remedy"] for one in response["error"]["findings"]}
    assert found["tempalte"] == 'Did you mean "template"?' and "template" in found


async def test_many_unknown_keys_are_limited(running: Program) -> None:
    keys = {f"unknown_{number}": 1 for number in range(1000)}
    sent = {"stack_name": "s", "template": template({})} | keys
    status, response = await running.call("POST", "/validate", sent)
    assert status == 200
    assert len(response["warnings"]) == 101
    assert response["warnings"][-1]["code"] == "MoreWarnings"


#: A resource with an error, for a template with warnings.
WRONG = "resources:\n  b: {type: OS::Heat::Value, properties: {value: 1, valeu: 1}}\n"


async def test_every_refused_request_has_its_warnings_beside_the_errors(running: Program) -> None:
    sent = {"stack_name": "s", "template": TEXT.replace("resources:\n", WRONG)}
    expected = [
        (code, path, line and line + (line > 7), column) for code, path, line, column in EXPECTED
    ]
    await running.call("POST", "/stacks", {"stack_name": "old", "template": template({})})
    old = f"/stacks/old/{(await running.stack('old'))['id']}"
    for method, path in (
        ("POST", "/validate"),
        ("POST", "/stacks/preview"),
        ("POST", "/stacks"),
        ("PUT", old),
        ("PUT", f"{old}/preview"),
    ):
        status, response = await running.call(method, path, sent)
        error = response["error"]
        assert status == 400 and "Unknown Property valeu" in error["message"], path
        assert [one["line"] for one in error["findings"]] == [8], path
        assert summary(error) == expected, path
        status, response = await running.call(method, path, {**sent, "strict": True})
        assert status == 400 and len(response["error"]["findings"]) == 6, path
        assert "warnings" not in response["error"], path


async def test_a_refusal_without_warnings_has_no_list(running: Program) -> None:
    status, response = await running.call("POST", "/validate", {"template": {"heat": 1}})
    assert status == 400 and "warnings" not in response["error"]


async def test_refusals_before_and_after_the_template_is_read_have_warnings(
    running: Program,
) -> None:
    """Errors of the body, of the syntax, of a nested template, of the plan, and a conflict."""
    twice = "parameter_defaults: {}\nparameter_defaults: {}\n"
    valid = {"stack_name": "s", "template": TEXT, "tag": 1}
    inner = "heat_template_version: 2018-08-31\noutputs: {}\noutputs: {}\nresources: {a: {}}\n"
    missing = {"adopt_stack_data": '{"resources": {"nix": {"resource_id": "1"}}}'}
    for name, changed, code, others in (
        ("body", {"timeout_mins": 0}, 400, set()),
        ("syntax", {"template": "a: b: c", "environment": twice}, 400, {"DuplicateKey"}),
        ("version", {"template": TEXT.replace("2018", "2008")}, 400, {"DuplicateKey", "KeyNotText"}),
        ("environment", {"environment": f"{twice}nix: 1\n"}, 400, {one[0] for one in EXPECTED}),
        ("nested", {"template": {"heat_template_version": "2018-08-31",
                                 "resources": {"n": {"type": "in.yaml"}}},
                    "files": {"in.yaml": inner}}, 400, {"DuplicateKey"}),
        ("adoption", missing, 400, {one[0] for one in EXPECTED}),
        ("plan", {"plan_digest": "0" * 64}, 409, {one[0] for one in EXPECTED}),
    ):  # fmt: skip
        status, response = await running.call("POST", "/stacks", {**valid, **changed})
        assert status == code, (name, response)
        found = {one["code"] for one in response["error"]["warnings"]}
        assert found == {"UnknownKey", *others}, name
    await running.call("POST", "/stacks", {"stack_name": "s", "template": template({})})
    status, response = await running.call("POST", "/stacks", valid)
    assert (status, response["error"]["type"]) == (409, "StackExists")
    assert len(response["error"]["warnings"]) == len(EXPECTED) + 1
