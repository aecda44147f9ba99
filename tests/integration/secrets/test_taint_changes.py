"""Secrets in messages of types, and values that become hidden or are no longer hidden."""

from collections.abc import Sequence

import pytest

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Confirm, Done, Failed, Outcome, ResourceType
from tests.support.program import Json, Program, eventually
from tests.support.secret_search import SecretSearch, rows_of

NESTED = """
heat_template_version: 2021-04-16
parameters: {code: {type: string}}
resources: {a: {type: OS::Heat::Value, properties: {value: {get_param: code}}}}
outputs: {code: {value: {get_param: code}}, open: {value: nothing secret}}
"""


class LeakingType(ResourceType):
    """Violates the contract: its public part contains its property."""

    schema = TypeSchema(
        "Test::Loud",
        properties={"text": Property(Kind.STRING), "number": Property(Kind.INTEGER)},
        attributes={"text": Attribute(Kind.STRING), "state": Attribute(Kind.STRING, public=True)},
        steps=("look",),
    )

    def create(self, call: Call) -> Outcome:
        text = call.properties["text"]
        if call.confirmation is None:
            seen = {"plan": [f"make {text}", {text: 1}], "size": 3}
            return Confirm("look", None, seen, public_seen=seen)
        reason = f"cannot make {text}, sorry"
        return Failed(reason, public_reason=reason)

    def delete(self, call: Call) -> Outcome:
        return Done(None)


class UnstorableType(ResourceType):
    """Its failure has a public part that PostgreSQL cannot store."""

    schema = TypeSchema("Test::Unstorable", properties={"text": Property(Kind.STRING)})

    def create(self, call: Call) -> Outcome:
        return Failed("it failed", public_reason="it \0 failed")

    def delete(self, call: Call) -> Outcome:
        return Done(None)


@pytest.fixture
def search() -> SecretSearch:
    return SecretSearch()


@pytest.fixture(scope="module")
def shared_types() -> Sequence[ResourceType]:
    return [LeakingType(), UnstorableType()]


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


def hidden(resources: Json, **more: Json) -> Json:
    return {
        "heat_template_version": "2021-04-16",
        "parameters": {"p": {"type": "string", "hidden": True}},
        "resources": resources,
        **more,
    }


VALUE = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}
READ = {"get_attr": ["src", "value"]}


async def search_outputs(run: Program, search: SecretSearch, name: str) -> None:
    for table, rows in (await rows_of(run.database)).items():
        search.search(f"table {table}", rows)
    for rest in ("/events", "/resources?with_detail=true", "/graph", "/hooks"):
        search.search(
            rest, str(await run.stack_request("GET", name, rest)) if rest != "/hooks" else ""
        )
    search.search("hooks", str(await run.call("GET", "/hooks")))
    assert search.found == [], "\n".join(search.found)


async def test_the_message_of_a_type_contains_no_secret_property(
    run: Program, search: SecretSearch
) -> None:
    text = {"list_join": ["", ["user:", READ]]}
    loud = {"type": "Test::Loud", "properties": {"text": text}}
    await run.create(
        "s", {}, template=hidden({"src": VALUE, "loud": loud}),
        parameters={"p": search.new_secret("p")}, disable_rollback=True,
        environment={"hooks": [{"at": "loud", "on": "confirm-look"}]},
    )  # fmt: skip
    (hook,) = await run.waiting_hooks("s")
    assert hook["resource"]["seen"] == {"plan": ["make ******", {"******": 1}], "size": 3}
    assert (await run.signal(hook))[0] == 200
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.resources("s"))["loud"]["resource_status_reason"]
    assert "cannot make ******, sorry" in reason
    await search_outputs(run, search, "s")


async def test_an_answer_chooses_members_of_a_group_that_depends_on_a_secret(
    run: Program, search: SecretSearch
) -> None:
    def sent(count: int) -> Json:
        member = {"type": "OS::Heat::TestResource", "properties": {"value": READ}}
        properties = {"count": count, "resource_def": member}
        group = {"type": "OS::Heat::ResourceGroup", "properties": properties}
        return hidden({"src": VALUE, "g": group})

    parameters = {"p": search.new_secret("p")}
    await run.create("s", {}, template=sent(3), parameters=parameters)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    hooks = {"hooks": [{"at": "g", "on": "pre-scale-in"}]}
    await run.update("s", "PUT", template=sent(2), parameters=parameters, environment=hooks)
    (hook,) = await run.waiting_hooks("s")
    seen = hook["resource"]["seen"]
    assert (seen["victims"], sorted(seen["may_choose"])) == (["2"], ["0", "1", "2"])
    assert "withheld" not in seen
    assert (await run.signal(hook, data={"victims": ["0"]}))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    members = (await run.stack_request("GET", "s", "/resources/g"))["resource"]["attributes"]
    assert sorted(members["refs_map"]) == ["1", "2"]
    await search_outputs(run, search, "s")


async def test_a_public_part_with_a_nul_fails_its_resource_with_the_cause(
    run: Program, search: SecretSearch
) -> None:
    failing = {"type": "Test::Unstorable", "properties": {"text": READ}}
    await run.create(
        "s", {}, template=hidden({"src": VALUE, "bad": failing}),
        parameters={"p": search.new_secret("p")}, disable_rollback=True,
    )  # fmt: skip
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.resources("s"))["bad"]["resource_status_reason"]
    assert "the type Test::Unstorable returned a text with a NUL character" in reason


