"""Answers hooks by the exit code of a command: 0 continues, any other rejects.

    SECRET=whsec_... python listener.py --webhook 127.0.0.1:9000 -- ./check.sh
    python listener.py --amqp amqp://guest:guest@127.0.0.1/ -- ./check.sh
    HEADGATE_TOKEN=... python listener.py --stream http://127.0.0.1:8004 -- ./check.sh

Runs the command with the notification on standard input. The command can run for as long as the
hook waits. See README.md.
"""

import argparse
import asyncio
import json
import os

from headgate import (
    AmqpQueue,
    Continue,
    EventStream,
    HookAnswer,
    HookNotification,
    Listener,
    Reject,
    WebhookServer,
)

app = Listener()
parser = argparse.ArgumentParser(description="Answers hooks by the exit code of a command.")
channel = parser.add_mutually_exclusive_group(required=True)
channel.add_argument("--webhook", metavar="HOST:PORT", help="receive webhooks at this address")
channel.add_argument("--amqp", metavar="URL", help="receive messages from this broker")
channel.add_argument("--stream", metavar="URL", help="read the event stream of this server")
parser.add_argument("--exchange", default="headgate", help="of the subscription, for --amqp")
parser.add_argument("--queue", default="checks", help="of this program, for --amqp")
parser.add_argument("command", nargs="+")


@app.hook()
async def check(hook: HookNotification) -> HookAnswer:
    """The last line of the command's output is the reason."""
    process = await asyncio.create_subprocess_exec(
        *parser.parse_args().command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        printed, _ = await process.communicate(json.dumps(hook.data).encode())
    finally:
        if process.returncode is None:
            process.kill()  # the hook is closed
    reason = "".join(printed.decode(errors="replace").strip().splitlines()[-1:])
    return Continue(reason) if process.returncode == 0 else Reject(reason)


if __name__ == "__main__":
    options = parser.parse_args()
    if options.webhook:
        app.run(webhook=WebhookServer(options.webhook, secret=os.environ["SECRET"]))
    elif options.amqp:
        app.run(amqp=AmqpQueue(options.amqp, queue=options.queue, exchange=options.exchange))
    else:
        app.run(stream=EventStream(options.stream))
