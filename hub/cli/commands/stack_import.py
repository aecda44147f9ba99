"""headgate stack from-resources: a stack that owns existing resources."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

from headgate.connection import url_path
from hub.cli import options
from hub.cli.commands import stack_change
from hub.cli.commands.import_resources import (
    GivenProperties,
    Region,
    TypesAndIds,
    differences,
    import_body,
    problems,
    read_existing,
    region_section,
    unreadable,
)
from hub.cli.commands.stack_change import Outcome, wait_for_action
from hub.cli.confirmation import UNCHANGED, confirm, format_count, resource_facts
from hub.cli.connection.client import ApiClient
from hub.cli.context import ask, print_result
from hub.cli.inputs import request_bodies
from hub.cli.inputs.files import InputError
from hub.cli.inputs.request_bodies import parameters
from hub.cli.options import ServerOptions, WaitOptions, with_options
from hub.cli.printing import plan_output

Json = Any
app = typer.Typer()


@app.command("from-resources")
@with_options
def from_resources(
    server: ServerOptions,
    wait: WaitOptions,
    name: options.NewName,
    resources: TypesAndIds,
    properties: GivenProperties = [],  # noqa: B006
    region: Region = "",
    parameter: options.Parameters = [],  # noqa: B006
    parameter_file: options.ParameterFiles = [],  # noqa: B006
    tag: options.NewTags = [],  # noqa: B006
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
) -> None:
    """Create a stack that owns existing resources, without changing them."""
    body = import_body(resources, properties, region)
    more: dict[str, Json] = {"stack_name": name}
    if region:
        more["environment"] = region_section(region)
    more |= {"parameters": parameters(parameter, parameter_file)}
    more |= request_bodies.stack_options(tag, None)

    async def plan(client: ApiClient) -> tuple[Json, Json]:
        read = await read_existing(client, body)
        if wrong := [*refusals(read, more["parameters"])]:
            raise InputError("\n".join([UNCHANGED, *wrong]))
        request = {"template": read["template"], **more}
        preview = await client.call("POST", url_path("stacks", "preview"), body=request)
        if wrong := [*planned_changes(preview["stack"]["resource_changes"])]:
            raise InputError("\n".join([UNCHANGED, *wrong]))
        return read, preview

    async def adopt(client: ApiClient) -> Outcome:
        if wrong := [*changes_since(read, await read_existing(client, body))]:
            raise InputError("\n".join([UNCHANGED, *wrong]))
        request = {"template": read["template"], **more}
        request |= request_bodies.plan_digest(preview["stack"]["plan_digest"])
        created = await client.call("POST", url_path("stacks"), body=request)
        return await wait_for_action(client, created["stack"]["id"], "CREATE", wait)

    read, preview = ask(server, plan)
    if dry_run:
        print_result(preview, server.format, lambda: plan_output.render(name, preview["stack"]))
        return
    count = format_count(len(read["resources"]), "existing resource")
    facts = [f"The stack will own {count}, and change none of them now:"]
    facts += resource_facts(read["resources"])
    facts += [f"  {line}" for line in problems(read)]
    confirm(f"Create the stack {name} from {count}?", facts, yes)
    stack_change.finish(ask(server, adopt), server.format)


def refusals(read: Mapping[str, Json], given: Mapping[str, Json]) -> Iterator[str]:
    """Why no stack can be created from what was read; none if it can. Pure."""
    yield from unreadable(read)
    for one in read["resources"]:
        yield from differences(one)
    for name in read["parameters"]:
        if name not in given:
            yield f"parameters.{name} has no value. Use -P {name}=VALUE."


def planned_changes(changes: Mapping[str, Sequence[Mapping[str, Json]]]) -> Iterator[str]:
    """What a plan would change, with the properties; none if it adopts each resource. Pure."""
    for kind, resources in changes.items():
        for one in resources:
            if kind == "added" and one.get("imported_id"):
                continue
            shown = ", ".join(sorted(one.get("changes") or ())) or "no property"
            yield f"{one['path']}: the plan has it as {kind}, not as imported ({shown})"


def changes_since(before: Mapping[str, Json], now: Mapping[str, Json]) -> Iterator[str]:
    """What has changed in the resources between two reads; none if nothing. Pure."""
    yield from unreadable(now)
    if now["findings"]:
        return
    for old, new in zip(before["resources"], now["resources"], strict=True):
        was, is_ = old["properties"], new["properties"]
        names = sorted(key for key in was.keys() | is_.keys() if was.get(key) != is_.get(key))
        for key in names:
            place = f"resources.{old['resource_name']}.properties.{key}"
            yield f"{place} has changed since the plan. Run the command again."
