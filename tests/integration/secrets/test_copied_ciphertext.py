"""Copied or moved ciphertext is not decrypted; damaged ciphertext fails its own stack only."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from engine.store.connection import connect
from tests.support.keys import KEYRING
from tests.support.program import Program, resource, template
from tests.support.receiver import Receiver, running_receiver, until

Json = Any
SECRET = "beta-HIDDEN-MARK"
#: A resource whose row and node are encrypted, and one that reads it.
TEMPLATE_WITH_SECRETS: Json = {
    "heat_template_version": "2021-04-16",
    "parameters": {"p": {"type": "string", "hidden": True}},
    "resources": {
        "a": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}},
        "r": resource("x", depends_on="a"),
    },
    "outputs": {"o": {"value": {"get_attr": ["a", "value"]}}, "open": {"value": "open"}},
}
WITH_METADATA: Json = {
    **TEMPLATE_WITH_SECRETS,
    "resources": {
        **TEMPLATE_WITH_SECRETS["resources"],
        "a": {**TEMPLATE_WITH_SECRETS["resources"]["a"], "metadata": {"m": {"get_param": "p"}}},
    },
}
COPY = "select parameters::text from template t join stack s on s.id = t.stack_id where s.name = $1"
#: The last characters of each ciphertext in a column of one stack.
DAMAGE = r"""
update {0} set {1} = regexp_replace({1}::text, '("\$sealed:[^"]*": "[^"]{{8}})....', '\1AAAA', 'g')::jsonb
 where stack_id = (select id from stack where name = $1) and {1}::text like '%$sealed:%'
