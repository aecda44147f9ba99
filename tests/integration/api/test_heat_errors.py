"""Errors have Heat's format, status and type."""

from uuid import uuid4

import pytest

from tests.support.changes import until_deleted
from tests.support.program import Json, Program, resource, template

VALID = template({"a": resource()})
INVALID = template({"a": {"type": "OS::Heat::RandomString", "properties": {"lenght": 3}}})
PATTERN = {"type": "string", "default": "x", "constraints": [{"allowed_pattern": "("}]}
SWITCH = template({}, parameters={"x": {"type": "boolean"}})


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def merged(*strategies: str) -> Json:
    """Environment files that merge x with these strategies."""
    files = {
        f"e{number}": f"{{parameters: {{x: 'true'}}, parameter_merge_strategies: {{x: {one}}}}}"
        for number, one in enumerate(strategies)
    }
    return {"template": SWITCH, "files": files, "environment_files": list(files)}


CYCLE = {"resource_registry": {"A": "B", "B": "A"}}
S = "/stacks/s/{id}"
NO_EVENT = uuid4()
Row = tuple[str, str, Json, int, str, str]


def create(kind: str, expected: str, status: int = 400, /, **body: Json) -> Row:
    return (
        "POST",
        "/stacks",
        {"stack_name": "t", "template": VALID} | body,
        status,
        kind,
        expected,
    )


ROWS: list[Row] = [
    # Templates, environments and parameters.
    create("StackValidationFailed", "Property error: : resources.a.properties: : Unknown Property",
           template=INVALID),
    create("InvalidTemplateVersion", "The template version is invalid", template={
        "heat_template_version": "x"}),
    create("CircularDependencyException", "Circular Dependency Found", template=template({
        "a": resource(depends_on="b"), "b": resource(depends_on="a")})),
    create("InvalidTemplateReference", "The specified reference", template=template({
        "a": resource({"get_attr": ["none", "x"]})})),
    create("UserParameterMissing", "The Parameter (p) was not provided.", template=template(
        {}, parameters={"p": {"type": "string"}})),
    create("UnknownUserParameter", "The Parameter (zz) was not defined", parameters={"zz": 1}),
    create("StackExists", "The Stack (s) already exists.", 409, stack_name="s"),
    create("HTTPBadRequest", "No stack name specified", stack_name=""),
    create("StackValidationFailed", "Invalid stack name 1x", stack_name="1x"),
    create("HTTPBadRequest", "No template specified", template=None),
    create("StackValidationFailed", "timeout_mins", timeout_mins=0),
    create("StackValidationFailed", "disable_rollback", disable_rollback="perhaps"),
    create("NotSupported", "files_container: this server has no object store", files_container="c"),
    # Heat answers these with 500.
    create("InvalidSchemaError", "is not a regular expression", template=template(
        {}, parameters={"p": PATTERN})),
    create("StackValidationFailed", "Circular aliases", environment=CYCLE),
    create("ConflictingMergeStrategyForParam", "Conflicting merge strategy 'overwrite' for",
           **merged("merge", "overwrite")),
    create("InvalidMergeStrategyForParam", "Invalid merge strategy 'merge' for parameter 'x'.",
           **merged("merge", "merge")),
    # /validate has one type for all errors.
    ("POST", "/validate", {"template": INVALID}, 400, "HTTPBadRequest", "Unknown Property lenght"),
    ("POST", "/validate", {}, 400, "HTTPBadRequest", "template"),
    ("POST", "/validate", {"template": {"heat_template_version": "x"}}, 400, "HTTPBadRequest",
     "version"),
    ("POST", "/validate?ignore_errors=99001,5", {"template": VALID}, 400, "HTTPBadRequest",
     "Invalid codes in ignore_errors : ['5']"),
    # Unknown objects.
    ("GET", "/stacks/none", None, 404, "EntityNotFound", "The Stack (none) could not be found."),
    ("GET", f"/stacks/s/{uuid4()}", None, 404, "EntityNotFound", "could not be found"),
    ("GET", "/stacks/other/{id}", None, 404, "EntityNotFound", "The Stack (other)"),
    ("GET", f"{S}/resources/none", None, 404, "ResourceNotFound",
     "The Resource (none) could not be found in Stack s."),
    ("GET", f"{S}/resources/none/events", None, 404, "HTTPNotFound",
     "No events found for resource none"),
    ("GET", f"{S}/resources/a/events/{NO_EVENT}", None, 404, "HTTPNotFound",
     f"No event {NO_EVENT} found"),
    ("GET", f"{S}/outputs/none", None, 404, "NotFound", "Specified output key none not found."),
    ("GET", f"{S}/snapshots/{uuid4()}", None, 404, "SnapshotNotFound", "not found"),
    ("GET", "/resource_types/No::Such", None, 404, "EntityNotFound", "(No::Such)"),
    ("GET", "/template_versions/none/functions", None, 404, "NotFound", "none"),
    ("GET", f"/software_configs/{uuid4()}", None, 404, "NotFound", "Software config with id"),
    # Invalid requests.
    ("GET", "/stacks?limit=x", None, 400, "HTTPBadRequest", "limit"),
    ("GET", "/stacks?show_deleted=1", None, 400, "HTTPBadRequest", "show_deleted"),
    ("GET", f"{S}/resources?colour=red", None, 400, "StackValidationFailed",
     "Invalid filter parameters ['colour']"),
    ("DELETE", "/stacks", None, 405, "HTTPMethodNotAllowed", "GET"),
    ("POST", f"{S}/actions", {}, 400, "HTTPBadRequest", "No action specified"),
    ("POST", f"{S}/actions", {"suspend": None, "check": None}, 400, "HTTPBadRequest",
     "Multiple actions specified"),
    ("POST", f"{S}/actions", {"cancel_update": None}, 400, "NotSupported",
     "Cancelling update when stack is CREATE_COMPLETE is not supported."),
    ("PATCH", f"{S}/resources/a", {"colour": 1}, 400, "HTTPBadRequest", "colour"),
    ("POST", f"{S}/resources/a/signal", {"x": 1}, 400, "ResourceActionNotSupported",
     "signal is not supported for resource."),
    ("POST", f"{S}/resources/a/signal", {"unset_hook": "pre-create"}, 400,
     "InvalidBreakPointHook", 'The "pre-create" hook is not defined on "a"'),
]  # fmt: skip


