"""Subscriptions and their deliveries."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import Field

from channels.contract import Delivered
from channels.digest import read_digest
from channels.quiet_hours import read_quiet_hours
from channels.selection import Selection
from channels.store import deliveries, secret_rotation, subscriptions
from channels.store.records import (
    DeliveryRecord,
    DeliveryState,
    NewSubscription,
    Origin,
    SubscriptionChange,
    SubscriptionRecord,
    SubscriptionState,
)
from engine.errors import Findings, Forbidden, Invalid
from engine.missing_objects import no_delivery, no_subscription
from engine.words import Json
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.headgate import responses
from hub.api.headgate.quotas import SUBSCRIPTIONS
from hub.api.openapi_components import document_of
from hub.api.query_parameters import choice, limit, marker
from hub.api.request_validation import (
    Body,
    channel_of,
    invalid,
    query_page_size,
    query_uuid,
    read_model,
    split_page,
    uuid_of,
)
from hub.api.routes import Route, json_response
from hub.auth.identity import Identity
from hub.auth.roles import Right

#: Items of a page.
PAGE_SIZE = 100
Globs = Annotated[list[Annotated[str, Field(min_length=1, max_length=255)]], Field(max_length=100)]


class CreateSubscription(Body):
    """A new subscription. An empty list selects everything.

    ordered: true by default, and false with quiet_hours or digest. digest: 15m, 1h, daily, or
    every, at and timezone."""

    channel: Annotated[str, Field(min_length=1, max_length=100)] = "webhook"
    target: Annotated[str, Field(min_length=1, max_length=2000)]
    events: Globs = Field(default_factory=list)
    stacks: Globs = Field(default_factory=list)
    resources: Globs = Field(default_factory=list)
    types: Globs = Field(default_factory=list)
    points: Globs = Field(default_factory=list)
    tags: Globs = Field(default_factory=list)
    nested: bool = True
    ordered: bool | None = None
    quiet_hours: dict[str, Json] | None = None
    digest: str | dict[str, Json] | None = None


class UpdateSubscription(Body):
    """Absent fields keep their values. quiet_hours, digest: null removes them."""

    target: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    events: Globs | None = None
    stacks: Globs | None = None
    resources: Globs | None = None
    types: Globs | None = None
    points: Globs | None = None
    tags: Globs | None = None
    nested: bool | None = None
    ordered: bool | None = None
    quiet_hours: dict[str, Json] | None = None
    digest: str | dict[str, Json] | None = None
    state: Literal["enabled", "disabled"] | None = None


class RedeliverRequest(Body):
    """Exactly one of: the ID of a delivery, the time of the first event, or the state ``dead``."""

    delivery: str | None = None
    since: str | None = None
    state: Literal["dead"] | None = None


def document(subscription: SubscriptionRecord) -> responses.Subscription:
    return document_of(responses.Subscription, subscription, subscription.selection)


def delivery_document(delivery: DeliveryRecord) -> responses.Delivery:
    return document_of(responses.Delivery, delivery)


async def create(request: web.Request) -> web.Response:
    identity = identity_of(request)
    new = await read_model(request, CreateSubscription)
    context, project = context_of(request), project_of(request)
    await channel_of(context, new.channel).check_target(new.target)
    at_once = new.quiet_hours is None and new.digest is None
    ordered = new.ordered if new.ordered is not None else at_once
    quiet_hours, digest = _schedule(new.quiet_hours, new.digest, new.channel, ordered=ordered)
    subscription_id, secret = context.new_id(), context.new_secret()
    async with context.database.transaction() as conn:
        row = await subscriptions.create(
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
                ordered=ordered,
                secret=secret,
                owner=identity.principal,
                quiet_hours=quiet_hours,
                digest=digest,
            ),
            identity.name,
        )
        await context.engine.quotas_of(project).check(conn, project, SUBSCRIPTIONS)
    created: responses.NewSubscription = {**document(row), "secret": secret}
    return json_response(created, 201)


async def list_subscriptions(request: web.Request) -> web.Response:
    context, project = context_of(request), project_of(request)
    page_size = query_page_size(request, PAGE_SIZE)
    marker = query_uuid(request, "marker")
    rows = await context.lists.page(
        lambda conn: subscriptions.list_page(conn, project, marker=marker, limit=page_size + 1)
    )
    page, last = split_page(rows, page_size)
    return json_response(
        responses.Subscriptions(
            subscriptions=[document(one) for one in page], next=str(last.id) if last else None
        )
    )


async def _read(request: web.Request) -> SubscriptionRecord:
    subscription_id = uuid_of(request.match_info["subscription"], no_subscription)
    async with context_of(request).database.connection() as conn:
        row = await subscriptions.get(conn, project_of(request), subscription_id)
    if row is None:
        raise no_subscription(subscription_id)
    return row


async def show(request: web.Request) -> web.Response:
    return json_response(document(await _read(request)))


def _check_changeable(
    subscription: SubscriptionRecord, who: Identity, *, only_state: bool = False
) -> None:
    """Subscriptions in the settings file cannot be changed here, because they answer hooks of
    operator rules. An operator of every project may disable them. Raises Forbidden."""
    if subscription.origin != Origin.CONFIGURATION:
        return
    if only_state and who.everywhere and who.may(Right.OPERATE):
        return
    raise Forbidden(
        "the subscription is declared in the settings file",
        remedy="Ask the operator to change it in [[subscriptions]].",
        code="Forbidden",
    )


async def change(request: web.Request) -> web.Response:
    """A change of the target or of the filters makes the caller the owner."""
    one, who = await _read(request), identity_of(request)
    body = await read_model(request, UpdateSubscription)
    only_state = body.model_fields_set <= {"state"}
    _check_changeable(one, who, only_state=only_state)
    context = context_of(request)
    if body.target is not None:
        await channel_of(context, one.channel).check_target(body.target)
    fields = body.model_dump(exclude_none=True)
    fields |= _schedule_change(body, one)
    if "state" in fields:
        fields["state"] = SubscriptionState(fields["state"])
    async with context.database.connection() as conn:
        updated = await subscriptions.update(
            conn,
            one.project,
            one.id,
            SubscriptionChange(**fields, owner=None if only_state else who.principal),
            who.name,
        )
    return json_response(document(updated or one))


def _schedule(quiet_hours: Json, digest: Json, channel: str, *, ordered: bool) -> tuple[Json, Json]:
    """Quiet hours and digest as they are stored. Raises Invalid."""
    findings = Findings()
    window = read_quiet_hours(quiet_hours, "quiet_hours", channel, findings, ordered=ordered)
    gathered = read_digest(digest, "digest", channel, findings, ordered=ordered)
    if findings.all:
        raise Invalid([replace(one, code="Invalid") for one in findings.all])
    return (
        window.as_section() if window else None,
        gathered.as_section() if gathered else None,
    )


def _schedule_change(body: UpdateSubscription, one: SubscriptionRecord) -> dict[str, Any]:
    """Fields of a `SubscriptionChange`. New quiet hours and digests end the order. Raises
    Invalid."""
    sets_hours = "quiet_hours" in body.model_fields_set
    sets_digest = "digest" in body.model_fields_set
    hours = body.quiet_hours if sets_hours else one.quiet_hours
    digest = body.digest if sets_digest else one.digest
    begins = (sets_hours and hours is not None) or (sets_digest and digest is not None)
    ordered = bool(body.ordered) if begins else body.ordered is True
    stored_hours, stored_digest = _schedule(hours, digest, one.channel, ordered=ordered)
    fields: dict[str, Any] = {}
    if sets_hours:
        fields |= {"quiet_hours": stored_hours, "sets_quiet_hours": True}
    if sets_digest:
        fields |= {"digest": stored_digest, "sets_digest": True}
    return fields | ({"ordered": False} if begins else {})


async def delete(request: web.Request) -> web.Response:
    one = await _read(request)
    _check_changeable(one, identity_of(request))
    async with context_of(request).database.connection() as conn:
        await subscriptions.delete(conn, one.project, one.id, identity_of(request).name)
    return web.Response(status=204)


async def test(request: web.Request) -> web.Response:
    """Send a test event and return the result."""
    one, context = await _read(request), context_of(request)
    outcome = await context.dispatcher.test_fire(one, context.new_id())
    if isinstance(outcome, Delivered):
        return json_response(
            responses.TestDelivered(delivered=True, code=outcome.code, response=outcome.response)
        )
    return json_response(
        responses.TestFailed(delivered=False, code=outcome.code, reason=outcome.reason)
    )


async def rotate(request: web.Request) -> web.Response:
    one, context = await _read(request), context_of(request)
    _check_changeable(one, identity_of(request))
    secret = context.new_secret()
    async with context.database.connection() as conn:
        await secret_rotation.rotate(conn, one.project, one.id, secret, identity_of(request).name)
    return json_response(responses.RotatedSecret(id=str(one.id), secret=secret))


async def list_deliveries(request: web.Request) -> web.Response:
    one = await _read(request)
    state, page_size = request.query.get("state"), query_page_size(request, PAGE_SIZE)
    marker = query_uuid(request, "marker")
    rows = await context_of(request).lists.page(
        lambda conn: deliveries.list_page(
            conn, one.id, state=state, marker=marker, limit=page_size + 1
        )
    )
    page, last = split_page(rows, page_size)
    return json_response(
        responses.Deliveries(
            deliveries=[delivery_document(each) for each in page],
            next=str(last.id) if last else None,
        )
    )


async def redeliver(request: web.Request) -> web.Response:
    one, context, by = await _read(request), context_of(request), identity_of(request).name
    body = await read_model(request, RedeliverRequest)
    if len(body.model_dump(exclude_none=True)) != 1:
        raise invalid(
            "", "exactly one of delivery, since and state is required", "See /openapi.json."
        )
    async with context.database.connection() as conn, conn.transaction():
        if body.delivery is not None:
            delivery_id = uuid_of(body.delivery, no_delivery)
            if not await deliveries.redeliver_one(conn, one.id, delivery_id):
                raise no_delivery(delivery_id)
            count = 1
        elif body.since is not None:
            since = _time(body.since)
            count = await deliveries.redeliver_since(
                conn, one.project, one.id, since, horizon=context.horizon
            )
        else:
            count = await deliveries.redeliver_dead(conn, one.id)
        await deliveries.record_redelivered(conn, one, count, by)
    return json_response(responses.Redelivery(redelivered=count), 202)


def _time(text: str) -> datetime:
    """In UTC; the first and last day of the calendar can be outside of it."""
    with suppress(ValueError, OverflowError):
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    raise invalid("since", f'"{text}" is not a valid time', "Write 2026-11-20T12:00:00Z.")


_P = "/v1/{project}/subscriptions"
_S = _P + "/{subscription}"
_PAGE = {"limit": limit(PAGE_SIZE), "marker": marker()}
_T = "subscriptions"
ROUTES = (
    Route("POST", _P, create, "Create a subscription; the response has its secret", _T,
          body=CreateSubscription, takes_body=True, status=201, response=responses.NewSubscription),
    Route("GET", _P, list_subscriptions, "List subscriptions", _T, query=_PAGE,
          response=responses.Subscriptions),
    Route("GET", _S, show, "Show a subscription", _T, response=responses.Subscription),
    Route("PATCH", _S, change, "Change, disable or enable a subscription", _T,
          body=UpdateSubscription, takes_body=True, response=responses.Subscription),
    Route("DELETE", _S, delete, "Delete a subscription and its deliveries", _T, status=204),
    Route("POST", f"{_S}/test", test, "Send a test event now", _T,
          response=responses.TestDelivered | responses.TestFailed),
    Route("POST", f"{_S}/rotate", rotate, "Rotate the signing secret", _T,
          response=responses.RotatedSecret),
    Route("GET", f"{_S}/deliveries", list_deliveries, "List deliveries, newest first", _T,
          query=_PAGE | {"state": choice("only deliveries in this state", list(DeliveryState))},
          response=responses.Deliveries),
    Route("POST", f"{_S}/redeliver", redeliver, "Deliver events again", _T, body=RedeliverRequest,
          takes_body=True, status=202, response=responses.Redelivery),
)  # fmt: skip
