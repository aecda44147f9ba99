"""headgate import: a template for existing resources."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from engine.errors import HeadgateError
from headgate.connection import url_path
from hub.cli.connection.client import ApiClient
from hub.cli.context import ask, print_document
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs.files import InputError, read_text
from hub.cli.messages import warn
from hub.cli.options import ServerOptions, with_options

Json = Any
app = typer.Typer()

TypesAndIds = Annotated[
    list[str],
    typer.Argument(
        metavar="TYPE ID...", help="Types and physical IDs, in pairs.", show_default=False
    ),
]
GivenProperties = Annotated[
    list[str],
    typer.Option(
        "--properties",
        metavar="ID=FILE",
        help="YAML file with properties of a resource: those that cannot be read, or how to read"
        " it. Repeatable.",
    ),
]
Region = Annotated[
    str,
    typer.Option(
        "--region",
        metavar="REGION",
        help="Region of the resources. Default: the one that the operator has configured.",
        show_default=False,
    ),
]


@app.command("import")
@with_options
def import_(
    server: ServerOptions,
    resources: TypesAndIds,
    properties: GivenProperties = [],  # noqa: B006
    region: Region = "",
) -> None:
    """Print a template that imports existing resources."""
    body = import_body(resources, properties, region)
    read = ask(server, lambda client: read_existing(client, body))
    if server.format.is_document:
        print_document(read, server.format)
    else:
        typer.echo(read["template"], nl=False)
    for line in problems(read):
        warn({"message": line}, f"headgate: {line}")
    if read["findings"]:
        raise typer.Exit(ExitCode.ERROR)


async def read_existing(client: ApiClient, body: Json) -> Json:
    return await client.call("POST", url_path("import"), body=body)


def region_section(region: str) -> dict[str, Json]:
    """The section `context`, of an environment and of an import; "": none."""
    return {"context": {"region_name": region}} if region else {}


def import_body(pairs: Sequence[str], given: Sequence[str], region: str = "") -> dict[str, Json]:
    """The body of the request. given: ``ID=FILE``. Raises typer's usage error."""
    if len(pairs) % 2:
        raise typer.BadParameter("write a type and an ID for each resource: TYPE ID [TYPE ID ...]")
    files = _files(given)
    resources: list[Json] = []
    for type_name, physical_id in zip(pairs[::2], pairs[1::2], strict=True):
        path = files.get(physical_id)
        properties = {"properties": _read_properties(path)} if path is not None else {}
        resources.append({"type": type_name, "id": physical_id, **properties})
    if unknown := sorted(files.keys() - set(pairs[1::2])):
        raise typer.BadParameter(f'--properties "{unknown[0]}": no resource has this ID')
    return {"resources": resources, **region_section(region)}


def _files(given: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for text in given:
        physical_id, _, path = text.rpartition("=")
        files[physical_id] = Path(path)
    return files


def _read_properties(path: Path) -> Json:
    """Raises typer's usage error."""
    # Imported here, because YAML takes long to load, and most commands do not read it.
    from engine.hot.syntax.document import read_document

    try:
        return dict(read_document(read_text(path), str(path)))
    except (HeadgateError, InputError) as error:
        raise typer.BadParameter(str(error)) from None


def unreadable(read: Mapping[str, Json]) -> Iterator[str]:
    """What could not be read at all, one line each. Pure."""
    for one in read["findings"]:
        yield f"{one['place']}: {one['reason'].rstrip('.')}. {one['remedy']}"


def problems(read: Mapping[str, Json]) -> Iterator[str]:
    """What could not be read, and what must be given, one line each. Pure."""
    yield from unreadable(read)
    for one in read["resources"]:
        name = one["resource_name"]
        for key, reason in sorted(one["unread"].items()):
            yield f"resources.{name}.properties.{key} was not read: {reason}"
        yield from differences(one)
    for name in read["parameters"]:
        yield f"parameters.{name} needs a value: -P {name}=VALUE"


def differences(one: Mapping[str, Json]) -> Iterator[str]:
    for each in one["differences"]:
        place = f"resources.{one['resource_name']}.properties.{each['property']}"
        yield (
            f"{place}: the template has {each['desired']!r}, the existing resource has"
            f" {each['observed']!r}. Give the property with --properties"
            f" {one['physical_resource_id']}=FILE, or change the resource first."
        )
