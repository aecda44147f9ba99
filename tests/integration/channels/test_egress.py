"""The networks that webhooks may reach: more for subscriptions of the settings. Refusals do not
reveal internal addresses.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_network
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from channels.contract import Delivered, Endpoint, EventMessage, Failed
from channels.webhook.client import WebhookChannel, WebhookSettings
from channels.webhook.sign import secret_of
from engine.errors import Invalid
from engine.types.http_client import NoResponse, Request
from hub.http.outbound import Outbound, OutboundSettings
from tests.support.ports import free_port
from tests.support.program import program, resource, template
from tests.support.receiver import running_receiver, until

LOOPBACK = (ip_network("127.0.0.0/8"),)
SECRET = secret_of(bytes(24))
MESSAGE = EventMessage("an-id", "headgate.hook.waiting", {}, datetime(2026, 1, 2, tzinfo=UTC))


def endpoint(target: str, *, configured: bool) -> Endpoint:
    return Endpoint(UUID(int=1), target, (SECRET,), configured)


async def inner(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@pytest.mark.parametrize("host", ["127.0.0.1", "policy.internal"])
async def test_only_subscriptions_in_the_settings_reach_networks_of_the_operator(
    host: str,
) -> None:
    settings = WebhookSettings(operator_allow=LOOPBACK)
    async with running_receiver() as receiver, WebhookChannel(settings, lookup=inner) as channel:
        target = f"http://{host}:{receiver.url.rpartition(':')[2]}"
        for _ in range(2):  # also while the operator's connection is open
            result = await channel.deliver(MESSAGE, endpoint(target, configured=True))
            assert isinstance(result, Delivered), result
            refused = await channel.deliver(MESSAGE, endpoint(target, configured=False))
            assert isinstance(refused, Failed) and "may not be reached" in refused.reason
        assert len(receiver.received) == 2
        with pytest.raises(Invalid):
            await channel.check_target(target)


async def test_subscriptions_of_projects_cannot_reach_the_operators_networks(
    database_url: str,
) -> None:
    async with running_receiver() as receiver:
        settings = {
            "channels.webhook.allow": [],
            "channels.webhook.operator_allow": ["127.0.0.0/8"],
            "subscriptions": [{"project": "*", "target": receiver.url, "events": ["*.create*"]}],
        }
        async with program(database_url, settings) as run:
            body = {"stack_name": "s", "template": template({"a": resource()})}
            sinks = {"event_sinks": [{"type": "webhook", "target": receiver.url}]}
            status, response = await run.call("POST", "/stacks", {**body, "environment": sinks})
            assert status == 400 and "may not be reached" in response["error"]["message"]
            wanted = {"channel": "webhook", "target": receiver.url}
            status, response = await run.call("POST", "/subscriptions", wanted)
            assert status == 400 and response["error"]["type"] == "InvalidTarget"
            assert (await run.call("POST", "/stacks", body))[0] == 201
            await until(lambda: len(receiver.received) > 0)


async def test_a_refusal_does_not_contain_internal_addresses() -> None:
    port = free_port()
    target = f"http://vm.internal:{port}/"
    errors = []
    with capture_logs() as logs:
        async with WebhookChannel(WebhookSettings(), lookup=inner) as channel:
            with pytest.raises(Invalid) as caught:
                await channel.check_target(target)
            errors.append(str(caught.value))
            refused = await channel.deliver(MESSAGE, endpoint(target, configured=False))
            assert isinstance(refused, Failed)
            errors.append(refused.reason)
        async with Outbound(OutboundSettings(), lookup=inner) as web:
            with pytest.raises(NoResponse) as unanswered:
                await web.send(Request("GET", target))
            errors.append(str(unanswered.value))
    for text in errors:
        assert "not allowed" in text and "127.0.0" not in text and "loopback" not in text, text
    assert [one["address"] for one in logs if one["event"] == "egress.refused"] == ["127.0.0.1"] * 3


async def test_a_failed_connection_to_an_allowed_network_does_not_contain_addresses() -> None:
    port = free_port()
    target = f"http://vm.internal:{port}/"
    async with WebhookChannel(WebhookSettings(allow=LOOPBACK), lookup=inner) as channel:
        failed = await channel.deliver(MESSAGE, endpoint(target, configured=False))
    assert isinstance(failed, Failed)
    assert failed.reason == f"no connection to vm.internal:{port}: Connection refused"
