"""Drift in the dashboard: the badge in the graph, the difference beside the node, and the answer."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.browser.inbox import card, hook_rule, inbox_of
from tests.browser.test_stack import expect_state, node
from tests.support.changes import observed
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.postgres import TestServer
from tests.support.program import Http, Json, Program, eventually, program, template

Visit = Callable[..., Any]
SETTINGS = HTTP_SETTINGS | {"hooks.watch_every": "1s"}
HOLD = {"convergence": {"observe": {"every": "1h"}, "on_drift": "hold"}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def drifting(postgres: TestServer) -> AsyncIterator[Program]:
    """A server with resources that can drift."""
    async with postgres.new_database() as url, program(url, SETTINGS) as run:
        yield run


@pytest_asyncio.fixture(loop_scope="session")
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture
def project(drifting: Program, request: pytest.FixtureRequest) -> Http:
    """A project of the test's own."""
    return Http(drifting.session, drifting.url, request.node.name[:60])


async def create(http: Http, things: Things, environment: Json = None) -> str:
    resources = {"a": thing(things, 1), "b": thing(things, 2)}
    stack_id = await http.create("web", resources, environment=environment or {})
    assert await http.until_ended("web") == "CREATE_COMPLETE"
    return stack_id


async def physical_id(http: Http, name: str) -> str:
    return str((await http.resources("web"))[name]["physical_resource_id"])


async def test_drift_is_shown_on_its_node_and_repaired_by_an_answer(
    visit: Visit, project: Http, things: Things
) -> None:
    stack_id = await create(project, things, HOLD)
    ann = await inbox_of(visit, project, "ann")
    await expect(ann.page.get_by_text("live", exact=True)).to_be_visible()
    bob = await visit(project, viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page = await bob.open("stack", "web", stack_id)
    await expect_state(page, "a", "a, create, done$")
    badges = page.locator(".graph-drift:visible")
    await expect(badges).to_have_count(0)

    changed = await physical_id(project, "a")
    things.objects[changed]["size"] = 5
    await observed(project, "web")
    # The badge, the panel and the table, without a reload.
    await expect_state(page, "a", "a, create, done, drift: changed$")
    await expect_state(page, "b", "b, create, done$")
    await expect(badges).to_have_text(["drift: changed"])
    await node(page, "a").click()
    panel = page.get_by_role("complementary", name="a")
    await expect(panel.get_by_role("heading", name="Drift", exact=True)).to_be_visible()
    await expect(panel.get_by_text("The resource has changed. First observed")).to_be_visible()
    difference = panel.locator("dt", has_text="$.size").first.locator("+ dd")
    await expect(difference).to_have_text("1 → 5")
    assert await bob.violations() == []
    await page.get_by_role("button", name="Resources", exact=True).click()
    row = page.get_by_role("row").filter(has=page.get_by_role("button", name="a", exact=True))
    await expect(row.get_by_text("drift: changed")).to_be_visible()
    await page.get_by_role("button", name="Graph", exact=True).click()

    # The card in the inbox: what differs, and what a repair changes.
    row = card(ann.page, "a to repair drift")
    await expect(row.get_by_text("The resource has changed.")).to_be_visible()
    await expect(row.locator("dl.changes")).to_contain_text("5 → 1")
    assert await ann.violations() == []
    await row.get_by_label("Reason").fill("changed by mistake")
    await expect(row.get_by_role("button", name="Continue")).to_have_count(0)
    await row.get_by_role("button", name="Repair", exact=True).click()
    await expect(row.get_by_text("ann approved the repair.").first).to_be_visible()

    async def is_repaired() -> bool:
        return bool(things.objects[changed]["size"] == 1)

    await eventually(is_repaired)
    await expect_state(page, "a", "a, update, done$")
    await expect(badges).to_have_count(0)


async def test_a_group_shows_that_something_in_it_differs(
    visit: Visit, project: Http, things: Things
) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 2, "resource_def": thing(things, 1)},
    }
    stack_id = await project.create(
        "web", {"group": group, "b": thing(things, 2)}, environment=HOLD
    )
    assert await project.until_ended("web") == "CREATE_COMPLETE"
    bob = await visit(project, viewport={"width": 1280, "height": 800})
    page = await bob.open("stack", "web", stack_id)
    await expect_state(page, "group", "group, create, done; nested: 2 done$")
    changed = next(one for one in things.objects.values() if one["size"] == 1)
    changed["size"] = 5
    await observed(project, "web")
    await expect_state(page, "group", "group, create, done, drift: degraded")
    await expect_state(page, "b", "b, create, done$")
    await expect(page.locator(".graph-drift:visible")).to_have_text(["drift: degraded"])
    await node(page, "group").click()
    panel = page.get_by_role("complementary", name="group")
    await expect(panel.get_by_role("heading", name="Drift", exact=True)).to_be_visible()
    assert await bob.violations() == []

    changed["size"] = 1
    await observed(project, "web")
    await expect_state(page, "group", "group, create, done; nested: 2 done$")
    await expect(page.locator(".graph-drift:visible")).to_have_count(0)


