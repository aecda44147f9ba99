"""Ciphertext that was copied or moved decrypts nowhere; a damaged one fails its own stack alone."""

import json
from typing import Any
from uuid import UUID

import pytest

from engine.store.connection import connect
from tests.support.keys import A_SEALER
from tests.support.program import Program, resource, template
from tests.support.receiver import Receiver, until

Json = Any
SECRET = "beta-HIDDEN-MARK"
#: A resource whose row and node are encrypted, and one that reads it.
SEALED: Json = {
    "heat_template_version": "2021-04-16",
    "parameters": {"p": {"type": "string", "hidden": True}},
    "resources": {
        "a": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}},
        "r": resource("x", depends_on="a"),
    },
    "outputs": {"o": {"value": {"get_attr": ["a", "value"]}}, "open": {"value": "open"}},
}
WITH_METADATA: Json = {
    **SEALED,
    "resources": {
        **SEALED["resources"],
        "a": {**SEALED["resources"]["a"], "metadata": {"m": {"get_param": "p"}}},
    },
}
COPY = "select parameters::text from template t join stack s on s.id = t.stack_id where s.name = $1"
#: The last characters of each ciphertext in a column of one stack.
DAMAGE = r"""
update {0} set {1} = regexp_replace({1}::text, '("\$sealed:[^"]*": "[^"]{{8}})....', '\1AAAA', 'g')::jsonb
 where stack_id = (select id from stack where name = $1) and {1}::text like '%$sealed:%'
"""


async def made(running: Program, name: str, **more: Json) -> None:
    body = {"stack_name": name, "template": SEALED, "parameters": {"p": SECRET}, **more}
    status, said = await running.call("POST", "/stacks", body)
    assert status == 201, said


async def stored(url: str, statement: str, *args: Json) -> Json:
    """By a connection without a key."""
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
    """From a backup of another project, by an author: parameter, property, output, metadata."""
    await made(running, "beta")
    await running.until_ended("beta")
    copied = json.loads(await stored(database_url, COPY, "beta"))
    ((field, text),) = copied.items()
    assert field == A_SEALER.field and SECRET not in text
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
    await made(running, "beta")
    await running.until_ended("beta")
    copied = json.loads(await stored(database_url, COPY, "beta"))
    await running.create(
        "s", {"a": resource("x")}, environment={"hooks": [{"at": "a", "on": ["pre-create"]}]}
    )
    (hook,) = await running.waiting("s")
    assert (await running.signal(hook, data=copied))[0] == 200
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    _, hooks = await running.call("GET", "/hooks?state=answered")
    _, one = await running.call("GET", f"/hooks/{hook['id']}")
    assert SECRET not in json.dumps([hooks, one, await running.events("s")])
    data = await stored(database_url, "select data::text from hook where data is not null")
    assert "$sealed:user:$sealed:" in data


async def test_a_value_that_a_database_administrator_moves_decrypts_nowhere(
    running: Program, database_url: str
) -> None:
    """From stack to stack of one project: what was moved does not decrypt there."""
    await made(running, "beta")
    await running.until_ended("beta")
    await running.create("own", {"a": resource("x"), "r": resource("y")})
    await running.until_ended("own")
    await stored(
        database_url,
        """update resource t set attributes = f.attributes, properties = f.properties from resource f
             where t.name = 'a' and t.stack_id = (select id from stack where name = 'own')
               and f.name = 'a' and f.stack_id = (select id from stack where name = 'beta')""",
    )
    stack = await running.stack("own")
    path = f"/stacks/own/{stack['id']}/resources/a"
    status, said = await running.call("GET", path)
    assert status == 200 and SECRET not in json.dumps(said)
    assert "or was moved here" in json.dumps(said)
    _, said = await running.call("GET", f"{path}/inspect")
    assert SECRET not in json.dumps(said)
    await running.act("own", "check")
    assert await running.until_ended("own") == "CHECK_FAILED"
    assert "or was moved here" in (await running.stack("own"))["stack_status_reason"]


async def test_a_damaged_definition_fails_its_stack_and_no_other(
    running: Program, database_url: str
) -> None:
    for name in ("broken", "well"):
        await made(running, name, environment={"hooks": [{"at": "a", "on": ["pre-create"]}]})
    held = {name: await running.waiting(name) for name in ("broken", "well")}
    await stored(database_url, DAMAGE.format("node", "definition"), "broken")
    for name in ("broken", "well"):
        assert (await running.signal(held[name][0]))[0] == 200
    assert await running.until_ended("broken") == "CREATE_FAILED"
    assert await running.until_ended("well") == "CREATE_COMPLETE"
    await explained(running, "broken", "node.definition")


async def test_a_damaged_resource_fails_its_stack_and_no_other(
    running: Program, database_url: str
) -> None:
    for name in ("broken", "well"):
        await made(running, name)
        assert await running.until_ended(name) == "CREATE_COMPLETE"
    kept = "select attributes::text from resource where name = 'a' and stack_id = $1"
    await stored(database_url, DAMAGE.format("resource", "attributes"), "broken")
    stack_id = UUID((await running.stack("broken"))["id"])
    damaged = await stored(database_url, kept, stack_id)
    for name in ("broken", "well"):
        await running.act(name, "check")
    assert await running.until_ended("broken") == "CHECK_FAILED"
    assert await running.until_ended("well") == "CHECK_COMPLETE"
    await explained(running, "broken", "resource.attributes")
    # What cannot be read now may be mended yet: it is not written over.
    assert await stored(database_url, kept, stack_id) == damaged


