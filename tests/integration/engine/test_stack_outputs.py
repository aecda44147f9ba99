"""`stack_output`: outputs of other stacks, with recorded dependencies."""

import pytest

from engine.types.contract import Failed
from tests.support.changes import (
    expect_error,
    thing,
    until_complete,
    until_deleted,
    until_status,
)
from tests.support.program import Http, Json, Program
from tests.support.scripted_type import World

READ = {"stack_output": ["net", "size"]}


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def headgate(resources: Json, **more: Json) -> Json:
    return {"heat_template_version": "headgate", "resources": resources, **more}


def net(number: Json = 1, **outputs: Json) -> Json:
    outputs = outputs or {"size": {"get_attr": ["a", "size"]}}
    values = {name: {"value": value} for name, value in outputs.items()}
    return headgate({"a": thing(number)}, outputs=values)


async def create(run: Program, name: str, template: Json, **more: Json) -> None:
    body = {"stack_name": name, "template": template, **more}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 201, response
    assert await run.until_ended(name) == "CREATE_COMPLETE"


async def refused(run: Program, template: Json, **more: Json) -> Json:
    """The error of a create, which a preview and a validation report, too."""
    body = {"stack_name": "t", "template": template, **more}
    errors = []
    for path in ("/stacks", "/stacks/preview", "/validate"):
        status, response = await run.call("POST", path, body)
        assert status == 400, (path, response)
        errors.append(response["error"]["message"].replace(": : ", ": "))
    assert len({text.partition(": ")[2] or text for text in errors}) == 1, errors
    return errors[0]


async def dependencies(run: Program, name: str) -> Json:
    return await run.stack_request("GET", name, "/dependencies")


class TestValues:
    async def test_the_value_is_known_when_the_stack_is_defined(
        self, run: Program, world: World
    ) -> None:
        both = {"size": {"get_attr": ["a", "size"]}, "keys": ["x", "y"], "map": {"k": [7]}}
        await create(run, "net", net(3, **both))
        template = headgate(
            {
                "one": thing(READ),
                "many": thing(1, for_each={"stack_output": ["net", "keys"]}),
                "deep": thing({"stack_output": ["net", "map", "k", 0]}),
            },
            locals={"other": {"get_param": "from"}},
            parameters={"from": {"type": "string", "default": "net"}},
            outputs={"again": {"value": {"stack_output": ["${other}", "size"]}}},
        )
        status, shown = await run.call(
            "POST", "/stacks/preview", {"stack_name": "app", "template": template}
        )
        assert status == 200, shown
        sizes = {
            one["headgate_resource_name"]: one["changes"]["size"]["to"]
            for one in shown["stack"]["resources"]
        }
        assert sizes == {"one": 3, 'many["x"]': 1, 'many["y"]': 1, "deep": 7}
        await create(run, "app", template)
        assert [*await run.resources("app")] == [*sizes]
        (output,) = (await run.stack("app"))["outputs"]
        assert output["output_value"] == 3

    async def test_an_update_reads_it_again(self, run: Program, world: World) -> None:
        await create(run, "net", net(1))
        await create(run, "app", headgate({"one": thing(READ), "two": thing(1)}))
        await run.update("net", "PUT", template=net(2))
        await until_complete(run, "net")
        (read,) = (await dependencies(run, "app"))["reads"]
        assert (read["output"], read["changed"]) == ("size", True)
        await run.update("app", "PATCH", existing=True)
        await until_complete(run, "app")
        assert world.operations("one") == ["create", "update"]
        assert world.operations("two") == ["create"]
        (read,) = (await dependencies(run, "app"))["reads"]
        assert read["changed"] is False

    async def test_a_rollback_returns_to_the_value_that_was_read_before(
        self, run: Program, world: World
    ) -> None:
        await create(run, "net", net(1))
        await create(run, "app", headgate({"one": thing(READ)}))
        await run.update("net", "PUT", template=net(2))
        await until_complete(run, "net")
        world.script("create", "bad", Failed("no"))
        broken = headgate({"one": thing(READ), "bad": thing(depends_on="one")})
        await run.update("app", "PUT", template=broken, disable_rollback=False)
        await until_status(run, "app", "ROLLBACK_COMPLETE")
        assert sorted(world.things.values()) == [1, 2]
        (read,) = (await dependencies(run, "app"))["reads"]
        assert read["changed"] is True

    async def test_nested_stacks_read_it_too(self, run: Program, world: World) -> None:
        await create(run, "net", net(4, size=4, name="size"))
        inner = """
heat_template_version: headgate
parameters: {output: {type: string}}
resources: {x: {type: "Test::Thing", properties: {size: {stack_output: [net, "${output}"]}}}}
"""
        nested = {"type": "inner.yaml", "properties": {"output": "size"}}
        later = {"type": "inner.yaml", "properties": {"output": {"get_resource": "b"}}}
        files = {"inner.yaml": inner}
        await create(run, "app", headgate({"n": nested}), files=files)
        assert sorted(world.things.values()) == [4, 4]
        assert [one["stack_name"] for one in (await dependencies(run, "net"))["read_by"]] == ["app"]
        await run.update("app", "PUT", template=headgate({"b": thing(), "n": later}), files=files)
        await until_status(run, "app", "UPDATE_FAILED")
        reason = (await run.resources("app"))["n"]["resource_status_reason"]
        assert 'The stack "net" has no output' in reason


