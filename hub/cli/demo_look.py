"""`headgate demo --look`: a shop that is being made, to be looked at in the dashboard."""

import asyncio
from pathlib import Path

from rich.console import Console

from hub.cli.client import Client
from hub.cli.files import template_body

SHOP = Path(__file__).resolve().parents[2] / "examples" / "shop"
out = Console(highlight=False)


async def look(client: Client, url: str) -> None:
    """Begin the shop, say where it is, and stay until somebody ends it."""
    body = template_body(SHOP / "shop.yaml") | {
        "stack_name": "shop",
        "environment": (SHOP / "env.yaml").read_text(),
    }
    made = await client.call("POST", "/stacks", body=body)
    out.print("\nA shop is being made, and asks at its database, its server and its address.")
    out.print(f"  The picture: [bold]{url}/#/demo/stack/shop/{made['stack']['id']}[/]")
    out.print(f"  What waits:  [bold]{url}/#/demo/inbox[/]")
    out.print("Ctrl-C ends it, and clears everything away.")
    await asyncio.Event().wait()
