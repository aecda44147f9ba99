"""`headgate demo --look`: leaves an example stack waiting, for the dashboard."""

import asyncio
from pathlib import Path

from rich.console import Console

from hub.cli.client import Client
from hub.cli.context import PROJECT
from hub.cli.files import template_body

SHOP = Path(__file__).resolve().parents[2] / "examples" / "shop"
out = Console(highlight=False)


async def look(client: Client, url: str) -> None:
    """Create the shop, print its address, and run until interrupted."""
    body = template_body(SHOP / "shop.yaml") | {
        "stack_name": "shop",
        "environment": (SHOP / "env.yaml").read_text(),
    }
    made = await client.call("POST", "/stacks", body=body)
    out.print("\nAn example shop waits for approval of its database, server and address.")
    out.print(f"  The stack: [bold]{url}/#/{PROJECT}/stack/shop/{made['stack']['id']}[/]")
    out.print(f"  The inbox: [bold]{url}/#/{PROJECT}/inbox[/]")
    out.print("Press Ctrl-C to stop and remove everything.")
    await asyncio.Event().wait()