class TestErrors:
    async def test_what_cannot_be_read(self, run: Program) -> None:
        text = await refused(run, headgate({"a": thing(READ)}))
        assert "resources.a.properties.size.stack_output: " in text
        assert 'There is no stack "net" in this project.' in text
        body = {"stack_name": "t", "template": headgate({"a": thing(READ)})}
        _, response = await run.call("POST", "/stacks", body)
        (found,) = response["error"]["findings"]
        assert found["remedy"] == "Create it first, or correct the name."
        await create(run, "net", net(1))
        text = await refused(run, headgate({"a": thing({"stack_output": ["net", "sise"]})}))
        assert 'The stack "net" has no output "sise".' in text
        text = await refused(run, headgate({"a": thing({"stack_output": ["net", "size", "x"]})}))
        assert 'has no value: there is no "x"' in text

    async def test_an_output_of_the_template_shows_the_error(self, run: Program) -> None:
        template = headgate({"a": thing()}, outputs={"o": {"value": READ}})
        await create(run, "app", template)
        (output,) = (await run.stack("app"))["outputs"]
        assert output["output_value"] is None
        assert output["output_error"].startswith('There is no stack "net"')

    async def test_a_stack_that_is_not_complete_has_no_outputs_yet(
        self, run: Program, world: World
    ) -> None:
        world.script("create", "a", Failed("no"))
        body = {"stack_name": "net", "template": net(1)}
        assert (await run.call("POST", "/stacks", body))[0] == 201
        assert await run.until_ended("net") == "CREATE_FAILED"
        text = await refused(run, headgate({"b": thing(READ)}))
        assert 'The stack "net" has no outputs to read: it is in CREATE_FAILED' in text

    async def test_another_project_s_stack_does_not_exist(self, run: Program) -> None:
        await create(run, "net", net(1))
        stack = await run.stack("net")
        other = Http(run.session, run.url, "q")
        for name in ("net", stack["id"]):
            body = {"stack_name": "t", "template": headgate({
                "a": thing({"stack_output": [name, "size"]})})}  # fmt: skip
            status, response = await other.call("POST", "/stacks", body)
            assert status == 400
            assert f'There is no stack "{name}"' in response["error"]["message"]

    async def test_itself_and_nested_stacks(self, run: Program) -> None:
        inner = "heat_template_version: headgate\noutputs: {size: {value: 1}}\n"
        body = headgate({"n": {"type": "inner.yaml"}}, outputs={"size": {"value": 1}})
        await create(run, "net", body, files={"inner.yaml": inner})
        _, listed = await run.call("GET", "/stacks?show_nested=true")
        (nested,) = (one for one in listed["stacks"] if one["stack_name"] != "net")
        read = {"stack_output": [nested["stack_name"], "size"]}
        assert "is a nested stack" in await refused(run, headgate({"a": thing(read)}))
        status, error = await expect_error(
            run, "PUT", "net", "", {"template": headgate({"a": thing(READ)})}
        )
        assert status == 400 and "A stack cannot read its own outputs" in error["message"]
        for path in ("/stacks", "/stacks/preview"):
            created = {"stack_name": "new", "template": headgate({
                "a": thing({"stack_output": ["new", "size"]})})}  # fmt: skip
            status, response = await run.call("POST", path, created)
            assert status == 400, response
            assert "A stack cannot read its own outputs" in response["error"]["message"]


