"""Where Headgate once differed from Heat for templates and clients in use, and what shows that it no
longer does. Each has a test here, with a template as authors write it, or in another file.
"""

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest
from yarl import URL

from tests.support.program import Json, Program

ROOT = Path(__file__).parents[3]
HOT = "heat_template_version: 2018-08-31\n"

#: The tests by what they show; without a folder: in this file.
SHOWN_BY: Mapping[str, tuple[str, ...]] = {
    "the depth of nested stacks is a setting, and an overcloud is accepted as it is": (
        "integration/api/test_overcloud.py::test_an_overcloud_is_accepted_with_the_default_settings",
        "integration/api/test_overcloud.py::test_a_level_less_is_too_few_for_the_overcloud",
    ),
    "show_nested returns NestedParameters, also of parameters without a value": (
        "integration/api/test_environments.py::test_nested_templates_are_validated_and_shown",
    ),
    "a wrong item of Fn::Join beside an unknown one is refused at validation": (
        "test_a_wrong_item_beside_an_attribute_is_refused",
    ),
    "OS::Heat::None switches a type off, whatever its properties and deletion policy are": (
        "test_a_type_is_switched_off_with_its_properties",
    ),
    "an empty external_id is absent; a resource with one ends in CHECK_COMPLETE": (
        "test_an_external_id_from_a_parameter",
        "integration/engine/test_resource_policies.py"
        "::TestPolicies::test_an_external_resource_may_lack_required_properties_as_in_heat",
    ),
    "the resource type is the name in the template, also for filters; the real one is beside": (
        "test_a_type_is_switched_off_with_its_properties",
        "integration/api/test_event_list.py"
        "::test_resources_and_events_have_the_type_of_the_template",
    ),
    "a member that does not exist is an error": (
        "test_a_member_that_does_not_exist_is_an_error",
        "test_a_member_that_does_not_exist_is_named_beside_secrets",
    ),
    "messages have no Python words and name the version that has a key": (
        "test_messages_about_parameters",
        "unit/hub/test_messages.py::test_a_wrong_field_is_described_without_names_of_python",
    ),
    "signals and metadata go through Swift where the cloud has one": (
        "openstack/test_swift_signal.py::test_all_signals_to_one_url_count",
        "openstack/test_swift_signal.py::test_a_server_uploads_the_results_of_its_deployments",
        "openstack/test_swift_metadata.py::test_the_real_agent_gets_its_deployments_from_swift_alone",
    ),
    "a transport without its service is refused": (
        "test_a_transport_without_its_service_is_refused",
    ),
    "as many resources as the quota allows fit into a template; pages and settings agree": (
        "integration/api/test_overcloud.py"
        "::test_as_many_resources_as_the_quota_allows_fit_into_a_template",
        "repository/test_docs.py::test_limits_that_are_settings_have_their_defaults_and_none_is_missing",
    ),
    "previews list new and changed members": (
        "integration/nested/test_group_previews.py::test_the_members_of_new_groups_are_listed",
        "integration/nested/test_group_previews.py::test_members_of_changed_groups",
    ),
    "snapshots, export, abandon and adopt include nested stacks": (
        "integration/nested/test_trees_elsewhere.py"
        "::test_a_tree_is_abandoned_and_adopted_without_a_change",
        "integration/nested/test_trees_elsewhere.py::test_an_export_changes_nothing",
        "integration/nested/test_trees_elsewhere.py::test_a_snapshot_of_a_tree_is_restored",
        "integration/nested/test_trees_elsewhere.py::test_a_tree_that_heat_exported_is_adopted",
    ),
    "every other difference is listed": (
        "compat/hot/test_against_heat.py::test_responses_are_those_of_heat",
        "compat/hot/test_against_heat.py::test_the_documentation_has_exactly_the_listed_differences",
    ),
    "a signal without data scales a group and counts for a condition": (
        "test_a_signal_without_data_scales_a_group",
        "integration/waiting/test_conditions.py::test_a_signal_without_data_counts",
    ),
    "a delete ends operations that wait, and cleans up what has begun": (
        "integration/engine/test_cancelled_operations.py::test_a_delete_ends_a_create_that_waits",
        "integration/engine/test_cancelled_operations.py"
        "::test_a_delete_ends_the_polls_of_a_service_and_deletes_the_object",
        "integration/engine/test_cancelled_operations.py"
        "::test_a_delete_ends_the_process_of_a_command_and_runs_its_delete",
        "integration/engine/test_cancelled_operations.py::test_a_cancel_ends_an_update_that_waits",
        "unit/types/openstack/test_load_balancers.py"
        "::test_a_cancelled_operation_ends_where_it_would_wait",
        "unit/types/openstack/test_lost_operations.py"
        "::test_all_other_types_end_when_they_are_cancelled",
    ),
    "a check of failed and missing resources fails and keeps their state": (
        "integration/engine/test_in_place_actions.py"
        "::TestActions::test_a_check_of_failed_and_missing_resources_fails_and_keeps_their_state",
    ),
    "a rolling update moves the template of its members": (
        "integration/groups/test_members.py::test_a_rolling_update_moves_the_template_of_its_members",
    ),
    "removed resources are deleted last, and a failed update leaves them": (
        "integration/engine/test_removed_resources.py"
        "::test_a_failed_update_leaves_the_resources_that_it_would_remove",
        "integration/engine/test_removed_resources.py"
        "::test_a_removed_resource_is_deleted_after_all_changes",
    ),
    "events have the physical name before there is an ID": (
        "integration/nested/test_reads.py"
        "::test_an_event_before_the_physical_id_has_the_name_of_the_nested_stack",
        "integration/engine/test_cancel_timeout_retry.py"
        "::TestRetries::test_the_number_of_retries_is_limited",
        "integration/nested/test_template_types.py::test_a_resource_becomes_a_nested_stack_and_back",
    ),
    "PUT without tags clears them, PATCH keeps them": (
        "integration/api/test_stack_list.py"
        "::test_a_put_without_tags_removes_them_and_a_patch_keeps_them",
    ),
    "an ARN is the name of a stack in every route": (
        "test_an_arn_is_the_name_of_a_stack_in_every_route",
        "unit/hub/api/test_orchestration_routes.py::test_an_arn_is_a_name",
    ),
    "nested resources name their parent; previews have names without an end, and attributes": (
        "test_a_preview_of_a_group",
        "integration/nested/test_group_previews.py::test_attributes_and_types_are_as_in_heat",
    ),
    "a validation has the environment as Heat fills it in": (
        "test_a_type_is_switched_off_with_its_properties",
    ),
    "nested stacks of replaced resources, and replacements on request, are previewed": (
        "integration/nested/test_group_previews.py"
        "::test_the_old_nested_stack_of_a_replaced_resource_is_listed",
        "integration/nested/test_group_previews.py"
        "::test_a_replacement_that_the_type_decides_is_previewed",
    ),
    "a remote stack is created in a region of the requester's catalog": (
        "integration/keystone/test_catalog.py::test_a_stack_is_created_in_a_region_of_the_catalog",
    ),
    "messages are Heat's": (
        "compat/hot/test_messages.py::test_messages_are_those_of_heat",
        "integration/api/test_heat_errors.py"
        "::test_messages_are_those_of_heat_and_remedies_beside_them",
    ),
    "the order of keys and empty sections are kept": (
        "integration/api/test_key_order.py::test_the_order_of_keys_and_empty_sections_are_kept",
    ),
    "a page of stacks reads no more in a large project": (
        "integration/api/test_listed_rows.py::test_a_page_reads_no_more_in_a_large_project",
    ),
    "a nested stack can be deleted by itself where a setting says so": (
        "integration/nested/test_root_stacks.py"
        "::test_a_nested_stack_can_be_deleted_by_itself_if_the_operator_allows_it",
    ),
}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def functions_of(path: Path) -> set[str]:
    """The test functions of a file; those of classes with their class."""
    found = set()
    for one in ast.parse(path.read_text()).body:
        inner = one.body if isinstance(one, ast.ClassDef) else [one]
        prefix = f"{one.name}::" if isinstance(one, ast.ClassDef) else ""
        found |= {
            prefix + each.name
            for each in inner
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        }
    return found


