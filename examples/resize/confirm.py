"""Confirms resizes up to a maximum, and rejects the others.

    SECRET=whsec_... python confirm.py --max-size 64

Headgate sends the notification of `confirm-resize` when the server already has its new size.
`seen` of the resource has the sizes. See README.md.
"""

import argparse
import os

from headgate import Continue, HookAnswer, HookNotification, Listener, Reject, WebhookServer

app = Listener()
parser = argparse.ArgumentParser(description="Confirms resizes.")
parser.add_argument("--port", type=int, default=9005)
parser.add_argument("--max-size", type=int, default=64, help="GiB")


@app.hook("confirm-resize")
async def confirm(hook: HookNotification) -> HookAnswer:
    size, max_size = hook.resource["seen"]["to"], parser.parse_args().max_size
    if size > max_size:
        return Reject(f"{size} GiB is more than {max_size}")
    return Continue(f"{size} GiB is allowed")


if __name__ == "__main__":
    port = parser.parse_args().port
    app.run(webhook=WebhookServer(f"127.0.0.1:{port}", secret=os.environ["SECRET"]))