class TestDependencies:
    async def test_a_stack_that_others_read_is_not_deleted(self, run: Program) -> None:
        await create(run, "net", net(1))
        await create(run, "app", headgate({"one": thing(READ)}))
        await create(run, "web", headgate({"one": thing(READ)}))
        found = await dependencies(run, "net")
        assert found["reads"] == []
        assert [one["stack_name"] for one in found["read_by"]] == ["app", "web"]
        for method, rest in (("DELETE", ""), ("DELETE", "/abandon")):
            status, error = await expect_error(run, method, "net", rest)
            assert status == 409 and error["type"] == "StackInUse"
            assert "its outputs are read by app, web" in error["message"]
        await run.update("web", "PUT", template=headgate({"one": thing(1)}))
        await until_complete(run, "web")
        await run.stack_request("DELETE", "app", "")
        await until_deleted(run, "app")
        await run.stack_request("DELETE", "net", "")
        await until_deleted(run, "net")

    async def test_stacks_that_would_read_each_other_are_refused(self, run: Program) -> None:
        await create(run, "net", net(1))
        await create(run, "mid", headgate({}, outputs={"size": {"value": READ}}))
        await create(
            run, "app", headgate({}, outputs={"x": {"value": {"stack_output": ["mid", "size"]}}})
        )
        template = net(1, size={"stack_output": ["app", "x"]})
        for rest in ("", "/preview"):
            status, error = await expect_error(run, "PUT", "net", rest, {"template": template})
            assert status == 409 and error["type"] == "CircularDependencyException"
            assert '"app" reads this stack' in error["message"]

    async def test_an_output_that_goes_is_reported_at_the_next_update(self, run: Program) -> None:
        await create(run, "net", net(1))
        await create(run, "app", headgate({"one": thing(READ)}))
        await run.update("net", "PUT", template=net(1, other=1))
        await until_complete(run, "net")
        (read,) = (await dependencies(run, "app"))["reads"]
        assert read["changed"] is True
        status, error = await expect_error(run, "PATCH", "app", "", {"existing": True})
        assert status == 400 and 'has no output "size"' in error["message"]


HIDDEN: Json = {"key": {"type": "string", "hidden": True, "default": "s3cret-x"}}


