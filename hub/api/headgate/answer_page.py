"""A page with buttons that answer a hook: what links in notices lead to. A GET never decides."""

from aiohttp import web

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Headgate: answer a hook</title>
<meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 system-ui;max-width:36rem;margin:4rem auto;padding:0 1rem}
button{font:inherit;padding:.4rem 1.2rem;margin-right:1rem}</style>
<h1>A hook waits for your answer</h1>
<p>Nothing has been decided by opening this page.</p>
<p><label>Reason <input id="reason" size="40"></label></p>
<p><button value="continue">Continue</button><button value="reject">Reject</button></p>
<p id="said" role="status"></p>
<script>
const said = document.getElementById("said");
for (const button of document.querySelectorAll("button")) button.onclick = async () => {
  const answer = await fetch(location.pathname + "/signal", {
    method: "POST",
    headers: {"Authorization": "Bearer " + location.hash.slice(1),
              "Content-Type": "application/json"},
    body: JSON.stringify({decision: button.value, reason: document.getElementById("reason").value})
  });
  const body = await answer.json();
  said.textContent = answer.ok ? "Done: " + body.decision
    : body.error.message + ". " + (body.error.remedy || "");
};
</script></html>
"""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}


async def page(_: web.Request) -> web.Response:
    """Buttons that POST; the token stays behind the #, which no server and no log is sent."""
    return web.Response(text=PAGE, content_type="text/html", headers=PAGE_HEADERS)
