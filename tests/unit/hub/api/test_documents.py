"""Documents and requests of the Orchestration API."""

from dataclasses import replace
from typing import Any

import pytest

from engine.errors import Findings, Invalid
from engine.hot.schema.parameters import ParameterKind, ParameterSchema
from engine.hot.schema.type_schema import Constraint, TypeSchema
from engine.principal import principal_of_name
from engine.service import Output, StackValues
from engine.words import Json
from hub.api.orchestration import documents
from hub.api.orchestration.documents import parameter
from hub.api.orchestration.stack_requests import stack_request
from hub.api.orchestration.validation import validate_template
from hub.auth.identity import Anonymous
from hub.auth.request_credentials import request_credentials
from hub.program.wiring import make_limits
from hub.settings.settings import Settings
from tests.unit.hub.api.orchestration_support import EVENT_ID, STACK_ID, event, resource, stack

BASE = "http://h:1/v1"
URL = f"{BASE}/demo/stacks/web/{STACK_ID}"


def test_a_stack_summary() -> None:
    assert documents.stack_summary(stack(tags=[]), BASE) == {
        "id": str(STACK_ID),
        "links": [{"href": URL, "rel": "self"}],
        "stack_name": "web",
        "description": "",
        "stack_status": "CREATE_COMPLETE",
        "stack_status_reason": "Stack CREATE completed successfully",
        "creation_time": "2026-11-20T20:16:36Z",
        "updated_time": None,
        "deletion_time": None,
        "stack_owner": "ann",
        "parent": None,
        "stack_user_project_id": "demo",
        "tags": None,
    }


def test_a_full_stack_has_its_description_and_lists() -> None:
    shown = dict(documents.stack_full(stack(tags=[]), BASE, StackValues({"size": "8"}, [])))
    assert shown["description"] == shown["template_description"] == "An example"
    assert (shown["tags"], shown["outputs"], shown["capabilities"]) == ([], [], [])
    assert "outputs" not in documents.stack_full(stack(), BASE, StackValues({}, None))


def test_an_output_that_fails_has_the_reason() -> None:
    assert "output_error" not in documents.output(Output("a", "", 1, None))
    assert documents.output(Output("a", "", None, "why"))["output_error"] == "why"


def test_a_resource_lists_its_dependents() -> None:
    found = [resource("pw"), resource("app", ("pw",))]
    assert documents.required_by(found) == {(STACK_ID, "pw"): ["app"]}
    shown = documents.resource(replace(found[0], physical_id=None), "My::T", "demo", BASE, ["app"])
    assert shown["physical_resource_id"] == ""
    assert shown["required_by"] == ["app"]
    assert [link["href"] for link in shown["links"]] == [f"{URL}/resources/pw", URL]


def test_a_resource_with_a_nested_stack_has_its_link_and_id() -> None:
    made = resource("db", physical_id=None, nested_id=EVENT_ID, nested_name="web-db-1")
    shown = documents.resource(replace(made, parent_resource="outer"), "My::T", "demo", BASE, [])
    assert shown["physical_resource_id"] == str(EVENT_ID)
    assert shown["parent_resource"] == "outer"
    nested = f"{BASE}/demo/stacks/web-db-1/{EVENT_ID}"
    assert shown["links"][-1] == {"href": nested, "rel": "nested"}


def test_an_event_of_a_nested_stack_links_to_it_and_to_the_root_stack() -> None:
    nested = event(stack_id=EVENT_ID, stack_name="web-db-1")
    shown = documents.event(nested, stack(), BASE, rooted=True)
    inside = f"{BASE}/demo/stacks/web-db-1/{EVENT_ID}"
    assert (shown["resource_name"], shown["physical_resource_id"]) == ("web-db-1", str(EVENT_ID))
    assert {link["rel"]: link["href"] for link in shown["links"]} == {
        "self": f"{inside}/resources/web-db-1/events/{EVENT_ID}",
        "resource": f"{inside}/resources/web-db-1", "stack": inside, "root_stack": URL,
    }  # fmt: skip


