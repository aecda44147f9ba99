"""Secrets in what types and errors say, and values that become hidden, or are hidden no more."""

from collections.abc import AsyncIterator

import pytest

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Confirm, Done, Failed, Outcome, ResourceType
from tests.support.planted import Findings, rows_of
from tests.support.program import Json, Program, eventually, program

NESTED = """
heat_template_version: 2021-04-16
parameters: {code: {type: string}}
resources: {a: {type: OS::Heat::Value, properties: {value: {get_param: code}}}}
outputs: {code: {value: {get_param: code}}, open: {value: nothing secret}}
"""


class Loud(ResourceType):
    """Violates the contract: what it marks as public contains its property."""

    schema = TypeSchema(
        "Test::Loud",
        properties={"text": Property(Kind.STRING), "number": Property(Kind.INTEGER)},
        attributes={"text": Attribute(Kind.STRING), "state": Attribute(Kind.STRING, public=True)},
        steps=("look",),
    )

    def create(self, call: Call) -> Outcome:
        text = call.properties["text"]
        if call.confirmed is None:
            seen = {"plan": [f"make {text}", {text: 1}], "size": 3}
            return Confirm("look", None, seen, public_seen=seen)
        reason = f"cannot make {text}, sorry"
        return Failed(reason, public_reason=reason)

    def delete(self, call: Call) -> Outcome:
        return Done(None)


class Unstorable(ResourceType):
    """Its failure has a public part that PostgreSQL cannot store."""

    schema = TypeSchema("Test::Unstorable", properties={"text": Property(Kind.STRING)})

    def create(self, call: Call) -> Outcome:
        return Failed("it failed", public_reason="it \0 failed")

    def delete(self, call: Call) -> Outcome:
        return Done(None)


@pytest.fixture
def findings() -> Findings:
    return Findings()


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, types=[Loud(), Unstorable()]) as made:
        yield made


def hidden(resources: Json, **more: Json) -> Json:
    return {
        "heat_template_version": "2021-04-16",
        "parameters": {"p": {"type": "string", "hidden": True}},
        "resources": resources,
        **more,
    }


VALUE = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}
READ = {"get_attr": ["src", "value"]}


async def look_everywhere(run: Program, findings: Findings, name: str) -> None:
    for table, rows in (await rows_of(run.database)).items():
        findings.look(f"table {table}", rows)
    for rest in ("/events", "/resources?with_detail=true", "/graph", "/hooks"):
        findings.look(rest, str(await run.at("GET", name, rest)) if rest != "/hooks" else "")
    findings.look("hooks", str(await run.call("GET", "/hooks")))
    assert findings.found == [], "\n".join(findings.found)


async def test_what_a_type_says_is_without_the_secrets_it_was_given(
    run: Program, findings: Findings
) -> None:
    text = {"list_join": ["", ["user:", READ]]}
    loud = {"type": "Test::Loud", "properties": {"text": text}}
    await run.create(
        "s", {}, template=hidden({"src": VALUE, "loud": loud}),
        parameters={"p": findings.plant("p")}, disable_rollback=True,
        environment={"hooks": [{"at": "loud", "on": "confirm-look"}]},
    )  # fmt: skip
    (hook,) = await run.waiting("s")
    assert hook["resource"]["seen"] == {"plan": ["make ******", {"******": 1}], "size": 3}
    assert (await run.signal(hook))[0] == 200
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.resources("s"))["loud"]["resource_status_reason"]
    assert "cannot make ******, sorry" in reason
    await look_everywhere(run, findings, "s")


async def test_an_answer_chooses_members_of_a_group_that_depends_on_a_secret(
    run: Program, findings: Findings
) -> None:
    def sent(count: int) -> Json:
        member = {"type": "OS::Heat::TestResource", "properties": {"value": READ}}
        properties = {"count": count, "resource_def": member}
        group = {"type": "OS::Heat::ResourceGroup", "properties": properties}
        return hidden({"src": VALUE, "g": group})

    parameters = {"p": findings.plant("p")}
    await run.create("s", {}, template=sent(3), parameters=parameters)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    hooks = {"hooks": [{"at": "g", "on": "pre-scale-in"}]}
    await run.update("s", "PUT", template=sent(2), parameters=parameters, environment=hooks)
    (hook,) = await run.waiting("s")
    seen = hook["resource"]["seen"]
    assert (seen["victims"], sorted(seen["may_choose"])) == (["2"], ["0", "1", "2"])
    assert "withheld" not in seen
    assert (await run.signal(hook, data={"victims": ["0"]}))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    members = (await run.at("GET", "s", "/resources/g"))["resource"]["attributes"]
    assert sorted(members["refs_map"]) == ["1", "2"]
    await look_everywhere(run, findings, "s")