async def test_observed_values_are_adopted_by_a_button(
    visit: Visit, project: Http, things: Things
) -> None:
    stack_id = await create(project, things, HOLD)
    ann = await inbox_of(visit, project, "ann")
    changed = await physical_id(project, "a")
    things.objects[changed]["size"] = 5
    await observed(project, "web")
    row = card(ann.page, "a to repair drift")
    adopt = row.get_by_role("button", name="Adopt observed values")
    await expect(adopt).to_be_visible()
    assert await ann.violations() == []
    await adopt.click()
    await expect(row.get_by_text("ann adopted the observed values.").first).to_be_visible()
    drift = await project.stack_request("GET", "web", "/drift")
    (one,) = drift["adopted"]
    assert (one["resource_path"], one["path"], one["value"]) == ("a", "$.size", 5)
    assert things.objects[changed]["size"] == 5
    # The plan of an update says that the value stays.
    editor = await visit(project, viewport={"width": 1280, "height": 800})
    page = await editor.open("edit", "web", stack_id)
    values = page.get_by_role("region", name="Adopted values")
    await expect(values.get_by_role("listitem")).to_contain_text("a.size: 5")
    await expect(values.get_by_role("listitem")).to_contain_text("the template says 1")
    # A missing resource has no values to adopt.
    del things.objects[await physical_id(project, "b")]
    await observed(project, "web")
    row = card(ann.page, "b to repair drift")
    await expect(row.get_by_role("button", name="Repair", exact=True)).to_be_visible()
    await expect(row.get_by_role("button", name="Adopt observed values")).to_have_count(0)


async def test_a_value_that_was_removed_is_shown_and_cannot_be_adopted(
    visit: Visit, project: Http, things: Things
) -> None:
    await create(project, things, HOLD)
    ann = await inbox_of(visit, project, "ann")
    changed = await physical_id(project, "a")
    del things.objects[changed]["size"]
    await observed(project, "web")
    row = card(ann.page, "a to repair drift")
    text = "The resource has changed: the response has no value at $.size."
    await expect(row.get_by_text(text)).to_be_visible()
    await expect(row.locator("dl.changes")).to_contain_text("null → 1")
    await expect(row.get_by_role("button", name="Adopt observed values")).to_have_count(0)
    assert await ann.violations() == []
    await row.get_by_role("button", name="Repair", exact=True).click()

    async def is_repaired() -> bool:
        return things.objects[changed].get("size") == 1

    await eventually(is_repaired)


async def test_drift_is_ignored_for_a_time(visit: Visit, project: Http, things: Things) -> None:
    await create(project, things, HOLD)
    ann = await inbox_of(visit, project, "ann")
    things.objects[await physical_id(project, "a")]["size"] = 5
    await observed(project, "web")
    row = card(ann.page, "a to repair drift")
    await row.get_by_role("button", name="Reject…").click()
    await expect(row.get_by_text("The resource stays as it is.")).to_be_visible()
    await row.get_by_role("button", name="Ignore for a time…").click()
    assert await ann.violations() == []
    send = row.get_by_role("button", name="Ignore drift")
    await send.click()
    await expect(row.get_by_text("Enter a duration")).to_be_visible()
    # What the server refuses is shown at the field, too.
    await row.get_by_label("Time", exact=True).fill("400d")
    await send.click()
    await expect(row.get_by_text("is longer than 366 days")).to_be_visible()
    await row.get_by_label("Time", exact=True).fill("2h")
    await send.click()
    await expect(row.get_by_text("ann ignored the drift for a time.").first).to_be_visible()
    log = await project.stack_request("GET", "web", "/decisions")
    assert [(one["kind"], one["data"]) for one in log["decisions"]] == [("ignore", {"for": "2h"})]