def test_an_event_of_the_stack_has_its_name_and_id() -> None:
    """Clients that wait for a stack compare both."""
    shown = documents.event(event(), stack(), BASE)
    assert shown["resource_name"] == shown["logical_resource_id"] == "web"
    assert shown["physical_resource_id"] == str(STACK_ID)
    assert shown["links"][0]["href"] == f"{URL}/resources/web/events/{EVENT_ID}"
    assert [link["rel"] for link in shown["links"]] == ["self", "resource", "stack"]


def test_an_event_of_a_resource_has_its_name_and_id() -> None:
    shown = documents.whole_event(event(name="pw"), "Test::Secret", stack(), BASE, {"length": 4})
    assert (shown["resource_name"], shown["physical_resource_id"]) == ("pw", "web-pw")
    assert (shown["resource_type"], shown["resource_properties"]) == ("Test::Secret", {"length": 4})
    listed = documents.event(event(name="pw"), stack(), BASE, rooted=True)
    assert listed["links"][-1] == {"href": URL, "rel": "root_stack"}


def test_urls_quote_special_characters_only() -> None:
    assert documents.stack_url(BASE, "a\r\nb/c", "web", 1) == f"{BASE}/a%0D%0Ab%2Fc/stacks/web/1"
    assert documents.stack_url(BASE, "a@b:c", "w_.-~", 1) == f"{BASE}/a@b:c/stacks/w_.-~/1"


def read(**body: Json) -> Any:
    return stack_request(body, existing=False, requested_by=principal_of_name("ann"))


def test_a_body_is_parsed() -> None:
    got = read(
        stack_name="web",
        template={"a": 1},
        tags=",,a,b",
        timeout_mins="60",
        disable_rollback="False",
        hooks={"clear": ["db:pre-create"], "add": [{"at": "db"}]},
        unknown_to_us=1,
    )
    assert (got.name, got.requested_by) == ("web", principal_of_name("ann"))
    assert got.tags == ["", "", "a", "b"]
    assert (got.timeout_mins, got.disable_rollback) == (60, False)
    assert (got.hooks_clear, got.hooks_add) == (["db:pre-create"], [{"at": "db"}])