async def test_each_error_has_heats_type(running: Program) -> None:
    stack = await running.create("s", {"a": resource()})
    await running.until_ended("s")
    for method, path, body, status, kind, expected in ROWS:
        got, response = await running.call(method, path.format(id=stack), body)
        error = response.get("error", {})
        assert (got, error.get("type")) == (status, kind), (method, path, body, response)
        assert expected in error["message"], (path, error["message"])
        assert (response["code"], error["traceback"]) == (status, None)
        assert {"title", "explanation"} <= response.keys()
    assert [one["stack_name"] for one in (await running.call("GET", "/stacks"))[1]["stacks"]] == [
        "s"
    ]


NAME_RULE = (
    'must contain only alphanumeric or "_-." characters, must start with alpha and must be 255'
    " characters or less."
)
#: Requests with the whole message of Heat, of heat/common/param_utils.py and heat/api.
WHOLE: list[tuple[str, str, Json, str]] = [
    ("POST", "/stacks", {"template": VALID}, "No stack name specified"),
    ("POST", "/stacks", {"stack_name": "1x", "template": VALID},
     f"Invalid stack name 1x {NAME_RULE}"),
    ("POST", "/stacks", {"stack_name": 5, "template": VALID},
     "Invalid stack name 5, must be a string"),
    ("POST", "/stacks", {"stack_name": "t", "template": VALID, "timeout_mins": "x"},
     "Only integer is acceptable by 'timeout_mins'."),
    ("POST", "/stacks", {"stack_name": "t", "template": VALID, "timeout_mins": -1},
     "Value '-1' is invalid for 'timeout_mins' which only accepts non-negative integer."),
    ("POST", "/stacks", {"stack_name": "t", "template": VALID, "disable_rollback": "perhaps"},
     'Unrecognized value "perhaps" for "disable_rollback", acceptable values are: true, false.'),
    ("POST", "/stacks", {"stack_name": "t", "template": VALID, "tags": "x" * 81},
     f'Invalid tag, "{"x" * 81}" is longer than 80 characters'),
    ("GET", "/stacks?limit=x", None, "Only integer is acceptable by 'limit'."),
    ("GET", "/stacks?limit=-1", None,
     "Value '-1' is invalid for 'limit' which only accepts non-negative integer."),
    ("GET", "/stacks?show_deleted=Perhaps", None,
     'Unrecognized value "Perhaps" for "show_deleted", acceptable values are: true, false.'),
    ("GET", f"{S}/resources?colour=red", None, "Invalid filter parameters ['colour']"),
    ("POST", f"{S}/actions", {}, "No action specified"),
    ("POST", f"{S}/actions", {"dance": None}, "Invalid action dance specified"),
    ("POST", f"{S}/actions", {"suspend": None, "check": None}, "Multiple actions specified"),
    ("PATCH", f"{S}/resources/a", {"colour": 1},
     "Invalid keys in resource mark unhealthy {'colour'}"),
    ("PATCH", f"{S}/resources/a", {},
     "Missing mandatory (mark_unhealthy) key from mark unhealthy request"),
    ("PATCH", f"{S}/resources/a", {"mark_unhealthy": "perhaps"},
     'Unrecognized value "perhaps" for "mark_unhealthy", acceptable values are: true, false.'),
    ("PATCH", f"{S}/resources/none", {"mark_unhealthy": True},
     "The Resource (none) could not be found in Stack s."),
    ("GET", "/resource_types/OS::Heat::None/template?template_type=xml", None,
     'Template type is not supported: Invalid template type "xml", valid types are: cfn, hot.'),
    ("GET", "/template_versions/none/functions", None, "Template with version none not found"),
]  # fmt: skip


async def test_messages_are_those_of_heat_and_remedies_beside_them(running: Program) -> None:
    await running.call("POST", "/stacks", {"stack_name": "s", "template": VALID})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    stack_id = (await running.stack("s"))["id"]
    for method, path, sent, message in WHOLE:
        _, response = await running.call(method, path.replace("{id}", stack_id), sent)
        assert response["error"]["message"] == message, path
        assert response["error"]["remedy"], path


async def test_a_deleted_stack_is_shown_and_cannot_be_changed(running: Program) -> None:
    stack = await running.create("s", {"a": resource()})
    await running.until_ended("s")
    await running.stack_request("DELETE", "s")
    await until_deleted(running, "s")
    path = f"/stacks/s/{stack}"
    status, response = await running.call("GET", path)
    assert (status, response["stack"]["stack_status"]) == (200, "DELETE_COMPLETE")
    for method, rest, body in (
        ("DELETE", "", None), ("PUT", "", {"template": VALID}), ("PATCH", "", {}),
        ("POST", "/actions", {"check": None}), ("POST", "/snapshots", {}),
    ):  # fmt: skip
        status, response = await running.call(method, path + rest, body)
        assert (status, response["error"]["type"]) == (404, "EntityNotFound"), (method, rest)