@pytest.mark.parametrize("number", [READ, {"yaql": {"expression": "int($.data)", "data": READ}}])
async def test_a_truncated_reason_shows_no_part_of_a_secret(
    run: Program, search: SecretSearch, number: Json
) -> None:
    loud = {"type": "Test::Loud", "properties": {"number": number}}
    await run.create(
        "s", {}, template=hidden({"src": VALUE, "loud": loud}),
        parameters={"p": search.new_secret("p")}, disable_rollback=True,
    )  # fmt: skip
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.resources("s"))["loud"]["resource_status_reason"]
    assert "the values contain secrets" in reason
    await search_outputs(run, search, "s")


async def test_a_value_computed_from_a_secret_is_hidden_in_a_nested_stack_without_a_mask(
    run: Program,
) -> None:
    code = {"digest": ["sha512", READ]}
    nested = {"type": "n.yaml", "properties": {"code": code}}
    after = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["n", "code"]}}}
    outputs = {"top": {"value": {"get_attr": ["n", "code"]}},
               "open": {"value": {"get_attr": ["n", "open"]}}}  # fmt: skip
    sent = hidden({"src": VALUE, "n": nested, "after": after}, outputs=outputs)
    await run.create(
        "s", {}, template=sent, parameters={"p": "geheim-4711"}, files={"n.yaml": NESTED}
    )
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    response = {one["output_key"]: one["output_value"] for one in (await run.stack("s"))["outputs"]}
    made = response["top"]
    assert (len(made), response["open"]) == (128, "nothing secret")
    attributes = (await run.stack_request("GET", "s", "/resources/n"))["resource"]["attributes"]
    assert (attributes["code"], attributes["open"]) == ("******", "nothing secret")
    inside = (await run.resources("s"))["n"]["physical_resource_id"]
    _, listed = await run.call("GET", "/stacks?show_nested=true")
    (name,) = [one["stack_name"] for one in listed["stacks"] if one["id"] == inside]
    stack = await run.stack(name)
    assert stack["parameters"]["code"] == "******"
    outputs_inside = {one["output_key"]: one["output_value"] for one in stack["outputs"]}
    assert outputs_inside == {"code": "******", "open": "nothing secret"}
    search = SecretSearch()
    search.new_secret("digest", made)
    await search_outputs(run, search, "s")


async def test_a_parameter_that_becomes_hidden_masks_values_computed_from_it(
    run: Program, search: SecretSearch
) -> None:
    reader = {"type": "OS::Heat::TestResource", "properties": {"value": READ}}
    sent = hidden({"src": VALUE, "reader": reader})
    sent["parameters"]["p"]["hidden"] = False
    await run.create("s", {}, template=sent, parameters={"p": search.new_secret("p")})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    attributes = (await run.stack_request("GET", "s", "/resources/reader"))["resource"][
        "attributes"
    ]
    assert attributes == {"output": search.secrets["p"]}
    before = {name: one["physical_resource_id"] for name, one in (await run.resources("s")).items()}
    sent["parameters"]["p"]["hidden"] = True
    parameters = {"p": search.secrets["p"]}
    await run.update("s", method="PUT", template=sent, parameters=parameters)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    after = await run.resources("s")
    assert {name: one["physical_resource_id"] for name, one in after.items()} == before
    for name, attribute in (("src", "value"), ("reader", "output")):
        attributes = (await run.stack_request("GET", "s", f"/resources/{name}"))["resource"][
            "attributes"
        ]
        assert attributes == {attribute: "******"}
    search.search("resources", (await rows_of(run.database))["resource"])
    assert search.found == []
    sent["parameters"]["p"]["hidden"] = False
    await run.update("s", method="PUT", template=sent, parameters=parameters)
    await eventually(lambda: shown_again(run, search.secrets["p"]))


async def shown_again(run: Program, text: str) -> bool:
    attributes = (await run.stack_request("GET", "s", "/resources/reader"))["resource"][
        "attributes"
    ]
    return bool(attributes == {"output": text})


async def test_a_physical_id_is_not_computed_from_a_hidden_parameter(run: Program) -> None:
    sent = hidden({"a": {"type": "OS::Heat::None", "external_id": {"get_param": "p"}}})
    body = {"stack_name": "s", "template": sent, "parameters": {"p": "geheim-4711"}}
    status, refused = await run.call("POST", "/stacks", body)
    assert (status, "must not come from a hidden parameter" in str(refused)) == (400, True)
    assert "geheim" not in str(refused)


async def test_a_dry_run_masks_values_read_from_a_resource_with_secrets(run: Program) -> None:
    def sent(before: str) -> Json:
        text = {"list_join": ["", [before, READ]]}
        reader = {"type": "OS::Heat::TestResource", "properties": {"value": text}}
        return hidden({"src": VALUE, "reader": reader})

    await run.create("s", {}, template=sent("a"), parameters={"p": "geheim-4711"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    changed = {"template": sent("b"), "parameters": {"p": "geheim-4711"}}
    response = await run.stack_request("PUT", "s", "/preview", changed)
    assert "geheim" not in str(response)
    (reader,) = response["resource_changes"]["updated"]
    assert reader["changes"] == {"value": {"from": "******", "to": "******"}}