def test_every_test_of_the_table_exists() -> None:
    for tests in SHOWN_BY.values():
        for one in tests:
            path, _, name = one.rpartition("::") if "::Test" not in one else one.partition("::")
            file = ROOT / "tests" / path if path else Path(__file__)
            assert name in functions_of(file), one


async def create(run: Program, name: str, text: str, **more: Json) -> tuple[Json, str]:
    """The response, and the status of the stack at its end."""
    sent = {"stack_name": name, "template": text, **more}
    status, response = await run.call("POST", "/stacks", sent)
    assert status == 201, response
    return response, await run.until_ended(name)


JOINED = """HeatTemplateFormatVersion: '2012-12-12'
Resources:
  Volume: {Type: OS::Heat::TestResource, Properties: {value: vdb}}
  Server:
    Type: OS::Heat::Value
    Properties:
      value:
        Fn::Join:
          - ''
          - - "mount /dev/"
            - {'Fn::GetAtt': [Volume, output]}
            - [/var/lib, mysql]
"""


async def test_a_wrong_item_beside_an_attribute_is_refused(running: Program) -> None:
    for path in ("/validate", "/stacks"):
        sent = {"stack_name": "s", "template": JOINED}
        status, response = await running.call("POST", path, sent)
        assert status == 400, path
        (found,) = response["error"]["findings"]
        assert found["place"] == "Resources.Server.Properties.value.Fn::Join", path
        assert found["reason"] == "Items to join must be strings not ['/var/lib', 'mysql']", path


