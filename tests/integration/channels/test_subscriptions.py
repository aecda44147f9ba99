"""Stored subscriptions."""

from dataclasses import replace
from uuid import UUID, uuid4

from channels.selection import Selection
from channels.store import secret_rotation, subscriptions
from channels.store.publish import publish
from channels.store.records import (
    NewSubscription,
    Origin,
    SubscriptionChange,
    SubscriptionState,
)
from channels.store.subscriptions import configure
from engine.store.database import Database
from tests.support.engine_rows import EngineRows, resource_event


def new_subscription(target: str, project: str = "demo") -> NewSubscription:
    return NewSubscription(
        id=uuid4(), project=project, channel="webhook", target=target, selection=Selection(),
        ordered=True, secret="whsec_a", origin=Origin.CONFIGURATION,
    )  # fmt: skip


async def test_create_read_and_delete(engine_rows: EngineRows, database: Database) -> None:
    chosen = await engine_rows.subscription(
        "https://a.test/", events=["x.*"], points=["pre-create"]
    )
    stack = await engine_rows.stack()
    await engine_rows.record(stack, resource_event("a"))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    async with database.connection() as conn:
        read = await subscriptions.get(conn, "demo", chosen.id)
        assert read is not None
        assert (read.target, read.selection, read.state) == (
            chosen.target,
            Selection(
                events=["x.*"], stacks=[], resources=[], types=[], points=["pre-create"], tags=[]
            ),
            "enabled",
        )
        assert "whsec" not in str(read)
        assert await subscriptions.get(conn, "other", chosen.id) is None
        assert not await subscriptions.delete(conn, "other", chosen.id, "ann")
        assert await subscriptions.delete(conn, "demo", chosen.id, "ann")
        assert await subscriptions.get(conn, "demo", chosen.id) is None
    assert await engine_rows.deliveries() == []


async def test_pages(engine_rows: EngineRows, database: Database) -> None:
    ids = [(await engine_rows.subscription("https://a.test/")).id for _ in range(5)]
    await engine_rows.subscription("https://a.test/", project="other")
    seen: list[UUID] = []
    async with database.connection() as conn:
        while page := await subscriptions.list_page(
            conn, "demo", marker=seen[-1] if seen else None, limit=2
        ):
            seen += [one.id for one in page]
    assert seen == ids


async def test_a_change_keeps_other_values(engine_rows: EngineRows, database: Database) -> None:
    chosen = await engine_rows.subscription("https://a.test/", events=["a"], stacks=["b"])
    async with database.connection() as conn:
        change = SubscriptionChange(events=[], state=SubscriptionState.DISABLED)
        changed = await subscriptions.update(conn, "demo", chosen.id, change, "ann")
        assert changed is not None
        assert (changed.selection.events, changed.selection.stacks) == ([], ["b"])
        assert (changed.state, changed.reason) == ("disabled", "disabled on request")
        assert await subscriptions.get(conn, "demo", chosen.id) == changed
        assert await subscriptions.update(conn, "other", chosen.id, change, "ann") is None
        back = await subscriptions.update(
            conn, "demo", chosen.id, SubscriptionChange(state=SubscriptionState.ENABLED), "ann"
        )
        assert back == replace(changed, state="enabled", reason="")


async def test_disabling_order_releases_all_deliveries(
    engine_rows: EngineRows, database: Database
) -> None:
    chosen = await engine_rows.subscription("https://a.test/")
    stack = await engine_rows.stack()
    await engine_rows.record(stack, *(resource_event(f"r{number}") for number in range(4)))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    assert sum(row["next_at"] is not None for row in await engine_rows.deliveries()) == 1
    async with database.connection() as conn:
        await subscriptions.update(
            conn, "demo", chosen.id, SubscriptionChange(ordered=False), "ann"
        )
    assert all(row["next_at"] is not None for row in await engine_rows.deliveries())


async def test_a_rotation_ends(engine_rows: EngineRows, database: Database) -> None:
    chosen = await engine_rows.subscription("https://a.test/")
    async with database.connection() as conn:
        assert not await secret_rotation.rotate(conn, "other", chosen.id, "new", "ann")
        for secret in ("new", "newer"):
            assert await secret_rotation.rotate(conn, "demo", chosen.id, secret, "ann")
        found = await secret_rotation.secrets_now(conn, chosen.id)
        assert found is not None
        assert found[0] == ("newer", "new")
        await conn.execute("update subscription set rotated_at = now() - interval '25 hours'")
        found = await secret_rotation.secrets_now(conn, chosen.id)
        assert found is not None
        assert found[0] == ("newer",)


async def test_the_settings_file_replaces_configured_subscriptions(
    engine_rows: EngineRows, database: Database
) -> None:
    by_api = await engine_rows.subscription("https://a.test/")
    one, two = new_subscription("https://one.test/"), new_subscription("https://two.test/", "*")
    async with database.connection() as conn:
        await configure(conn, [one, two])
        await secret_rotation.rotate(conn, "*", two.id, "whsec_new", "ann")
        await configure(conn, [replace(two, target="https://2.test/")])
        rows = await conn.fetch("select id, target, secrets from subscription order by target")
    assert [(row["id"], row["target"]) for row in rows] == [
        (two.id, "https://2.test/"), (by_api.id, "https://a.test/"),
    ]  # fmt: skip
    secrets = subscriptions.decrypted_secrets(rows[0]["secrets"], "*", two.id)
    assert secrets == ("whsec_a",)


async def test_filter_by_tags_of_the_stack(engine_rows: EngineRows, database: Database) -> None:
    wanted = await engine_rows.subscription("https://a.test/", tags=["prod*"])
    await engine_rows.subscription("https://b.test/", tags=["test"])
    plain, tagged = await engine_rows.stack(), await engine_rows.stack()
    async with database.connection() as conn:
        await conn.execute("update stack set tags = '{a,prod-1}' where id = $1", tagged.id)
    await engine_rows.record(plain, resource_event("a"))
    await engine_rows.record(tagged, resource_event("a"))
    await publish(database, horizon=lambda _: 1.0, limit=10)
    (one,) = await engine_rows.deliveries()
    assert (one["stack_id"], one["subscription_id"]) == (tagged.id, wanted.id)


async def test_a_change_of_tags_keeps_other_values(
    engine_rows: EngineRows, database: Database
) -> None:
    subscription = await engine_rows.subscription("https://a.test/", tags=["prod"], events=["x"])
    async with database.connection() as conn:
        now = await subscriptions.update(
            conn, "demo", subscription.id, SubscriptionChange(tags=["q"]), "ann"
        )
    assert now is not None
    assert (now.selection.tags, now.selection.events) == (["q"], ["x"])