async def test_a_missing_resource_is_shown_when_the_page_is_opened(
    visit: Visit, project: Http, things: Things
) -> None:
    stack_id = await create(project, things)
    del things.objects[await physical_id(project, "b")]
    await observed(project, "web")
    visitor = await visit(project, viewport={"width": 360, "height": 740})
    page = await visitor.open("stack", "web", stack_id)
    await expect_state(page, "b", re.escape("b, create, done, drift: missing") + "$")
    assert await visitor.violations() == []


@pytest.mark.parametrize("width", [360, 1280])
async def test_the_plan_of_a_converge_is_shown_and_applied(
    visit: Visit, project: Http, things: Things, width: int
) -> None:
    stack_id = await create(project, things, hook_rule(on="pre-update"))
    changed, gone = await physical_id(project, "a"), await physical_id(project, "b")
    things.objects[changed]["size"] = 5
    await observed(project, "web")
    visitor = await visit(project, viewport={"width": width, "height": 800})
    page = await visitor.open("stack", "web", stack_id)
    await expect_state(page, "a", "a, create, done, drift: changed")
    drift = page.get_by_role("region", name="Drift", exact=True)
    await expect(drift.get_by_role("listitem")).to_have_text(["a drift: changed"])
    await drift.get_by_role("button", name="Show plan").click()
    dialog = page.get_by_role("dialog", name="Plan of a converge")
    await expect(dialog.get_by_role("status")).to_have_text("1 updated, 1 unchanged.")
    await expect(dialog.locator("dl.changes")).to_contain_text("5 → 1")
    await expect(dialog.get_by_role("region", name="Breakpoints")).to_contain_text("pre-update a")
    await expect(dialog.get_by_role("button", name="Skip")).to_have_count(0)
    assert await visitor.violations() == []
    box = await dialog.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width

    # What the plan does not say is not applied: the new plan is shown instead.
    del things.objects[gone]
    converge = dialog.get_by_role("button", name="Converge")
    await converge.click()
    await expect(dialog.get_by_role("alert")).to_contain_text("the plan has changed")
    await expect(dialog.get_by_role("status")).to_have_text("1 replaced, 1 updated.")
    assert gone not in things.objects and await physical_id(project, "b") == gone
    await expect(converge).to_be_enabled()
    await converge.click()
    await expect(dialog).to_have_count(0)
    (hook,) = await project.waiting_hooks("web")
    assert (hook["resource_name"], hook["point"]) == ("a", "pre-update")
    await project.signal(hook)
    assert await project.until_ended("web") == "UPDATE_COMPLETE"
    assert things.objects[changed]["size"] == 1
    await expect(drift).to_have_count(0)


async def test_the_plan_lists_what_a_converge_cannot_repair(
    visit: Visit, project: Http, things: Things
) -> None:
    away = thing(things, 2, listed=False, check={"url": "/things/${id}?fault=503"})
    stack_id = await project.create("web", {"a": thing(things, 1), "b": away})
    assert await project.until_ended("web") == "CREATE_COMPLETE"
    del things.objects[await physical_id(project, "a")]
    await observed(project, "web")
    visitor = await visit(project, viewport={"width": 480, "height": 800})
    page = await visitor.open("stack", "web", stack_id)
    drift = page.get_by_role("region", name="Drift", exact=True)
    await drift.get_by_role("button", name="Show plan").click()
    dialog = page.get_by_role("dialog", name="Plan of a converge")
    await expect(dialog.get_by_role("status")).to_have_text("1 replaced, 1 unchanged.")
    states = dialog.get_by_role("region", name="Not repaired").get_by_role("listitem")
    await expect(states).to_have_text([re.compile("b check: the service answered 503")])
    assert await visitor.violations() == []


