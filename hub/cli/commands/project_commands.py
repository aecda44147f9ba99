"""headgate quota and usage."""

import typer

from headgate.connection import url_path
from hub.cli.commands import usage
from hub.cli.context import ask, print_result
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output

app = typer.Typer()


@app.command()
@with_options
def quota(server: ServerOptions) -> None:
    """Show the quotas of the project and their usage."""
    quotas = ask(server, lambda client: client.call("GET", url_path("quotas")))["quotas"]
    columns = {"name": "QUOTA", "limit": "LIMIT", "used": "USED"}
    rows = [one | {"limit": "unlimited"} if one["limit"] is None else one for one in quotas]
    print_result(quotas, server.format, lambda: output.table(rows, columns))


app.command()(usage.usage)
