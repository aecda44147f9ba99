"""The Usage page: quotas, services and tokens."""

from playwright.async_api import expect

from tests.browser.conftest import Visit, Visitor
from tests.support.access import insert_credential
from tests.support.program import Http, Program, resource


async def test_quotas_and_services(visitor: Visitor, http: Http) -> None:
    page = await visitor.open("usage")
    used = page.locator(".usage-quotas")
    await expect(used).to_contain_text("0 of 512")
    await expect(page.get_by_text("headgate-engine")).to_be_visible()
    await http.create("shop", {"a": resource(), "b": resource()})
    await expect(used).to_contain_text("1 of 512")
    await expect(used).to_contain_text("2, unlimited")
    await expect(page.get_by_text("No endpoint limits the observations")).to_be_visible()
    assert await visitor.violations() == []
    # An error of a fetch is shown beside the last values, until a fetch succeeds.
    await page.route("**/quotas", lambda route: route.abort())
    await http.create("ship", {"a": resource()})
    wrong = page.get_by_role("alert")
    await expect(wrong).to_be_visible()
    await expect(used).to_contain_text("1 of 512")
    await page.unroute("**/quotas")
    await http.create("boat", {"a": resource()})
    await expect(wrong).to_have_count(0)
    await expect(used).to_contain_text("3 of 512")
    texts = await visitor.module(
        "usage/quotas.js",
        "(m, all) => all.map(([limit, used]) => m.usageOf({name: '', limit, used}).text)",
        [[10, 8], [10, 9], [10, 11], [None, 3]],
    )
    assert texts == ["8 of 10", "9 of 10, nearly full", "11 of 10, full", "3, unlimited"]


async def test_an_admin_creates_and_revokes_a_token(visit: Visit, token_server: Program) -> None:
    project = "tokens"
    http = Http(token_server.session, token_server.url, project)
    token = await insert_credential(token_server.database, project, "root", ["admin"])
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
    about = page.get_by_role("link", name="About Invalid")
    await expect(about).to_have_attribute("href", f"{token_server.url}/errors/Invalid")
    assert await visitor.violations() == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_label("reader", exact=True).check()
    await page.get_by_label("Expires in").fill("90d")
    await give.click()
    token = await page.get_by_label("the token", exact=True).input_value()
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_text("token: reader, dba")).to_be_visible()
    await expect(page.get_by_text(token)).to_have_count(0)
    who = {"X-Auth-Token": token}
    assert (await http.call("GET", "/session", headers=who))[1]["name"] == "ci"

    await page.get_by_role("button", name="Revoke token of ci").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("token: reader, dba")).to_have_count(0)
    assert (await http.call("GET", "/session", headers=who))[0] == 401
    await page.get_by_label("Include revoked and expired").check()
    await expect(page.get_by_text("revoked by root")).to_be_visible()