async def test_the_plan_is_in_the_panel_of_a_resource_that_differs(
    visit: Visit, project: Http, things: Things
) -> None:
    stack_id = await create(project, things)
    del things.objects[await physical_id(project, "b")]
    await observed(project, "web")
    visitor = await visit(project, viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page = await visitor.open("stack", "web", stack_id)
    await expect_state(page, "b", "b, create, done, drift: missing$")
    await node(page, "b").click()
    panel = page.get_by_role("complementary", name="b")
    await panel.get_by_role("button", name="Show plan").click()
    dialog = page.get_by_role("dialog", name="Plan of a converge")
    await expect(dialog.get_by_role("status")).to_have_text("1 replaced, 1 unchanged.")
    await expect(dialog.get_by_text("The resource does not exist")).to_be_visible()
    assert await visitor.violations() == []
    await dialog.get_by_role("button", name="Cancel").click()
    # A resource as it should be has no drift to repair.
    await node(page, "a").click()
    panel = page.get_by_role("complementary", name="a")
    await expect(panel.get_by_text("Headgate::HTTP").first).to_be_visible()
    await expect(panel.get_by_role("button", name="Show plan")).to_have_count(0)


async def test_a_renewed_hook_shows_why_it_asks_again(
    visit: Visit, project: Http, things: Things
) -> None:
    await create(project, things)
    changed = {"a": thing(things, 3), "b": thing(things, 2)}
    rule = hook_rule(on="pre-update", watch=True)
    await project.update("web", "PUT", template=template(changed), environment=rule)
    await project.waiting_hooks("web")
    ann = await inbox_of(visit, project, "ann")
    row = ann.page.locator("article.hook")
    await expect(row.get_by_text("Planned update")).to_be_visible()
    await expect(row.get_by_text("Asked again")).to_have_count(0)
    things.objects[await physical_id(project, "a")]["size"] = 7
    # Without a reload.
    reason = "Earlier answers do not count: the resource has changed: $.size."
    await expect(row.get_by_text(reason)).to_be_visible()
    await expect(row.get_by_text("The resource has changed.")).to_be_visible()
    await expect(row.locator("dl.changes").first).to_contain_text("1 → 7")
    await expect(row.get_by_text("Planned update")).to_be_visible()
    assert await ann.violations() == []
    await row.get_by_role("button", name="Continue").click()
    await expect(row.get_by_text("ann approved.").first).to_be_visible()
    assert await project.until_ended("web") == "UPDATE_COMPLETE"


async def test_a_paused_endpoint_is_shown_with_its_time_and_reason(
    visit: Visit, project: Http, things: Things
) -> None:
    stack_id = await create(project, things)
    visitor = await visit(project, viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page = await visitor.open("stack", "web", stack_id)
    paused = page.get_by_role("region", name="Paused observations")
    await expect_state(page, "a", "a, create, done$")
    await expect(paused).to_have_count(0)
    things.faults, things.retry_after = [429], "7200"
    things.gate = asyncio.Event()
    await project.act("web", "observe")
    await page.reload()
    await expect_state(page, "a", "a, create, done$")
    # The observation that is under way ends without an event.
    things.gate.set()
    sentence = paused.get_by_role("listitem")
    await expect(sentence).to_contain_text(
        f"The observation of 2 resources of type Headgate::HTTP at {things.url} is paused for another"
    )
    await expect(sentence).to_contain_text("because list: the service answered 429.")
    assert await visitor.violations() == []
    # So does the Usage page.
    usage = await visitor.open("usage")
    endpoint = usage.get_by_role("region", name="Requests to providers").get_by_role("listitem")
    await expect(endpoint).to_contain_text([things.url, things.url])
    await expect(endpoint.first).to_contain_text("next requests in")
    await expect(endpoint.last).to_contain_text("1 request")
    texts = await visitor.module(
        "usage/budgets.js",
        "(m, all) => all.map(([requests, used, requests_per_minute]) =>"
        " m.requestsOf({endpoint: '', requests, used, requests_per_minute}))",
        [[1, None, None], [12, 3, 60]],
    )
    assert texts == ["1 request", "12 requests; 3 of 60 per minute used by all projects"]
    assert await visitor.violations() == []
    page = await visitor.open("stack", "web", stack_id)
    await expect_state(page, "a", "a, create, done$")
    # The panel of a node has the reason, and no badge: it may be as it should.
    await node(page, "a").click()
    panel = page.get_by_role("complementary", name="a")
    await expect(panel.get_by_text("The state of the resource is not known")).to_be_visible()
    await expect(page.locator(".graph-drift:visible")).to_have_count(0)


async def test_what_was_known_is_shown_while_the_state_is_unknown(
    visit: Visit, project: Http, things: Things
) -> None:
    stack_id = await create(project, things, HOLD)
    things.objects[await physical_id(project, "a")]["size"] = 5
    await observed(project, "web")
    things.faults = [503]
    await observed(project, "web")
    visitor = await visit(project)
    page = await visitor.open("stack", "web", stack_id)
    await expect_state(page, "a", "a, create, done, drift: changed, now unknown$")
    drift = page.get_by_role("region", name="Drift", exact=True)
    await expect(drift.get_by_role("listitem")).to_have_text(["a drift: changed, now unknown"])
    await expect(drift.get_by_role("button", name="Show plan")).to_have_count(0)
    await node(page, "a").click()
    panel = page.get_by_role("complementary", name="a")
    await expect(panel.get_by_text("The state of the resource is not known")).to_contain_text(
        "Last observed"
    )
    known = panel.get_by_text("Last known: The resource has changed. First observed")
    await expect(known).to_be_visible()
    difference = panel.locator("dt", has_text="$.size").locator("+ dd")
    await expect(difference).to_have_text("1 → 5")
    assert await visitor.violations() == []


async def test_the_panel_explains_drift_that_waits_and_offers_the_answers(
    visit: Visit, project: Http, things: Things
) -> None:
    stack_id = await create(project, things, HOLD)
    changed, gone = await physical_id(project, "a"), await physical_id(project, "b")
    visitor = await visit(project, viewport={"width": 1280, "height": 800})
    page = await visitor.open("stack", "web", stack_id)
    waiting = page.get_by_role("region", name="Drift waiting for an answer")
    await expect_state(page, "a", "a, create, done$")
    await expect(waiting).to_have_count(0)
    things.objects[changed]["size"] = 5
    del things.objects[gone]
    await observed(project, "web")
    # The sentences of `why`, without a reload.
    why = "a has differed from its recorded state for "
    await expect(waiting.get_by_text(why)).to_contain_text(
        re.compile(
            r"it is changed \(\$\.size\)\. .* for the answer repair, adopt, ignore or reject"
        )
    )
    await expect(waiting.get_by_text("b has differed")).to_contain_text("it is missing")
    await expect(waiting.get_by_role("button", name="Repair")).to_have_count(2)
    await expect(waiting.get_by_role("button", name="Adopt observed values")).to_have_count(1)
    await expect(waiting.get_by_role("link")).to_have_text("Answer all 2 in the inbox")
    # No change waits for an approval: the debugger would repair with its key for Continue.
    await expect(page.get_by_role("region", name="Waiting for approval")).to_have_count(0)
    await expect(page.get_by_text("No change in progress.")).to_be_visible()
    assert await visitor.violations() == []
    await waiting.get_by_role("link").click()
    await expect(page.locator("article.hook")).to_have_count(2)
    await page.go_back()

    # The node has the difference and all answers.
    await waiting.get_by_role("button", name="Answer…").first.click()
    panel = page.get_by_role("complementary", name="a")
    difference = panel.locator("dt", has_text="$.size").first.locator("+ dd")
    await expect(difference).to_have_text("1 → 5")
    answer = panel.get_by_role("region", name="Answer: a, to repair drift")
    for button in ("Repair", "Adopt observed values", "Ignore for a time…", "Reject…"):
        await expect(answer.get_by_role("button", name=button, exact=True)).to_be_visible()
    assert await visitor.violations() == []
    await answer.get_by_role("button", name="Reject…").click()
    await answer.get_by_role("button", name="Reject", exact=True).click()
    await expect(panel.get_by_role("heading", name="Waiting for approval: drift")).to_have_count(0)
    await page.get_by_role("button", name="Close", exact=True).click()

    await expect(waiting.get_by_text(why)).to_have_count(0)
    await waiting.get_by_role("button", name="Repair").click()
    await expect(waiting).to_have_count(0)

    async def is_repaired() -> bool:
        return any(one["size"] == 2 for one in things.objects.values())

    await eventually(is_repaired)
    assert things.objects[changed]["size"] == 5


async def test_the_panel_has_the_states_that_could_not_be_observed(
    visit: Visit, project: Http, things: Things
) -> None:
    stack_id = await create(project, things, HOLD)
    things.faults = [503]
    await observed(project, "web")
    visitor = await visit(project, viewport={"width": 1280, "height": 800})
    page = await visitor.open("stack", "web", stack_id)
    unknown = page.get_by_role("region", name="Unknown states").get_by_role("listitem")
    await expect(unknown).to_contain_text(["The state of a, b could not be observed for "])
    await expect(unknown).to_contain_text(["503. The next observation is at "])
    assert await visitor.violations() == []