MONITORED = f"""{HOT}resources:
  web: {{type: OS::Heat::TestResource, properties: {{value: web}}}}
  cpu_high:
    type: My::Cloud::Alarm
    deletion_policy: Snapshot
    properties:
      meter_name: cpu_util
      threshold: 80
      matching_metadata: {{server: {{get_resource: web}}}}
"""
SWITCHED_OFF = {"resource_registry": {"My::Cloud::Alarm": "OS::Heat::None"}}


async def test_a_type_is_switched_off_with_its_properties(running: Program) -> None:
    response, ended = await create(running, "s", MONITORED, environment=SWITCHED_OFF)
    assert ended == "CREATE_COMPLETE"
    # Of its properties, and of its deletion policy.
    assert {one["code"] for one in response["warnings"]} == {"NoEffect"}
    assert sorted(one["line"] for one in response["warnings"]) == [6, 7]
    alarm = (await running.resources("s"))["cpu_high"]
    assert alarm["resource_type"] == "My::Cloud::Alarm"
    assert alarm["headgate_resolved_type"] == "OS::Heat::None"
    sent = {"template": MONITORED, "environment": SWITCHED_OFF}
    status, validated = await running.call("POST", "/validate", sent)
    assert (status, validated["warnings"]) == (200, response["warnings"])
    assert validated["Environment"] == {
        "event_sinks": [],
        "parameter_defaults": {},
        "parameters": {},
        "resource_registry": {"resources": {}, "My::Cloud::Alarm": "OS::Heat::None"},
    }
    stack_id = (await running.stack("s"))["id"]
    assert (await running.call("DELETE", f"/stacks/s/{stack_id}"))[0] == 204
    assert await running.until_ended(stack_id) == "DELETE_COMPLETE"


EXTERNAL = f"""{HOT}parameters:
  existing_volume: {{type: string, default: ''}}
resources:
  data:
    type: OS::Heat::TestResource
    external_id: {{get_param: existing_volume}}
    properties: {{value: data}}
"""


@pytest.mark.parametrize(
    ("given", "status"), [("", "CREATE_COMPLETE"), ("volume-1", "CHECK_COMPLETE")]
)
async def test_an_external_id_from_a_parameter(running: Program, given: str, status: str) -> None:
    _, ended = await create(running, "s", EXTERNAL, parameters={"existing_volume": given})
    assert ended == "CREATE_COMPLETE"
    data = (await running.resources("s"))["data"]
    assert data["resource_status"] == status
    assert (data["physical_resource_id"] == "volume-1") is (given == "volume-1")


GROUP = f"""{HOT}parameters:
  size: {{type: number, default: 2}}
resources:
  web:
    type: OS::Heat::ResourceGroup
    properties:
      count: {{get_param: size}}
      resource_def: {{type: OS::Heat::TestResource, properties: {{value: web-%index%}}}}
outputs:
  eighth: {{value: {{get_attr: [web, resource.7.output]}}}}
"""


async def test_a_member_that_does_not_exist_is_an_error(running: Program) -> None:
    _, ended = await create(running, "s", GROUP)
    assert ended == "CREATE_COMPLETE"
    ((output),) = (await running.stack("s"))["outputs"]
    assert output["output_value"] is None and '"7"' in output["output_error"]
    await running.update("s", parameters={"size": 8})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    ((output),) = (await running.stack("s"))["outputs"]
    assert output["output_value"] == "web-7"


SECRET_MEMBERS = f"""{HOT}
resources:
  keys: {{type: OS::Heat::ResourceGroup, properties: {{count: 2, resource_def: {{type: OS::Heat::RandomString}}}}}}
  eighth: {{type: OS::Heat::Value, properties: {{value: {{get_attr: [keys, resource.7.value]}}}}}}
"""


async def test_a_member_that_does_not_exist_is_named_beside_secrets(running: Program) -> None:
    _, ended = await create(running, "s", SECRET_MEMBERS)
    assert ended == "CREATE_FAILED"
    reason = (await running.stack("s"))["stack_status_reason"]
    assert "get_attr of keys: there is no such member among the 2 of the resource" in reason