"""


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


@pytest.fixture
def database_url(running: Program) -> str:
    return running.database.connector.url


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def other_receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


async def create_stack(running: Program, name: str, **more: Json) -> None:
    body = {
        "stack_name": name,
        "template": TEMPLATE_WITH_SECRETS,
        "parameters": {"p": SECRET},
        **more,
    }
    status, response = await running.call("POST", "/stacks", body)
    assert status == 201, response


async def stored(url: str, statement: str, *args: Json) -> Json:
    """With a connection without a key."""
    conn = await connect(url)
    try:
        return await conn.fetchval(statement, *args)
    finally:
        await conn.close(timeout=5)


async def shown(running: Program, name: str) -> str:
    stack = await running.stack(name)
    path = f"/stacks/{name}/{stack['id']}"
    parts = [stack]
    for rest in ("/resources/r", "/template", "/environment", "/outputs/o"):
        parts.append((await running.call("GET", path + rest))[1])
    return json.dumps(parts)


async def test_ciphertext_copied_into_a_template_stays_ciphertext(
    running: Program, database_url: str
) -> None:
    """An author copies it from a backup of another project, into a parameter, property, output and
    metadata.
    """
    await create_stack(running, "beta")
    await running.until_ended("beta")
    copied = json.loads(await stored(database_url, COPY, "beta"))
    ((field, text),) = copied.items()
    assert field == KEYRING.field and SECRET not in text
    running.project = "alpha"
    body = {
        "heat_template_version": "2021-04-16",
        "parameters": {"j": {"type": "json"}},
        "resources": {
            "r": {"type": "OS::Heat::Value", "properties": {"value": copied}, "metadata": copied}
        },
        "outputs": {"o": {"value": {"made": copied, "got": {"get_attr": ["r", "value"]},
                                    "given": {"get_param": "j"}}}},
    }  # fmt: skip
    sent = {"stack_name": "thief", "template": body, "parameters": {"j": copied}}
    assert (await running.call("POST", "/stacks", sent))[0] == 201
    assert await running.until_ended("thief") == "CREATE_COMPLETE"
    everything = await shown(running, "thief")
    assert SECRET not in everything and everything.count(text) >= 5
    (output,) = [one["output_value"] for one in (await running.stack("thief"))["outputs"]]
    assert output["made"] == copied and json.loads(json.dumps(output["given"])) == copied


async def test_data_of_answers_and_signals_is_escaped_as_well(
    running: Program, database_url: str
) -> None:
    await create_stack(running, "beta")
    await running.until_ended("beta")
    copied = json.loads(await stored(database_url, COPY, "beta"))
    await running.create(
        "s", {"a": resource("x")}, environment={"hooks": [{"at": "a", "on": ["pre-create"]}]}
    )
    (hook,) = await running.waiting_hooks("s")
    assert (await running.signal(hook, data=copied))[0] == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    _, hooks = await running.call("GET", "/hooks?state=answered")
    _, one = await running.call("GET", f"/hooks/{hook['id']}")
    assert SECRET not in json.dumps([hooks, one, await running.events("s")])
    data = await stored(database_url, "select data::text from hook where data is not null")
    assert "$sealed:user:$sealed:" in data


async def test_a_value_moved_by_a_database_administrator_is_not_decrypted(
    running: Program, database_url: str
) -> None:
    """From one stack to another of the same project."""
    await create_stack(running, "beta")
    await running.until_ended("beta")
    await running.create("own", {"a": resource("x"), "r": resource("y")})
    await running.until_ended("own")
    await stored(
        database_url,
        """update resource t set attributes = f.attributes, properties = f.properties from resource
        f
             where t.name = 'a' and t.stack_id = (select id from stack where name = 'own')
               and f.name = 'a' and f.stack_id = (select id from stack where name = 'beta')""",
    )
    stack = await running.stack("own")
    path = f"/stacks/own/{stack['id']}/resources/a"
    status, response = await running.call("GET", path)
    assert status == 200 and SECRET not in json.dumps(response)
    assert "or was moved here" in json.dumps(response)
    _, response = await running.call("GET", f"{path}/inspect")
    assert SECRET not in json.dumps(response)
    await running.act("own", "check")
    assert await running.until_ended("own") == "CHECK_FAILED"
    assert "or was moved here" in (await running.stack("own"))["stack_status_reason"]


async def test_a_damaged_definition_fails_its_stack_only(
    running: Program, database_url: str
) -> None:
    for name in ("broken", "well"):
        await create_stack(
            running, name, environment={"hooks": [{"at": "a", "on": ["pre-create"]}]}
        )
    hooks = {name: await running.waiting_hooks(name) for name in ("broken", "well")}
    await stored(database_url, DAMAGE.format("node", "definition"), "broken")
    for name in ("broken", "well"):
        assert (await running.signal(hooks[name][0]))[0] == 200
    assert await running.until_ended("broken") == "CREATE_FAILED"
    assert await running.until_ended("well") == "CREATE_COMPLETE"
    await check_reason(running, "broken", "node.definition")


async def test_a_damaged_resource_fails_its_stack_only(running: Program, database_url: str) -> None:
    for name in ("broken", "well"):
        await create_stack(running, name)
        assert await running.until_ended(name) == "CREATE_COMPLETE"
    kept = "select attributes::text from resource where name = 'a' and stack_id = $1"
    await stored(database_url, DAMAGE.format("resource", "attributes"), "broken")
    stack_id = UUID((await running.stack("broken"))["id"])
    damaged = await stored(database_url, kept, stack_id)
    for name in ("broken", "well"):
        await running.act(name, "check")
    assert await running.until_ended("broken") == "CHECK_FAILED"
    assert await running.until_ended("well") == "CHECK_COMPLETE"
    await check_reason(running, "broken", "resource.attributes")
    # A value that cannot be read now may be repaired later, so it is not overwritten.
    assert await stored(database_url, kept, stack_id) == damaged


async def check_reason(running: Program, name: str, column: str) -> None:
    """The reason names the column and the remedy; lists and details of the stack respond."""
    stack = await running.stack(name)
    reason = stack["stack_status_reason"]
    assert f"an encrypted value in {column} of stack {stack['id']} cannot be decrypted" in reason
    assert "Restore the row from a backup" in reason
    path = f"/stacks/{name}/{stack['id']}"
    for rest in ("/resources", "/events", "/outputs", "/outputs/o", "/outputs/open",
                 "/resources/a", "/resources/a/inspect", "/graph", "/history"):  # fmt: skip
        status, response = await running.call("GET", path + rest)
        assert status == 200, (rest, response)
    for path in ("/stacks", "/hooks"):
        assert (await running.call("GET", path))[0] == 200, path


async def test_requests_that_need_a_damaged_template_are_refused_and_others_respond(
    running: Program, database_url: str
) -> None:
    await create_stack(running, "broken")
    await running.until_ended("broken")
    await stored(database_url, DAMAGE.format("template", "outputs"), "broken")
    await stored(database_url, DAMAGE.format("template", "parameters"), "broken")
    stack = await running.stack("broken")
    (output,) = stack["outputs"]
    assert "template.outputs" in output["output_error"]
    path = f"/stacks/broken/{stack['id']}"
    status, response = await running.call("PATCH", path, {"tags": "t"})
    assert status == 409 and response["error"]["type"] == "Undecryptable", response
    assert (await running.call("POST", "/stacks", {
        "stack_name": "well", "template": template({"r": resource("x")})
    }))[0] == 201  # fmt: skip
    assert await running.until_ended("well") == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    "column",
    ["resource.properties", "resource.attributes", "resource.metadata", "template.parameters"],
)
async def test_a_stack_with_a_damaged_value_is_not_exported_and_can_be_abandoned(
    running: Program, database_url: str, column: str
) -> None:
    for name in ("broken", "well"):
        await create_stack(running, name, template=WITH_METADATA)
        assert await running.until_ended(name) == "CREATE_COMPLETE"
    await stored(database_url, DAMAGE.format(*column.split(".")), "broken")
    stack = await running.stack("broken")
    path = f"/stacks/broken/{stack['id']}"
    reason = f"an encrypted value in {column} of stack {stack['id']} cannot be decrypted"
    status, response = await running.call("GET", f"{path}/export")
    assert status == 409 and response["error"]["type"] == "Undecryptable", response
    assert reason in response["error"]["message"]
    assert "Restore the row from a backup" in response["error"]["message"]
    assert "headgate stack abandon" in response["error"]["message"]
    await running.stack_request("GET", "well", "/export")
    partial = await running.stack_request("GET", "broken", "/export?partial=true")
    abandoned = await running.stack_request("DELETE", "broken", "/abandon")
    assert abandoned == partial
    shown = json.dumps(abandoned)
    in_export = column in ("resource.metadata", "template.parameters")
    assert (reason in shown) is in_export
    assert (await running.call("GET", "/stacks/broken"))[0] == 404
    if column == "resource.metadata":
        adopted = {"stack_name": "again", "adopt_stack_data": json.dumps(abandoned)}
        status, response = await running.call("POST", "/stacks", adopted)
        assert status == 400, response
        assert "has data that the export could not decrypt" in response["error"]["message"]


async def test_a_resource_with_a_damaged_value_is_not_deleted(
    running: Program, database_url: str
) -> None:
    await create_stack(running, "broken")
    await running.until_ended("broken")
    await stored(database_url, DAMAGE.format("resource", "properties"), "broken")
    await running.stack_request("DELETE", "broken")
    assert await running.until_ended("broken") == "DELETE_FAILED"
    assert "headgate stack abandon" in (await running.stack("broken"))["stack_status_reason"]


async def test_a_damaged_webhook_secret_fails_its_deliveries_only(
    running: Program, database_url: str, receiver: Receiver, other_receiver: Receiver
) -> None:
    ids = []
    for one in (receiver, other_receiver):
        body = {"target": one.url, "channel": "webhook"}
        status, response = await running.call("POST", "/subscriptions", body)
        assert status == 201, response
        ids.append(response["subscription"]["id"] if "subscription" in response else response["id"])
    await stored(
        database_url,
        r"""update subscription set secrets = regexp_replace(secrets::text, '(": ")....', '\1AAAA')
             ::jsonb where id = $1""",
        UUID(ids[0]),
    )
    await running.create("s", {"a": resource("x")})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    await until(lambda: len(other_receiver.received) >= 4, "the other receiver has all events")

    async def failed() -> Json:
        _, response = await running.call("GET", f"/subscriptions/{ids[0]}/deliveries")
        return [one for one in response["deliveries"] if one["attempts"] and one["error"]]

    first = (await until(failed))[0]
    assert "subscription.secrets" in first["error"] and "cannot be decrypted" in first["error"]
    assert receiver.received == []
    path = f"/subscriptions/{ids[0]}"
    assert (await running.call("POST", f"{path}/test"))[0] in (200, 409)


async def test_the_secrets_of_a_resource_that_moves_to_another_stack_can_be_decrypted(
    running: Program, database_url: str
) -> None:
    """A move in the API re-encrypts the values for the new stack."""
    alone = {
        **TEMPLATE_WITH_SECRETS,
        "resources": {"a": TEMPLATE_WITH_SECRETS["resources"]["a"]},
        "outputs": {},
    }
    await create_stack(running, "from", template=alone)
    await running.until_ended("from")
    await running.create("to", {"b": resource("x")})
    await running.until_ended("to")
    wanted = {**TEMPLATE_WITH_SECRETS, "resources": {"b": resource("x"), "c": TEMPLATE_WITH_SECRETS["resources"]["a"]},
              "outputs": {"o": {"value": {"get_attr": ["c", "value"]}}}}  # fmt: skip
    moved = [{"from": {"stack": "from", "resource": "a"}, "to": "c"}]
    await running.update("to", "PUT", template=wanted, parameters={"p": SECRET}, moved=moved)
    assert await running.until_ended("to") == "UPDATE_COMPLETE"
    (output,) = (await running.stack("to"))["outputs"]
    assert output["output_value"] == SECRET
    text = await stored(database_url, "select properties::text from resource where name = 'c'")
    assert SECRET not in text
