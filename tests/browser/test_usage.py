"""What is used, what runs, and tokens given out on the page."""

from playwright.async_api import expect

from tests.browser.conftest import Visit, Visitor
from tests.support.access import given_directly
from tests.support.program import Http, Program, resource


async def test_what_is_used_and_what_runs(visitor: Visitor, http: Http) -> None:
    page = await visitor.open("usage")
    used = page.locator(".usage-quotas")
    await expect(used).to_contain_text("0 of 512")
    await expect(page.get_by_text("headgate-engine")).to_be_visible()
    await http.create("shop", {"a": resource(), "b": resource()})
    await expect(used).to_contain_text("1 of 512")
    await expect(used).to_contain_text("2, unlimited")
    assert await visitor.breaks() == []
    # What cannot be read is said, what was read stays; it goes when it can be read again.
    await page.route("**/quotas", lambda route: route.abort())
    await http.create("ship", {"a": resource()})
    wrong = page.get_by_role("alert")
    await expect(wrong).to_be_visible()
    await expect(used).to_contain_text("1 of 512")
    await page.unroute("**/quotas")
    await http.create("boat", {"a": resource()})
    await expect(wrong).to_have_count(0)
    await expect(used).to_contain_text("3 of 512")
    said = await visitor.module(
        "usage/quotas.js",
        "(m, all) => all.map(([limit, used]) => m.fill({name: '', limit, used}).text)",
        [[10, 8], [10, 9], [10, 11], [None, 3]],
    )
    assert said == ["8 of 10", "9 of 10, nearly full", "11 of 10, full", "3, unlimited"]


async def test_an_admin_gives_out_a_token_and_revokes_it(visit: Visit, guarded: Program) -> None:
    project = "doors"
    http = Http(guarded.session, guarded.url, project)
    token = await given_directly(guarded.database, project, "root", ["admin"])
    visitor = await visit(http, viewport={"width": 360, "height": 700})
    page = await visitor.open("usage")
    await page.get_by_label("Token", exact=True).fill(token)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Create…").click()
    await page.get_by_label("Name").fill("ci")
    await page.get_by_label("Expires in").fill("soon")
    await page.get_by_label("Other roles").fill("dba")
    give = page.get_by_role("button", name="Create", exact=True)
    await give.click()
    await expect(page.get_by_text('"soon" is not a valid time')).to_be_visible()
    await expect(page.get_by_text("none of these roles grants any permission")).to_be_visible()
    assert await visitor.breaks() == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_label("reader", exact=True).check()
    await page.get_by_label("Expires in").fill("90d")
    await give.click()
    given = await page.get_by_label("the token", exact=True).input_value()
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_text("token: reader, dba")).to_be_visible()
    await expect(page.get_by_text(given)).to_have_count(0)
    who = {"X-Auth-Token": given}
    assert (await http.call("GET", "/session", headers=who))[1]["name"] == "ci"

    await page.get_by_role("button", name="Revoke token of ci").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("token: reader, dba")).to_have_count(0)
    assert (await http.call("GET", "/session", headers=who))[0] == 401
    await page.get_by_label("Include revoked and expired").check()
    await expect(page.get_by_text("revoked by root")).to_be_visible()