def test_absent_fields_have_defaults() -> None:
    got = read(template=None, tags=None)
    assert (got.template, got.tags, got.timeout_mins, got.disable_rollback) == (None,) * 4


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"stack_name": 5}, "stack_name"),
        ({"template": [1]}, "template"),
        ({"parameters": []}, "parameters"),
        ({"files": {"a": 1}}, "files.a"),
        ({"environment_files": [1]}, "environment_files"),
        ({"tags": [1]}, "tags"),
        ({"tags": "x" * 81}, "tags"),
        ({"timeout_mins": 0}, "timeout_mins"),
        ({"timeout_mins": "1.5"}, "timeout_mins"),
        ({"timeout_mins": 10**9}, "timeout_mins"),
        ({"timeout_mins": True}, "timeout_mins"),
        ({"disable_rollback": "maybe"}, "disable_rollback"),
        ({"hooks": {"clear": "*"}}, "hooks.clear"),
        ({"hooks": {"add": {}}}, "hooks.add"),
        ({"hooks": {"claer": []}}, "hooks.claer"),
        ({"files_container": "c"}, "files_container"),
        ({"only": "a"}, "only"),
        ({"except": [1]}, "except"),
        ({"plan_digest": 1}, "plan_digest"),
        ({"moved": ["a"]}, "moved[0]"),
        ({"moved": [{"from": "a", "to": "b"}, {"from": {"stack": "s"}, "to": "b"}]}, "moved[1]"),
    ],
)
def test_wrong_types_are_refused_with_their_place(body: dict[str, Json], place: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(**body)
    assert [finding.place for finding in caught.value.findings] == [place]


def test_all_wrong_types_are_reported_together() -> None:
    with pytest.raises(Invalid) as caught:
        read(stack_name=5, parameters=[], tags=7)
    places = {finding.place for finding in caught.value.findings}
    assert places == {"stack_name", "parameters", "tags"}


def test_a_parameter_has_the_keys_of_cloudformation() -> None:
    rules = (
        Constraint("range", 4, 64, description="between"),
        Constraint("allowed_values", allowed=(4, 8)),
    )
    schema = ParameterSchema("size", ParameterKind.NUMBER, 8, constraints=rules)
    assert parameter(schema, None) == {
        "Type": "Number",
        "Description": "",
        "NoEcho": "false",
        "Label": "size",
        "Default": 8,
        "MinValue": 4,
        "MaxValue": 64,
        "ConstraintDescription": "between",
        "AllowedValues": [4, 8],
    }


SECRET: Json = {
    "heat_template_version": "2018-08-31",
    "parameters": {"s": {"type": "string", "hidden": True}, "n": {"type": "number"}},
    "resources": {"a": {"type": "T"}},
}
TYPES = {"T": TypeSchema("T")}


def test_validation_masks_hidden_values_and_accepts_missing_parameters() -> None:
    wanted = read(template=SECRET, environment={"parameters": {"s": "s3cret"}})
    shown = validate_template(wanted, "demo", TYPES, make_limits(Settings())).document([])
    assert shown["Parameters"]["s"]["Value"] == "******"
    assert "Value" not in shown["Parameters"]["n"]
    assert shown["Environment"]["parameters"] == {"s": "******"}
    assert "s3cret" not in str(shown)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "template"),
        ({"template": SECRET, "environment_files": ["gone"]}, "environment_files"),
        ({"template": {**SECRET, "resources": {"a": {"type": "X"}}}}, "resources.a"),
        ({"template": {**SECRET, "hooks": [{"at": "a", "on": "pre-nothing"}]}}, "hooks[0]"),
    ],
)
def test_validation_refuses_what_create_refuses(body: dict[str, Json], place: str) -> None:
    with pytest.raises(Invalid) as caught:
        validate_template(read(**body), "demo", TYPES, make_limits(Settings()))
    assert caught.value.finding.place.startswith(place)


@pytest.mark.parametrize(("given", "found"), [({}, False), ({"n": 1}, True)])
def test_validation_checks_the_rules_of_types_if_all_parameters_have_values(
    given: dict[str, Json], found: bool
) -> None:
    def refuse(name: str, properties: Json, place: str, findings: Findings) -> None:
        findings.add(place, f"{name} is wrong", "Correct it.")

    wanted = read(template=SECRET, parameters={"s": "x", **given})
    limits = make_limits(Settings())
    if found:
        with pytest.raises(Invalid, match="T is wrong"):
            validate_template(wanted, "demo", TYPES, limits, check_properties=refuse)
    else:
        validate_template(wanted, "demo", TYPES, limits, check_properties=refuse)


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({}, "anonymous"),
        ({"X-Auth-Token": "notused"}, "anonymous"),
        ({"X-Auth-User": "ann", "Authorization": "Basic Ym9iOnB3"}, "ann"),
        ({"Authorization": "Basic Ym9iOnB3"}, "bob"),
        ({"Authorization": "Basic !!"}, "anonymous"),
        ({"Authorization": "Bearer Ym9iOnB3"}, "anonymous"),
        ({"Authorization": "Basic YQBiOnB3"}, "a?b"),
        ({"X-Auth-User": "a\udcffb"}, "a?b"),
        ({"X-Auth-User": "x" * 999}, "x" * 255),
    ],
)
async def test_without_authentication_the_header_names_the_user(
    headers: dict[str, str], name: str
) -> None:
    who = await Anonymous().identify(request_credentials(headers), "any text")
    assert (who.name, who.project) == (name, "any text")
