"""Confirms resizes up to a maximum, and rejects the others.

    SECRET=whsec_... python confirm.py --max-size 64

Headgate sends the notification of `confirm-resize` when the server already has its new size.
`resource.seen` has the sizes. The response contains the answer. See README.md.
"""

import argparse
import os

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError


async def receive_notification(request: web.Request) -> web.Response:
    try:
        event = request.app["webhook"].verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    data, max_size = event["data"], request.app["max_size"]
    if event["type"] != "headgate.hook.waiting" or data["hook"]["point"] != "confirm-resize":
        return web.Response(status=204)
    seen = data["resource"]["seen"]
    if seen["to"] > max_size:
        reason = f"{seen['to']} GiB is more than {max_size}"
        return web.json_response({"decision": "reject", "reason": reason})
    return web.json_response({"decision": "continue", "reason": f"{seen['to']} GiB is allowed"})


def main() -> None:
    parser = argparse.ArgumentParser(description="Confirms resizes.")
    parser.add_argument("--port", type=int, default=9005)
    parser.add_argument("--max-size", type=int, default=64, help="GiB")
    options = parser.parse_args()
    app = web.Application()
    app["max_size"] = options.max_size
    app["webhook"] = Webhook(os.environ["SECRET"])
    app.router.add_post("/", receive_notification)
    web.run_app(app, host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
