"""Answers to hooks by buttons in Slack: signed clicks, and the messages about them."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import orjson
import pytest
import pytest_asyncio

from channels.chat.slack_interaction import request_signature
from hub.api.headgate.slack import MAX_BODY
from tests.integration.api.test_openapi_traffic import SLACK_ROUTES
from tests.support.access import insert_credential
from tests.support.openapi_check import OpenApiDocument, RecordingClient
from tests.support.postgres import TestServer
from tests.support.principals import password_client, token_client
from tests.support.program import Http, Json, Program, program, resource
from tests.support.receiver import Received, Receiver, running_receiver, until

pytestmark = pytest.mark.usefixtures("cheap_hashes")
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TEAM, ADA, BOB, EVE = "T0001", "U00ADA", "U00BOB", "U00EVE"
PATH = "//slack/interactions"
HOOK: Json = {"at": "a", "on": ["pre-create"]}
USERS: Json = [
    {"id": ADA, "user": "ada", "roles": ["approver"]},
    {"id": BOB, "user": "bob", "roles": ["approver", "dba"]},
    {"id": EVE, "user": "eve", "roles": ["approver"], "projects": ["other"]},
]


@dataclass
class Slack:
    """Slack: it receives the messages of the server `run`, and sends clicks."""

    run: Program
    receiver: Receiver

    async def subscribe(self, client: Http | None = None) -> Json:
        body = {"channel": "slack", "target": f"{self.receiver.url}/services/T/B/x"}
        status, response = await (client or self.run).call("POST", "/subscriptions", body)
        assert status == 201, response
        return response

    async def message(self) -> Json:
        """The first message with buttons that answer."""

        def find() -> Json:
            found = [one.event for one in self.receiver.received if "/services/" in one.path]
            return next((one for one in found if buttons(one)), None)

        return await until(find, "a message with buttons")

    async def replies(self, count: int = 1) -> list[Json]:
        """The messages about clicks."""

        def find() -> list[Received]:
            found = [one for one in self.receiver.received if one.path.startswith("/actions/")]
            return found if len(found) >= count else []

        return [one.event for one in await until(find, "messages about clicks")]

    async def click(
        self, button: Json, user: str = ADA, *, message: Json | None = None, **changed: Any
    ) -> int:
        """Returns the status. changed: of the payload."""
        return await self.send(self.payload(button, user, message=message, **changed))

    def payload(
        self, button: Json, user: str = ADA, *, message: Json | None = None, **changed: Any
    ) -> Json:
        return {
            "type": "block_actions",
            "trigger_id": str(uuid4()),
            "user": {"id": user, "username": "x", "team_id": TEAM},
            "team": {"id": TEAM},
            "response_url": f"{self.receiver.url}/actions/1",
            "message": message or {},
            "actions": [button],
            **changed,
        }

    async def send(
        self, payload: Json, *, at: float | None = None, signature: str | None = None
    ) -> int:
        """at: the time of the request. signature: in place of the right one."""
        body = urlencode({"payload": orjson.dumps(payload).decode()}).encode()
        headers = signed(body, at)
        if signature is not None:
            headers["X-Slack-Signature"] = signature
        return await self.post(body, headers)

    async def post(self, body: bytes, headers: Mapping[str, str]) -> int:
        status, _ = await self.run.call("POST", PATH, data=body, headers=headers)
        return status

    async def hook(self, project: str = "p") -> Json:
        client = Http(self.run.session, self.run.url, project)
        (found,) = (await client.call("GET", "/hooks"))[1]["hooks"]
        return found


def signed(body: bytes, at: float | None = None) -> dict[str, str]:
    timestamp = str(int(at if at is not None else time.time()))
    return {
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": request_signature(SECRET, timestamp, body),
        "Content-Type": "application/x-www-form-urlencoded",
    }


def buttons(message: Json) -> dict[str, Json]:
    """The buttons that answer, by their decision."""
    found = [one for block in message["blocks"] for one in block.get("elements", ())]
    return {one["action_id"]: one for one in found if "action_id" in one}


def text(message: Json) -> str:
    return str(message["text"])


def slack_settings(path: Path) -> dict[str, Any]:
    """path: a directory for the secret."""
    secret = path / "secret"
    secret.write_text(f"{SECRET}\n")
    return {
        "channels.slack.signing_secret_file": str(secret),
        "channels.slack.team": TEAM,
        "channels.slack.hosts": ["127.0.0.1"],
        "channels.slack.users": USERS,
    }


@asynccontextmanager
async def slack_server(
    url: str, path: Path, receiver: Receiver, **more: Any
) -> AsyncIterator[Slack]:
    async with program(url, slack_settings(path) | more) as run:
        yield Slack(run, receiver)


@pytest.fixture(scope="module")
def shared_settings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    return slack_settings(tmp_path_factory.mktemp("slack"))


@pytest_asyncio.fixture(loop_scope="session")
async def receiver_of_slack() -> AsyncIterator[Receiver]:
    async with running_receiver() as started:
        yield started


@pytest.fixture
def slack(in_own_project: Program, receiver_of_slack: Receiver) -> Slack:
    in_own_project.project = "p"  # USERS may answer in it
    return Slack(in_own_project, receiver_of_slack)


async def waiting(slack: Slack, **rule: Json) -> Json:
    """The message of a hook that waits."""
    await slack.subscribe()
    environment = {"hooks": [HOOK | rule]}
    await slack.run.create("s", {"a": resource()}, environment=environment)
    return await slack.message()


async def test_a_click_approves_and_the_message_shows_by_whom(slack: Slack) -> None:
    message = await waiting(slack)
    shown = buttons(message)
    assert list(shown) == ["continue", "reject"]
    assert shown["reject"]["confirm"]["text"]["text"].startswith("s/a: create waits for approval.")
    assert await slack.click(shown["continue"], message=message) == 200
    (reply,) = await slack.replies()
    assert reply["replace_original"] is True
    assert text(reply).startswith("s/a: pre-create approved by ada, ")
    assert buttons(reply) == {}
    assert reply["blocks"][0] == message["blocks"][0]
    assert await slack.run.until_ended("s") == "CREATE_COMPLETE"
    hook = await slack.hook()
    assert (hook["decided_by"], hook["channel"], hook["decision"]) == ("ada", "slack", "continue")
    _, log = await slack.run.call("GET", f"/hooks/{hook['id']}/decisions")
    assert log["decisions"][-1]["address"] == f"slack:{TEAM}/{ADA}"


async def test_a_click_rejects(slack: Slack) -> None:
    message = await waiting(slack)
    assert await slack.click(buttons(message)["reject"]) == 200
    assert "rejected by ada" in text((await slack.replies())[0])
    assert (await slack.hook())["decision"] == "reject"


async def test_a_wrong_signature_is_refused(slack: Slack) -> None:
    button = buttons(await waiting(slack))["continue"]
    payload = slack.payload(button)
    for wrong in ("v0=" + "0" * 64, ""):
        assert await slack.send(payload, signature=wrong) == 401
    body = urlencode({"payload": orjson.dumps(payload).decode()}).encode()
    assert await slack.post(body + b"&x=1", signed(body)) == 401
    assert (await slack.hook())["state"] == "waiting"


@pytest.mark.parametrize("seconds", [-310, 310])
async def test_an_old_or_future_time_is_refused(slack: Slack, seconds: int) -> None:
    button = buttons(await waiting(slack))["continue"]
    assert await slack.send(slack.payload(button), at=time.time() + seconds) == 401
    assert (await slack.hook())["state"] == "waiting"


async def test_a_copied_request_is_refused(slack: Slack) -> None:
    message = await waiting(slack, approvals=2)
    payload = slack.payload(buttons(message)["continue"])
    body = urlencode({"payload": orjson.dumps(payload).decode()}).encode()
    headers = signed(body)
    assert await slack.post(body, headers) == 200
    assert await slack.post(body, headers) == 401
    assert len(await slack.replies()) == 1


async def test_a_user_without_an_entry_is_refused_in_private(slack: Slack) -> None:
    button = buttons(await waiting(slack))["continue"]
    assert await slack.click(button, "U00MAL") == 200
    foreign = {"id": ADA, "team_id": "TOTHER"}
    payload = slack.payload(button) | {"user": foreign}
    assert await slack.send(payload) == 200
    replies = await slack.replies(2)
    refused = [one for one in replies if "belongs to no user of Headgate" in text(one)]
    assert len(refused) == 2
    assert all(one["response_type"] == "ephemeral" for one in refused)
    assert not any(one["replace_original"] for one in refused)


async def test_the_rules_of_the_hook_apply(slack: Slack) -> None:
    message = await waiting(slack, answer_by=["role:dba"])
    assert await slack.click(buttons(message)["continue"]) == 200
    (refused,) = await slack.replies()
    assert refused["response_type"] == "ephemeral"
    assert "only role:dba may answer it" in text(refused)
    assert (await slack.hook())["state"] == "waiting"
    assert await slack.click(buttons(message)["continue"], BOB) == 200
    assert "approved by bob" in text((await slack.replies(2))[1])


async def test_the_requester_is_excluded(slack: Slack) -> None:
    await slack.subscribe()
    environment = {"hooks": [HOOK | {"exclude": "requester"}]}
    sent = {
        "stack_name": "s",
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}},
        "environment": environment,
    }
    status, _ = await slack.run.call("POST", "/stacks", sent, headers={"X-Auth-User": "ada"})
    assert status == 201
    message = await slack.message()
    assert await slack.click(buttons(message)["continue"]) == 200
    assert "another principal must answer" in text((await slack.replies())[0])
    assert (await slack.hook())["state"] == "waiting"


async def test_several_approvals_keep_the_buttons(slack: Slack) -> None:
    message = await waiting(slack, approvals=2)
    button = buttons(message)["continue"]
    assert await slack.click(button, message=message) == 200
    (first,) = await slack.replies()
    assert text(first).startswith("s/a: pre-create approved by ada: 1 of 2 approvals")
    assert list(buttons(first)) == ["continue", "reject"]
    assert await slack.click(button, BOB, message=message) == 200
    assert "approved by bob, " in text((await slack.replies(2))[1])


async def test_a_hook_that_is_decided_shows_by_whom(slack: Slack) -> None:
    message = await waiting(slack)
    await slack.run.signal(await slack.hook(), user="dba")
    assert await slack.click(buttons(message)["reject"], message=message) == 200
    replaced, personal = await slack.replies(2)
    assert text(replaced).startswith("s/a: pre-create: answered, approved by dba, ")
    assert buttons(replaced) == {}
    assert "it was already answered: continue by dba" in text(personal)
    assert (await slack.hook())["decision"] == "continue"


async def test_a_hook_that_requires_data_has_a_link_in_place_of_approve(slack: Slack) -> None:
    message = await waiting(slack, ask={"schema": {"type": "object", "required": ["ticket"]}})
    assert list(buttons(message)) == ["reject"]
    forged = buttons(message)["reject"] | {"action_id": "continue"}
    assert await slack.click(forged) == 200
    (refused,) = await slack.replies()
    assert refused["response_type"] == "ephemeral"
    assert "/#/p/inbox/" in text(refused)
    assert (await slack.hook())["state"] == "waiting"


async def test_a_button_of_another_hook_is_refused(slack: Slack) -> None:
    """A user of a project sends a message with a button that Headgate has not made."""
    shown = buttons(await waiting(slack))["continue"]
    other = Http(slack.run.session, slack.run.url, "other")
    await other.create("s", {"a": resource()}, environment={"hooks": [HOOK]})
    (hook,) = await other.waiting_hooks("s")
    _, digest, token = shown["value"].split()
    for value in (f"{hook['id']} {hook['digest']} {token}", f"{hook['id']} {digest} {token}", "x"):
        assert await slack.click(shown | {"value": value}) == 200
    assert all("this button is not valid" in text(one) for one in await slack.replies(3))
    assert (await slack.hook("other"))["state"] == "waiting"


async def test_a_user_answers_in_the_listed_projects_only(slack: Slack) -> None:
    message = await waiting(slack)
    assert await slack.click(buttons(message)["continue"], EVE) == 200
    refused = text((await slack.replies())[0])
    assert "has no right to answer hooks of the project p" in refused
    assert (await slack.hook())["state"] == "waiting"


async def test_messages_go_to_the_hosts_of_slack_only(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    """The answer counts, but its message is not sent elsewhere."""
    async with slack_server(database_url, tmp_path, receiver) as slack:
        message = await waiting(slack)
        elsewhere = receiver.url.replace("127.0.0.1", "localhost") + "/actions/1"
        assert await slack.click(buttons(message)["continue"], response_url=elsewhere) == 200
        assert await slack.run.until_ended("s") == "CREATE_COMPLETE"
    assert not [one for one in receiver.received if one.path.startswith("/actions/")]


async def test_other_chats_get_no_buttons(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    hosts = {"channels.slack.hosts": ["hooks.slack.com"]}
    async with slack_server(database_url, tmp_path, receiver, **hosts) as slack:
        await slack.subscribe()
        await slack.run.create("s", {"a": resource()}, environment={"hooks": [HOOK]})
        received = await until(
            lambda: [one for one in receiver.received if b"waits for approval" in one.body]
        )
    assert buttons(received[0].event) == {}


async def test_the_response_does_not_wait_for_slack(slack: Slack) -> None:
    message = await waiting(slack)
    go = slack.receiver.respond_when_set()
    began = time.monotonic()
    assert await slack.click(buttons(message)["continue"]) == 200
    assert time.monotonic() - began < 3
    go.set()
    assert await slack.run.until_ended("s") == "CREATE_COMPLETE"


async def test_bodies_and_servers_without_slack(slack: Slack, postgres: TestServer) -> None:
    client = RecordingClient(slack.run.session, slack.run.url)
    for body, expected in ((b"payload=%7B%7D", 400), (b"x" * (MAX_BODY + 1), 413)):
        assert (await client.call("POST", PATH, data=body, headers=signed(body)))[0] == expected
    link = {"type": "block_actions", "actions": [{"action_id": "x", "url": "https://a.test"}]}
    body = urlencode({"payload": orjson.dumps(link).decode()}).encode()
    assert (await client.call("POST", PATH, data=body, headers=signed(body)))[0] == 200
    document = OpenApiDocument((await client.call("GET", "//openapi.json"))[1])
    assert [each for one in client.responses for each in document.differences(one)] == []
    assert document.exercised >= SLACK_ROUTES
    async with postgres.new_database() as database_url, program(database_url) as run:
        status, response = await run.call("POST", PATH, data=body, headers=signed(body))
        assert (status, response["error"]["place"]) == (404, "path")


async def test_in_mode_tokens_the_current_roles_of_the_user_apply(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    """ada: an account of every project. bob: a token of another project. eve: a name that has
    no account."""
    users = [{"id": ADA, "user": "ada@*"}, {"id": EVE, "user": "eve@*"}]
    modes = {"auth.mode": "tokens", "channels.slack.users": users}
    async with slack_server(database_url, tmp_path, receiver, **modes) as slack:
        admin = await token_client(slack.run, "admin", ["admin"])
        await slack.subscribe(admin)
        await insert_credential(slack.run.database, "p", "eve", ["approver"], password="x" * 12)
        ada = await password_client(slack.run, "ada", ["reader"], "*")
        await admin.create("s", {"a": resource()}, environment={"hooks": [HOOK]})
        button = buttons(await slack.message())["continue"]
        for user in (ADA, EVE):
            assert await slack.click(button, user) == 200
        for one in await slack.replies(2):
            assert "has no right to answer hooks of the project p" in text(one)
        await revoke(slack.run, ada.token_id)
        await insert_credential(slack.run.database, "*", "ada", ["approver"], password="y" * 12)
        assert await slack.click(button, ADA) == 200
        assert "approved by ada, " in text((await slack.replies(3))[2])
        assert await admin.until_ended("s") == "CREATE_COMPLETE"
        (hook,) = (await admin.call("GET", "/hooks"))[1]["hooks"]
        _, log = await admin.call("GET", f"/hooks/{hook['id']}/decisions")
        assert log["decisions"][-1]["principal"] == "account:*/ada"


async def revoke(run: Program, token_id: str) -> None:
    async with run.database.connection() as conn:
        await conn.execute("update token set revoked_at = now() where id = $1", token_id)


async def test_in_mode_tokens_a_user_can_be_a_token_of_its_project(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    earlier = [{"id": ADA, "user": "ada@*"}]
    modes: dict[str, Json] = {"auth.mode": "tokens", "channels.slack.users": earlier}
    async with slack_server(database_url, tmp_path, receiver, **modes) as slack:
        mine = await token_client(slack.run, "ada", ["operator"])
        other = await token_client(slack.run, "bob", ["operator"], "other")
    users = [{"id": ADA, "user": mine.token_id}, {"id": BOB, "user": other.token_id}]
    modes["channels.slack.users"] = users
    async with slack_server(database_url, tmp_path, receiver, **modes) as slack:
        mine.url = slack.run.url
        mine.session = slack.run.session
        await slack.subscribe(mine)
        await mine.create("s", {"a": resource()}, environment={"hooks": [HOOK]})
        button = buttons(await slack.message())["continue"]
        assert await slack.click(button, BOB) == 200
        assert "has no right to answer hooks of the project p" in text((await slack.replies())[0])
        assert await slack.click(button, ADA) == 200
        assert "approved by ada, " in text((await slack.replies(2))[1])
