"""Answers hooks by what a command says of them, over AMQP: exit code 0 lets the change go on.

    python broker.py --url amqp://guest:guest@127.0.0.1/ -- ./check.sh

A durable queue of its own is bound to Headgate's exchange; messages are acknowledged at once, and
answered when the command has ended. See README.md beside this file.
"""

import argparse
import asyncio
import json

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage


async def judge(command: list[str], body: bytes) -> dict[str, str]:
    """The answer: the last line that the command prints is the reason."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate(body)
    lines = printed.decode(errors="replace").strip().splitlines()
    decision = "continue" if process.returncode == 0 else "reject"
    return {"decision": decision, "reason": lines[-1] if lines else ""}


async def answer(
    channel: AbstractChannel, command: list[str], message: AbstractIncomingMessage
) -> None:
    data = json.loads(message.body)["data"]
    said = await judge(command, json.dumps(data).encode())
    said |= {"token": data["token"], "digest": data["hook"]["digest"]}
    await channel.default_exchange.publish(
        aio_pika.Message(json.dumps(said).encode(), correlation_id=message.correlation_id),
        routing_key=message.reply_to or "",
    )
    print(data["hook"]["path"], data["hook"]["point"], said["decision"], flush=True)


async def listen(options: argparse.Namespace) -> None:
    connection = await aio_pika.connect_robust(options.url)
    async with connection, asyncio.TaskGroup() as answering:
        channel = await connection.channel()
        exchange = await channel.get_exchange(options.exchange, ensure=False)
        queue = await channel.declare_queue(options.queue, durable=True)
        await queue.bind(exchange, options.binding)
        print("listening", flush=True)
        async with queue.iterator() as messages:
            async for message in messages:
                await message.ack()
                if message.reply_to:
                    answering.create_task(answer(channel, options.command, message))


def main() -> None:
    parser = argparse.ArgumentParser(description="Answers hooks by a command's exit code.")
    parser.add_argument("--url", default="amqp://guest:guest@127.0.0.1/")
    parser.add_argument("--exchange", default="headgate")
    parser.add_argument("--queue", default="checks")
    parser.add_argument("--binding", default="headgate.hook.waiting.#")
    parser.add_argument("command", nargs="+")
    asyncio.run(listen(parser.parse_args()))


if __name__ == "__main__":
    main()