class TestSecrets:
    async def test_a_secret_output_stays_secret(self, run: Program) -> None:
        secret = headgate({}, parameters=HIDDEN, outputs={"k": {"value": "${key}"}})
        await create(run, "net", secret)
        value = {"stack_output": ["net", "k"]}
        template = headgate(
            {"v": {"type": "OS::Heat::Value", "properties": {"value": value}}},
            outputs={"o": {"value": value}},
        )
        await create(run, "app", template)
        resource = await run.stack_request("GET", "app", "/resources/v")
        assert "s3cret-x" not in str(resource)
        (read,) = (await dependencies(run, "app"))["reads"]
        assert read["secret"] is True
        assert "s3cret-x" not in str(await dependencies(run, "app"))
        _, shown = await run.call(
            "POST", "/stacks/preview", {"stack_name": "t", "template": template}
        )
        assert "s3cret-x" not in str(shown["stack"]["resources"])
        length = {"type": "OS::Heat::RandomString", "properties": {"length": value}}
        body = {"stack_name": "t", "template": headgate({"a": length})}
        status, response = await run.call("POST", "/stacks", body)
        assert status == 400 and "s3cret-x" not in str(response)
        keys = headgate({"a": thing(1, for_each=[value])})
        status, response = await run.call("POST", "/stacks", {"stack_name": "t", "template": keys})
        assert status == 400 and "s3cret-x" not in str(response)

    async def test_it_is_encrypted_at_rest(self, run: Program) -> None:
        secret = headgate({}, parameters=HIDDEN, outputs={"k": {"value": "${key}"}})
        await create(run, "net", secret)
        value = {"stack_output": ["net", "k"]}
        resource = {"type": "OS::Heat::Value", "properties": {"value": value}}
        await create(run, "app", headgate({"v": resource}, outputs={"o": {"value": value}}))
        async with run.database.connection() as conn:
            tables = await conn.fetch(
                "select table_name as name from information_schema.tables"
                " where table_schema = 'public' and table_type = 'BASE TABLE'"
            )
            assert len(tables) > 20
            for table in tables:
                query = f"select count(*) from {table['name']} t where t::text like '%s3cret-x%'"
                allowed = 1 if table["name"] == "template" else 0  # the default in net's template
                assert await conn.fetchval(query) <= allowed, table["name"]

    async def test_a_secret_output_of_a_nested_stack_that_reads_it(self, run: Program) -> None:
        secret = headgate({}, parameters=HIDDEN, outputs={"k": {"value": "${key}"}})
        await create(run, "net", secret)
        inner = "heat_template_version: headgate\noutputs: {o: {value: {stack_output: [net, k]}}}\n"
        value = {"get_attr": ["n", "o"]}
        resource = {"type": "OS::Heat::Value", "properties": {"value": value}}
        template = headgate({"n": {"type": "inner.yaml"}, "v": resource})
        await create(run, "app", template, files={"inner.yaml": inner})
        for path in ("/resources/v", "/resources/n"):
            shown = await run.stack_request("GET", "app", path)
            assert "s3cret-x" not in str(shown), path

    async def test_secrets_of_a_stack_that_was_nested_are_not_read(self, run: Program) -> None:
        inner = (
            "heat_template_version: headgate\n"
            "parameters: {key: {type: string, hidden: true}}\n"
            'outputs: {k: {value: "${key}"}, open: {value: 1}}\n'
        )
        nested = {
            "type": "inner.yaml",
            "properties": {"key": "s3cret-x"},
            "deletion_policy": "Retain",
        }
        await create(run, "net", headgate({"n": nested}), files={"inner.yaml": inner})
        _, listed = await run.call("GET", "/stacks?show_nested=true")
        (name,) = (one["stack_name"] for one in listed["stacks"] if one["stack_name"] != "net")
        await run.update("net", "PUT", template=headgate({}))
        await until_complete(run, "net")
        read = {"stack_output": [name, "k"]}
        text = await refused(run, headgate({"a": thing(read)}))
        assert "is secret, and the stack was nested" in text and "s3cret-x" not in text
        await create(run, "app", headgate({"a": thing({"stack_output": [name, "open"]})}))


async def test_outputs_of_all_stacks_together_cost_what_those_of_one_stack_may(
    run: Program,
) -> None:
    lists = {
        name: {
            "type": "OS::Heat::Value",
            "properties": {"type": "json", "value": ["x"] * count},
        }
        for name, count in (("v", 500), ("w", 300))
    }
    for_each = {f"%{name}%": {"get_attr": [name, "value"]} for name in lists}
    costly = {"repeat": {"template": "%v%%w%", "for_each": for_each}}
    outputs = {"size": {"value": costly}}
    for name in ("net", "other"):
        await create(run, name, headgate(lists, outputs=outputs))
    await create(run, "one", headgate({}, outputs={"o": {"value": {"length": READ}}}))
    both = {name: {"length": {"stack_output": [name, "size"]}} for name in ("net", "other")}
    text = await refused(run, headgate({name: thing(one) for name, one in both.items()}))
    assert "more steps than are allowed" in text
