"""headgate stack: template and diff."""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.errors import RequestError
from hub.cli import options
from hub.cli.connection.client import ApiClient, find_stack, stack_path
from hub.cli.context import ask, print_document, print_renderable, print_result
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import note, stop
from hub.cli.options import ServerOptions, with_options
from hub.cli.printing.consoles import standard_output
from hub.cli.printing.formats import format_yaml
from hub.cli.printing.renderables import join_lines, styled_text
from hub.cli.printing.tables import plain

if TYPE_CHECKING:
    from rich.text import Text

Json = Any
app = typer.Typer()
#: Colors of the lines of a comparison by how they begin, longest first.
COLORS = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
TEMPLATE, ENVIRONMENT = "template", "environment"


@app.command(name="template")
@with_options
def template_(
    server: ServerOptions,
    name: options.Name,
    version: Annotated[
        int | None,
        typer.Option(
            min=1, help="Version number; see `headgate stack history`. Default: the current one."
        ),
    ] = None,
) -> None:
    """Print the template of a stack as it was sent: the current or an earlier version."""

    async def work(client: ApiClient) -> Json:
        stack = await find_stack(client, name)
        return await _read_version(client, stack, version)

    content = ask(server, work)
    if server.format.is_document:
        print_document(content, server.format)
    elif standard_output().is_terminal:
        print_renderable(styled_text(plain(template_text(content)).rstrip("\n")))
    else:
        typer.echo(template_text(content), nl=False)


@app.command()
@with_options
def diff(
    server: ServerOptions,
    name: options.Name,
    template: options.OtherTemplate = None,
    from_: Annotated[
        int | None,
        typer.Option(
            "--from",
            min=1,
            metavar="N",
            help="Version to compare. Default: the current one; without -t, the one before.",
        ),
    ] = None,
    to: Annotated[
        int | None,
        typer.Option("--to", min=1, metavar="N", help="Other version. Default: the current one."),
    ] = None,
) -> None:
    """Compare the template of a stack with a file, or two of its versions.

    `headgate stack update --dry-run` shows what an update would do to the resources.
    """  # fmt: skip
    if template is not None and to is not None:
        stop("use either --template or --to", ExitCode.USAGE)

    async def work(client: ApiClient) -> list[Mapping[str, Json]]:
        stack = await find_stack(client, name)
        if template is not None:
            local = _read_local(template)
            stored = await _read_version(client, stack, from_)
            return [stored, local]
        newer = await _read_version(client, stack, to)
        older = from_ or await _version_before(client, stack, newer["version"])
        return [await _read_version(client, stack, older), newer]

    before, after = ask(server, work)
    label = str(template) if template is not None else f"version {after['version']}"
    lines = list(compare(before, after, f"version {before['version']}", label))
    document = {"from": before["version"], "to": after.get("version"), "lines": lines}
    if lines or server.format.is_document:
        print_result(document, server.format, lambda: join_lines(map(_color_line, lines)))
    else:
        note("no differences")


def _read_local(template: Path) -> Mapping[str, Json]:
    from hub.cli.inputs.template_bodies import template_body

    body = template_body(template)
    return {"source": body["template"], "files": body.get("files", {})}


async def _read_version(client: ApiClient, stack: Json, version: int | None) -> Json:
    """A version with its texts; None: the current one."""
    if version is None:
        found = await client.call("GET", stack_path(stack, "versions"), query={"limit": "1"})
        version = next(one["version"] for one in found["versions"] if one["current"])
    return await client.call("GET", stack_path(stack, "versions", str(version)))


async def _version_before(client: ApiClient, stack: Json, version: int) -> int:
    """The newest stored version that is older. Raises RequestError."""
    found = await client.call("GET", stack_path(stack, "versions"), query={"limit": "1"})
    older = [one["version"] for one in found["versions"] if one["version"] < version]
    if not older:
        reason = f"there is no stored version before version {version}"
        raise RequestError(404, f"{reason}; compare with a file: -t FILE")
    return int(max(older))


def template_text(content: Mapping[str, Json]) -> str:
    """The template as it was sent; as YAML if it was not sent as text. Pure."""
    source = content["source"]
    return str(source) if source is not None else f"{format_yaml(content['template'])}\n"


def compare(
    before: Mapping[str, Json], after: Mapping[str, Json], first: str, second: str
) -> Iterator[str]:
    """The lines that differ, for each text in the unified format. first, second: labels. A local
    template has no environment to compare. Pure."""
    old, new = _texts(before), _texts(after)
    if "environment" not in after:
        old.pop(ENVIRONMENT)
    for name in sorted({*old, *new}, key=lambda one: (one != TEMPLATE, one != ENVIRONMENT, one)):
        for line in unified_diff(
            old.get(name, "").splitlines(),
            new.get(name, "").splitlines(),
            f"{name} ({first})",
            f"{name} ({second})",
            lineterm="",
        ):
            yield plain(line)


def _texts(content: Mapping[str, Json]) -> dict[str, str]:
    texts = {TEMPLATE: template_text(content)}
    if "environment" in content:
        texts[ENVIRONMENT] = format_yaml(content["environment"])
    return texts | {f"file {name}": text for name, text in content["files"].items()}


def _color_line(line: str) -> "Text":
    return styled_text(
        line, next((color for start, color in COLORS.items() if line.startswith(start)), "")
    )