async def test_a_preview_of_a_group(running: Program) -> None:
    sent = {"stack_name": "shop", "template": GROUP}
    status, response = await running.call("POST", "/stacks/preview", sent)
    assert status == 200
    (members,) = response["stack"]["resources"]
    assert [one["resource_name"] for one in members] == ["0", "1"]
    assert {one["stack_name"] for one in members} == {"shop-web"}
    assert all(one["parent_resource"] == "web" for one in members)
    assert all(one["attributes"] == {"output": None} for one in members)


#: A parameter with its key, the message, and the remedy.
PARAMETERS = [
    ("2016-10-14", "{type: string, tags: [network]}", "Invalid key 'tags' for parameter (p)",
     "Use heat_template_version 2018-03-02 or later."),
    ("2018-08-31", "{type: number, default: many}",
     "Parameter 'p' is invalid: Invalid default many (\"many\" is not a number)",
     "Write a number, such as 5."),
    ("2016-10-14", "{type: number, constraints: [{modulo: {step: 2, offset: 0}}]}",
     "No constraint expressed", "Use heat_template_version 2017-02-24 or later."),
]  # fmt: skip


@pytest.mark.parametrize(("version", "body", "message", "remedy"), PARAMETERS)
async def test_messages_about_parameters(
    running: Program, version: str, body: str, message: str, remedy: str
) -> None:
    text = f"heat_template_version: {version}\nparameters:\n  p: {body}\n"
    status, response = await running.call("POST", "/validate", {"template": text})
    error = response["error"]
    assert (status, error["message"], error["remedy"]) == (400, message, remedy)
    assert error["findings"][0]["line"] == 3


@pytest.mark.parametrize("transport", ["ZAQAR_SIGNAL", "TEMP_URL_SIGNAL"])
async def test_a_transport_without_its_service_is_refused(running: Program, transport: str) -> None:
    handle = (
        f"{{type: OS::Heat::WaitConditionHandle, properties: {{signal_transport: {transport}}}}}"
    )
    sent = {"stack_name": "s", "template": f"{HOT}resources:\n  done: {handle}\n"}
    for path in ("/validate", "/stacks"):
        status, response = await running.call("POST", path, sent)
        (found,) = response["error"]["findings"]
        assert status == 400 and found["reason"].startswith(f"{transport} needs"), response
        assert found["place"] == "resources.done.properties.signal_transport"


SCALED = f"""{HOT}resources:
  web:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 3
      resource: {{type: OS::Heat::TestResource, properties: {{value: web}}}}
  scale_out:
    type: OS::Heat::ScalingPolicy
    properties:
      adjustment_type: change_in_capacity
      auto_scaling_group_id: {{get_resource: web}}
      scaling_adjustment: 1
outputs:
  size: {{value: {{get_attr: [web, current_size]}}}}
"""


@pytest.mark.parametrize("sent", [b"null", b"{}", b""], ids=["null", "an empty object", "nothing"])
async def test_a_signal_without_data_scales_a_group(running: Program, sent: bytes) -> None:
    """`null` is what `openstack stack resource signal` sends without --data."""
    _, ended = await create(running, "s", SCALED)
    assert ended == "CREATE_COMPLETE"
    path = f"/stacks/s/{(await running.stack('s'))['id']}/resources/scale_out/signal"
    status, response = await running.call(
        "POST", path, data=sent, headers={"Content-Type": "application/json"}
    )
    assert status == 200, response
    assert await running.until_ended("s") == "UPDATE_COMPLETE"
    ((output),) = (await running.stack("s"))["outputs"]
    assert output["output_value"] == 2


async def test_an_arn_is_the_name_of_a_stack_in_every_route(running: Program) -> None:
    await create(running, "s", MONITORED, environment=SWITCHED_OFF)
    stack_id = (await running.stack("s"))["id"]
    arn = f"arn:openstack:heat::{running.project}:stacks%2Fs%2F{stack_id}"
    for route in (
        "", "/resources", "/resources/web", "/resources/web/metadata", "/resources/web/events",
        "/events", "/template", "/environment", "/files", "/outputs", "/snapshots",
    ):  # fmt: skip
        status, response = await running.call("GET", f"/stacks/{arn}{route}")
        assert status == 200, (route, response)
    for method, rest, sent in (("POST", "/actions", {"check": None}), ("DELETE", "", None)):
        # Like Heat, the server redirects; clients of Heat repeat the request there.
        url = URL(f"{running.url}/v1/{running.project}/stacks/{arn}{rest}", encoded=True)
        async with running.session.request(method, url, json=sent, allow_redirects=False) as first:
            assert first.status == 302, await first.text()
            there = first.headers["Location"]
        async with running.session.request(method, there, json=sent) as second:
            assert second.status in (200, 202, 204), await second.text()
        await running.until_ended(stack_id)