async def test_a_public_part_with_a_nul_fails_its_resource_with_the_cause(
    run: Program, findings: Findings
) -> None:
    bad = {"type": "Test::Unstorable", "properties": {"text": READ}}
    await run.create(
        "s", {}, template=hidden({"src": VALUE, "bad": bad}),
        parameters={"p": findings.plant("p")}, disable_rollback=True,
    )  # fmt: skip
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.resources("s"))["bad"]["resource_status_reason"]
    assert "the type Test::Unstorable returned a text with a NUL character" in reason


@pytest.mark.parametrize("number", [READ, {"yaql": {"expression": "int($.data)", "data": READ}}])
async def test_a_reason_shows_no_part_of_a_secret_that_does_not_fit(
    run: Program, findings: Findings, number: Json
) -> None:
    loud = {"type": "Test::Loud", "properties": {"number": number}}
    await run.create(
        "s", {}, template=hidden({"src": VALUE, "loud": loud}),
        parameters={"p": findings.plant("p")}, disable_rollback=True,
    )  # fmt: skip
    assert await run.until_ended("s") == "CREATE_FAILED"
    reason = (await run.resources("s"))["loud"]["resource_status_reason"]
    assert "the values contain secrets" in reason
    await look_everywhere(run, findings, "s")


async def test_what_is_made_of_a_secret_is_hidden_in_a_nested_stack_though_no_mask_is_left(
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
    shown = {one["output_key"]: one["output_value"] for one in (await run.stack("s"))["outputs"]}
    made = shown["top"]
    assert (len(made), shown["open"]) == (128, "nothing secret")
    seen = (await run.at("GET", "s", "/resources/n"))["resource"]["attributes"]
    assert (seen["code"], seen["open"]) == ("******", "nothing secret")
    inside = (await run.resources("s"))["n"]["physical_resource_id"]
    _, listed = await run.call("GET", "/stacks?show_nested=true")
    (name,) = [one["stack_name"] for one in listed["stacks"] if one["id"] == inside]
    stack = await run.stack(name)
    assert stack["parameters"]["code"] == "******"
    outputs_inside = {one["output_key"]: one["output_value"] for one in stack["outputs"]}
    assert outputs_inside == {"code": "******", "open": "nothing secret"}
    findings = Findings()
    findings.plant("digest", made)
    await look_everywhere(run, findings, "s")


async def test_a_parameter_that_becomes_hidden_hides_what_was_made_from_it(
    run: Program, findings: Findings
) -> None:
    reader = {"type": "OS::Heat::TestResource", "properties": {"value": READ}}
    sent = hidden({"src": VALUE, "reader": reader})
    sent["parameters"]["p"]["hidden"] = False
    await run.create("s", {}, template=sent, parameters={"p": findings.plant("p")})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    seen = (await run.at("GET", "s", "/resources/reader"))["resource"]["attributes"]
    assert seen == {"output": findings.secrets["p"]}
    before = {name: one["physical_resource_id"] for name, one in (await run.resources("s")).items()}
    sent["parameters"]["p"]["hidden"] = True
    parameters = {"p": findings.secrets["p"]}
    await run.update("s", method="PUT", template=sent, parameters=parameters)
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    after = await run.resources("s")
    assert {name: one["physical_resource_id"] for name, one in after.items()} == before
    for name, attribute in (("src", "value"), ("reader", "output")):
        seen = (await run.at("GET", "s", f"/resources/{name}"))["resource"]["attributes"]
        assert seen == {attribute: "******"}
    findings.look("resources", (await rows_of(run.database))["resource"])
    assert findings.found == []
    sent["parameters"]["p"]["hidden"] = False
    await run.update("s", method="PUT", template=sent, parameters=parameters)
    await eventually(lambda: shown_again(run, findings.secrets["p"]))


async def shown_again(run: Program, text: str) -> bool:
    seen = (await run.at("GET", "s", "/resources/reader"))["resource"]["attributes"]
    return bool(seen == {"output": text})


async def test_an_id_that_everyone_sees_comes_from_no_hidden_parameter(run: Program) -> None:
    sent = hidden({"a": {"type": "OS::Heat::None", "external_id": {"get_param": "p"}}})
    body = {"stack_name": "s", "template": sent, "parameters": {"p": "geheim-4711"}}
    status, refused = await run.call("POST", "/stacks", body)
    assert (status, "must not come from a hidden parameter" in str(refused)) == (400, True)
    assert "geheim" not in str(refused)


async def test_a_preview_masks_what_is_read_of_a_tainted_resource(run: Program) -> None:
    def sent(before: str) -> Json:
        text = {"list_join": ["", [before, READ]]}
        reader = {"type": "OS::Heat::TestResource", "properties": {"value": text}}
        return hidden({"src": VALUE, "reader": reader})

    await run.create("s", {}, template=sent("a"), parameters={"p": "geheim-4711"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    changed = {"template": sent("b"), "parameters": {"p": "geheim-4711"}}
    seen = await run.at("PUT", "s", "/preview", changed)
    assert "geheim" not in str(seen)
    (reader,) = seen["resource_changes"]["updated"]
    assert reader["changes"] == {"value": {"from": "******", "to": "******"}}