async def explained(running: Program, name: str, column: str) -> None:
    """The reason names the column and the remedy; lists and pages of the stack answer."""
    stack = await running.stack(name)
    reason = stack["stack_status_reason"]
    assert f"an encrypted value in {column} of stack {stack['id']} cannot be decrypted" in reason
    assert "Restore the row from a backup" in reason
    path = f"/stacks/{name}/{stack['id']}"
    for rest in ("/resources", "/events", "/outputs", "/outputs/o", "/outputs/open",
                 "/resources/a", "/resources/a/inspect", "/graph", "/history"):  # fmt: skip
        status, said = await running.call("GET", path + rest)
        assert status == 200, (rest, said)
    for path in ("/stacks", "/hooks"):
        assert (await running.call("GET", path))[0] == 200, path


async def test_a_damaged_template_refuses_what_needs_it_and_shows_the_rest(
    running: Program, database_url: str
) -> None:
    await made(running, "broken")
    await running.until_ended("broken")
    await stored(database_url, DAMAGE.format("template", "outputs"), "broken")
    await stored(database_url, DAMAGE.format("template", "parameters"), "broken")
    stack = await running.stack("broken")
    (output,) = stack["outputs"]
    assert "template.outputs" in output["output_error"]
    path = f"/stacks/broken/{stack['id']}"
    status, said = await running.call("PATCH", path, {"tags": "t"})
    assert status == 409 and said["error"]["type"] == "Undecryptable", said
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
        await made(running, name, template=WITH_METADATA)
        assert await running.until_ended(name) == "CREATE_COMPLETE"
    await stored(database_url, DAMAGE.format(*column.split(".")), "broken")
    stack = await running.stack("broken")
    path = f"/stacks/broken/{stack['id']}"
    reason = f"an encrypted value in {column} of stack {stack['id']} cannot be decrypted"
    status, said = await running.call("GET", f"{path}/export")
    assert status == 409 and said["error"]["type"] == "Undecryptable", said
    assert reason in said["error"]["message"]
    assert "Restore the row from a backup" in said["error"]["message"]
    assert "headgate stack abandon" in said["error"]["message"]
    await running.at("GET", "well", "/export")
    partial = await running.at("GET", "broken", "/export?partial=true")
    abandoned = await running.at("DELETE", "broken", "/abandon")
    assert abandoned == partial
    shown = json.dumps(abandoned)
    in_export = column in ("resource.metadata", "template.parameters")
    assert (reason in shown) is in_export
    assert (await running.call("GET", "/stacks/broken"))[0] == 404
    if column == "resource.metadata":
        adopted = {"stack_name": "again", "adopt_stack_data": json.dumps(abandoned)}
        status, said = await running.call("POST", "/stacks", adopted)
        assert status == 400, said
        assert "could not be decrypted where it was abandoned" in said["error"]["message"]


async def test_a_resource_with_a_damaged_value_is_not_deleted(
    running: Program, database_url: str
) -> None:
    await made(running, "broken")
    await running.until_ended("broken")
    await stored(database_url, DAMAGE.format("resource", "properties"), "broken")
    await running.at("DELETE", "broken")
    assert await running.until_ended("broken") == "DELETE_FAILED"
    assert "headgate stack abandon" in (await running.stack("broken"))["stack_status_reason"]


async def test_a_damaged_webhook_secret_fails_its_deliveries_and_no_other(
    running: Program, database_url: str, receiver: Receiver, other_receiver: Receiver
) -> None:
    ids = []
    for one in (receiver, other_receiver):
        body = {"target": one.url, "channel": "webhook"}
        status, said = await running.call("POST", "/subscriptions", body)
        assert status == 201, said
        ids.append(said["subscription"]["id"] if "subscription" in said else said["id"])
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
        _, said = await running.call("GET", f"/subscriptions/{ids[0]}/deliveries")
        return [one for one in said["deliveries"] if one["attempts"] and one["error"]]

    first = (await until(failed))[0]
    assert "subscription.secrets" in first["error"] and "cannot be decrypted" in first["error"]
    assert receiver.received == []
    path = f"/subscriptions/{ids[0]}"
    assert (await running.call("POST", f"{path}/test"))[0] in (200, 409)


async def test_a_resource_that_moves_to_another_stack_takes_its_secrets_along(
    running: Program, database_url: str
) -> None:
    """By the API: what it keeps is bound to the stack that it moves to."""
    alone = {**SEALED, "resources": {"a": SEALED["resources"]["a"]}, "outputs": {}}
    await made(running, "from", template=alone)
    await running.until_ended("from")
    await running.create("to", {"b": resource("x")})
    await running.until_ended("to")
    wanted = {**SEALED, "resources": {"b": resource("x"), "c": SEALED["resources"]["a"]},
              "outputs": {"o": {"value": {"get_attr": ["c", "value"]}}}}  # fmt: skip
    moved = [{"from": {"stack": "from", "resource": "a"}, "to": "c"}]
    await running.update("to", "PUT", template=wanted, parameters={"p": SECRET}, moved=moved)
    assert await running.until_ended("to") == "UPDATE_COMPLETE"
    (output,) = (await running.stack("to"))["outputs"]
    assert output["output_value"] == SECRET
    text = await stored(database_url, "select properties::text from resource where name = 'c'")
    assert SECRET not in text
