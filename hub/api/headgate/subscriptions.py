"""Subscriptions: who wants which events; and their deliveries."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field

from channels.contract import Delivered
from channels.envelope import rfc3339
from channels.selection import Selection
from channels.store import deliveries, subscriptions
from channels.store.records import (
    DeliveryRecord,
    DeliveryState,
    NewSubscription,
    Origin,
    SubscriptionChange,
    SubscriptionRecord,
    SubscriptionState,
)
from engine.errors import Forbidden, NotFound
from hub.api.bodies import Body, read
from hub.api.headgate import responses
from hub.api.headgate.quotas import SUBSCRIPTIONS
from hub.api.parts import (
    Route,
    answer,
    channel_of,
    identity_of,
    invalid,
    parts_of,
    project_of,
    query_limit,
    query_uuid,
    uuid_of,
)
from hub.auth.identity import Identity
from hub.auth.roles import Right

Globs = Annotated[list[Annotated[str, Field(min_length=1, max_length=255)]], Field(max_length=100)]


class CreateSubscription(Body):
    """A new subscription. An empty list takes everything."""

    channel: Annotated[str, Field(min_length=1, max_length=100)] = "webhook"
    target: Annotated[str, Field(min_length=1, max_length=2000)]
    events: Globs = Field(default_factory=list)
    stacks: Globs = Field(default_factory=list)
    resources: Globs = Field(default_factory=list)
    types: Globs = Field(default_factory=list)
    points: Globs = Field(default_factory=list)
    tags: Globs = Field(default_factory=list)
    nested: bool = True
    ordered: bool = True


class UpdateSubscription(Body):
    """What is to change; what is left out stays."""

    target: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    events: Globs | None = None
    stacks: Globs | None = None
    resources: Globs | None = None
    types: Globs | None = None
    points: Globs | None = None
    tags: Globs | None = None
    nested: bool | None = None
    ordered: bool | None = None
    state: Literal["enabled", "disabled"] | None = None


class RedeliverRequest(Body):
    """Exactly one of: a delivery's id, a time since which everything missed, or ``dead``."""

    delivery: str | None = None
    since: str | None = None
    state: Literal["dead"] | None = None


def document(one: SubscriptionRecord) -> responses.Subscription:
    chosen = one.selection
    return {
        "id": str(one.id),
        "channel": one.channel,
        "target": one.target,
        "events": list(chosen.events),
        "stacks": list(chosen.stacks),
        "resources": list(chosen.resources),
        "types": list(chosen.types),
        "points": list(chosen.points),
        "tags": list(chosen.tags),
        "nested": chosen.nested,
        "ordered": one.ordered,
        "state": one.state,
        "reason": one.reason,
        "origin": one.origin,
        "name": one.name,
        "owner": one.owner,
        "stack_id": str(chosen.stack_id) if chosen.stack_id else None,
        "failures": one.failures,
        "created_at": rfc3339(one.created_at),
    }


def delivery_document(one: DeliveryRecord) -> responses.Delivery:
    return {
        "id": str(one.id),
        "stack_id": str(one.stack_id),
        "sequence": one.sequence,
        "event_id": str(one.event_id),
        "type": one.type,
        "state": one.state,
        "attempts": one.attempts,
        "next_at": rfc3339(one.next_at) if one.next_at else None,
        "code": one.code,
        "error": one.error,
        "answer": one.answer,
        "created_at": rfc3339(one.created_at),
        "settled_at": rfc3339(one.settled_at) if one.settled_at else None,
    }


async def create(request: web.Request) -> web.Response:
    identity = identity_of(request)
    new = await read(request, CreateSubscription)
    parts, project = parts_of(request), project_of(request)
    await channel_of(parts, new.channel).check_target(new.target)
    subscription_id, secret = parts.new_id(), parts.new_secret()
    async with parts.database.transaction() as conn:
        made = await subscriptions.create(
            conn,
            NewSubscription(
                id=subscription_id,
                project=project,
                channel=new.channel,
                target=new.target,
                selection=Selection(
                    new.events,
                    new.stacks,
                    new.resources,
                    new.types,
                    new.points,
                    new.tags,
                    nested=new.nested,
                ),
                ordered=new.ordered,
                secret=secret,
                owner=identity.principal,
            ),
            identity.name,
        )
        await parts.engine.quotas_of(project).check(conn, project, SUBSCRIPTIONS)
    shown: responses.NewSubscription = {**document(made), "secret": secret}
    return answer(shown, 201)


async def listed(request: web.Request) -> web.Response:
    parts, project = parts_of(request), project_of(request)
    limit = query_limit(request, default=100) or 100
    async with parts.database.connection() as conn:
        found = await subscriptions.list_page(
            conn, project, marker=query_uuid(request, "marker"), limit=limit + 1
        )
    following = str(found[limit - 1].id) if len(found) > limit else None
    return answer(
        responses.Subscriptions(
            subscriptions=[document(one) for one in found[:limit]], next=following
        )
    )


async def _one(request: web.Request) -> SubscriptionRecord:
    subscription_id = uuid_of(
        request.match_info["subscription"], "subscription", "SubscriptionNotFound"
    )
    async with parts_of(request).database.connection() as conn:
        found = await subscriptions.get(conn, project_of(request), subscription_id)
    if found is None:
        reason = f"there is no subscription {subscription_id}"
        raise NotFound(reason, code="SubscriptionNotFound")
    return found


async def shown(request: web.Request) -> web.Response:
    return answer(document(await _one(request)))


def _check_changeable(one: SubscriptionRecord, who: Identity, *, only_state: bool = False) -> None:
    """What the server's settings say is not a project's to change: its answers open the operator's
    rules. An operator of every project may pause it. Raises Forbidden."""
    if one.origin != Origin.CONFIGURATION:
        return
    if only_state and who.everywhere and who.may(Right.OPERATE):
        return
    raise Forbidden(
        "the subscription is of the server's settings",
        remedy="Ask the operator to change it in [[subscriptions]].",
        code="Forbidden",
    )


