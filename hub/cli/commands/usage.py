"""headgate usage."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from headgate.connection import url_path
from hub.cli.context import ask, print_result
from hub.cli.messages import note
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing import output, tables
from hub.cli.printing.renderables import RenderableGroup, group, styled_text

Json = Any
COLUMNS: tables.Columns = {
    "day": "DAY",
    "resource_hours": "RESOURCE HOURS",
    "operations": "OPERATIONS",
    "hooks": "HOOKS",
    "waited": "WAITED",
    "observations": "OBSERVED",
    "provider_requests": tables.Column("REQUESTS", drop=1),
    "drift_found": "DRIFT",
    "repairs": "REPAIRS",
}


@with_options
def usage(
    server: ServerOptions,
    first: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="DAY", help="The first day, such as 2026-11-01. Default: 30 days."
        ),
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="The last day. Default: today.")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Show what the project used on each day, in UTC."""
    query = {name: value for name, value in (("from", first), ("to", last)) if value}
    found = ask(server, lambda client: client.call("GET", url_path("usage"), query=query))
    days = found["usage"]
    if as_csv:
        typer.echo(csv_of(days), nl=False)
        return
    rows = [row_of(one) for one in days]
    print_result(found, server.format, lambda: _render(rows, found))
    if not days and not server.format.is_document:
        note("the project used nothing on these days")


def _render(rows: Sequence[Mapping[str, Json]], found: Mapping[str, Json]) -> RenderableGroup:
    texts = [requested_text(one) for one in found.get("endpoints", ())]
    texts += [paused_text(one) for one in found.get("paused", ())]
    lines = [styled_text(tables.plain(one)) for one in texts]
    return group(output.table(rows, COLUMNS), *lines)


def requested_text(one: Mapping[str, Json]) -> str:
    """``http://host: 12 requests today, 3 of 60 per minute used``. Pure."""
    count = one["requests"]
    text = f"{one['endpoint']}: {count} {'request' if count == 1 else 'requests'} today"
    if one["requests_per_minute"] is None:
        return text
    return f"{text}, {one['used']} of {one['requests_per_minute']:g} per minute used"


def paused_text(one: Mapping[str, Json]) -> str:
    """``paused until 2026-11-28T09:00:00Z: http://host: the budget ... is used up``. Pure."""
    return f"paused until {one['until']}: {one['endpoint']}: {one['reason']}"


def row_of(day: Mapping[str, Json]) -> Mapping[str, Json]:
    """A row of the table. Pure."""
    hours, seconds = divmod(day["hook_seconds"], 3600)
    return {**day, "waited": f"{hours}:{seconds // 60:02}:{seconds % 60:02}"}


def csv_of(days: Sequence[Mapping[str, Json]]) -> str:
    """The days as CSV, with a header unless there are none. Pure."""
    text = io.StringIO()
    if days:
        table = csv.DictWriter(text, list(days[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(days)
    return text.getvalue()
