"""Answers hooks over AMQP by the exit code of a command: 0 continues, any other rejects.

    python broker.py --url amqp://guest:guest@127.0.0.1/ -- ./check.sh

Binds a durable queue to Headgate's exchange, acknowledges each message at once, and answers when
the command has ended. See README.md.
"""

import argparse
import asyncio
import json

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage


async def run_check(command: list[str], body: bytes) -> dict[str, str]:
    """The answer. The last line of the command's output is the reason."""
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
    decision = await run_check(command, json.dumps(data).encode())
    decision |= {"token": data["token"], "digest": data["hook"]["digest"]}
    await channel.default_exchange.publish(
        aio_pika.Message(json.dumps(decision).encode(), correlation_id=message.correlation_id),
        routing_key=message.reply_to or "",
    )
    print(data["hook"]["path"], data["hook"]["point"], decision["decision"], flush=True)


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
    parser = argparse.ArgumentParser(description="Answers hooks by the exit code of a command.")
    parser.add_argument("--url", default="amqp://guest:guest@127.0.0.1/")
    parser.add_argument("--exchange", default="headgate")
    parser.add_argument("--queue", default="checks")
    parser.add_argument("--binding", default="headgate.hook.waiting.#")
    parser.add_argument("command", nargs="+")
    asyncio.run(listen(parser.parse_args()))


if __name__ == "__main__":
    main()