async def change(request: web.Request) -> web.Response:
    """Who changes where it goes or what it hears answers for it from then on."""
    one, who = await _one(request), identity_of(request)
    said = await read(request, UpdateSubscription)
    only_state = said.model_fields_set <= {"state"}
    _check_changeable(one, who, only_state=only_state)
    parts = parts_of(request)
    if said.target is not None:
        await channel_of(parts, one.channel).check_target(said.target)
    fields = said.model_dump(exclude_none=True)
    if "state" in fields:
        fields["state"] = SubscriptionState(fields["state"])
    async with parts.database.connection() as conn:
        now = await subscriptions.update(
            conn,
            one.project,
            one.id,
            SubscriptionChange(**fields, owner=None if only_state else who.principal),
            who.name,
        )
    return answer(document(now or one))


async def delete(request: web.Request) -> web.Response:
    one = await _one(request)
    _check_changeable(one, identity_of(request))
    async with parts_of(request).database.connection() as conn:
        await subscriptions.delete(conn, one.project, one.id, identity_of(request).name)
    return web.Response(status=204)


async def test(request: web.Request) -> web.Response:
    """Send one event that means nothing, now, and say what came of it."""
    one, parts = await _one(request), parts_of(request)
    outcome = await parts.dispatcher.test_fire(one, parts.new_id())
    if isinstance(outcome, Delivered):
        return answer(
            responses.TestDelivered(delivered=True, code=outcome.code, answer=outcome.answer)
        )
    return answer(responses.TestFailed(delivered=False, code=outcome.code, reason=outcome.reason))


async def rotate(request: web.Request) -> web.Response:
    one, parts = await _one(request), parts_of(request)
    _check_changeable(one, identity_of(request))
    secret = parts.new_secret()
    async with parts.database.connection() as conn:
        await subscriptions.rotate(conn, one.project, one.id, secret, identity_of(request).name)
    return answer(responses.RotatedSecret(id=str(one.id), secret=secret))


async def delivered(request: web.Request) -> web.Response:
    one = await _one(request)
    state = request.query.get("state")
    known = [each.value for each in DeliveryState]
    if state is not None and state not in known:
        raise invalid("state", f'"{state}" is not known', f"Known: {', '.join(known)}.")
    limit = query_limit(request, default=100) or 100
    async with parts_of(request).database.connection() as conn:
        found = await deliveries.list_page(
            conn, one.id, state=state, marker=query_uuid(request, "marker"), limit=limit + 1
        )
    following = str(found[limit - 1].id) if len(found) > limit else None
    return answer(
        responses.Deliveries(
            deliveries=[delivery_document(each) for each in found[:limit]], next=following
        )
    )


async def redeliver(request: web.Request) -> web.Response:
    one, parts, by = await _one(request), parts_of(request), identity_of(request).name
    said = await read(request, RedeliverRequest)
    asked = [name for name, value in said.model_dump().items() if value is not None]
    if len(asked) != 1:
        raise invalid(
            "", "exactly one of delivery, since and state is required", "See /openapi.json."
        )
    async with parts.database.connection() as conn, conn.transaction():
        if said.delivery is not None:
            wanted = uuid_of(said.delivery, "delivery", "DeliveryNotFound")
            if not await deliveries.redeliver_one(conn, one.id, wanted):
                raise NotFound(f"there is no delivery {wanted}", code="DeliveryNotFound")
            count = 1
        elif said.since is not None:
            since = _time(said.since)
            count = await deliveries.redeliver_since(
                conn, one.project, one.id, since, horizon=parts.horizon
            )
        else:
            count = await deliveries.redeliver_dead(conn, one.id)
        await deliveries.record_redelivered(conn, one, count, by)
    return answer(responses.Redelivered(redelivered=count), 202)


def _time(text: str) -> datetime:
    """In UTC, where the first and the last day of a calendar elsewhere may not be."""
    with suppress(ValueError, OverflowError):
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    raise invalid("since", f'"{text}" is not a valid time', "Write 2026-11-20T12:00:00Z.")


_P = "/v1/{project}/subscriptions"
_S = _P + "/{subscription}"
_PAGE = {"limit": "maximum number of items; default 100", "marker": "`next` of the page before"}
_T = "subscriptions"
ROUTES = (
    Route("POST", _P, create, "Subscribe; the secret is shown this once", _T,
          body=CreateSubscription, takes_body=True, status=201, response=responses.NewSubscription),
    Route("GET", _P, listed, "List subscriptions", _T, query=_PAGE,
          response=responses.Subscriptions),
    Route("GET", _S, shown, "Show a subscription", _T, response=responses.Subscription),
    Route("PATCH", _S, change, "Change, pause or enable a subscription", _T,
          body=UpdateSubscription, takes_body=True, response=responses.Subscription),
    Route("DELETE", _S, delete, "Forget a subscription and its deliveries", _T, status=204),
    Route("POST", f"{_S}/test", test, "Send a test event now", _T,
          response=responses.TestDelivered | responses.TestFailed),
    Route("POST", f"{_S}/rotate", rotate, "Rotate the signing secret", _T,
          response=responses.RotatedSecret),
    Route("GET", f"{_S}/deliveries", delivered, "Deliveries, newest first", _T,
          query=_PAGE | {"state": "pending, delivered or dead"}, response=responses.Deliveries),
    Route("POST", f"{_S}/redeliver", redeliver, "Deliver again", _T, body=RedeliverRequest,
          takes_body=True, status=202, response=responses.Redelivered),
)  # fmt: skip
