"""headgate stack: observe, drift and converge."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.words import MAX_ROUNDS, ObservedState
from headgate.connection import Query
from headgate.errors import RequestError
from hub.cli import options
from hub.cli.commands import converge_rounds, stack_change
from hub.cli.commands.converge_rounds import REFUSALS
from hub.cli.commands.stack_change import Outcome
from hub.cli.commands.stack_observation import read_drift, request_observation, wait_until_observed
from hub.cli.confirmation import confirm
from hub.cli.connection.client import ApiClient, find_stack, stack_path
from hub.cli.context import ask, ask_stack, print_result
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs import request_bodies
from hub.cli.messages import stop
from hub.cli.options import ServerOptions, WaitOptions, with_options
from hub.cli.printing import output, plan_output, tables
from hub.cli.printing.formats import format_json
from hub.cli.printing.plan_output import adopted_text
from hub.cli.printing.renderables import group, wrapped_text

if TYPE_CHECKING:
    from rich.console import RenderableType

Json = Any
app = typer.Typer()
#: Without drift, there is nothing to plan.
NO_PLAN: Mapping[str, Json] = {"plan": None, "plan_refused": None}
#: Resources that a question names.
MAX_RESOURCES = 10


@app.command()
@with_options
def observe(
    server: ServerOptions,
    name: options.Name,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the result, and show the drift.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="TIME",
            parser=options.wait_seconds,
            help="With --wait: the longest time, such as 90s, 30m or a number of seconds.",
        ),
    ] = "5m",  # type: ignore[assignment] # typer parses it
) -> None:
    """Compare the physical resources of a stack with their recorded state. Changes nothing."""

    async def work(client: ApiClient) -> Json:
        stack = await find_stack(client, name)
        await request_observation(client, stack)
        if wait:
            return await wait_until_observed(client, stack, timeout)
        return await read_drift(client, stack)

    drift = ask(server, work)
    print_result(drift, server.format, lambda: _render(name, drift))
    if wait and drift["observing"]:
        raise typer.Exit(ExitCode.TIMED_OUT)


@app.command()
@with_options
def drift(server: ServerOptions, name: options.Name) -> None:
    """Show the resources that differ from their recorded state, as observed last, and the plan of
    a converge."""

    async def work(client: ApiClient) -> Json:
        stack = await find_stack(client, name)
        drift = await read_drift(client, stack)
        return drift | (await _plan(client, stack) if drift["resources"] else NO_PLAN)

    found = ask(server, work)
    print_result(found, server.format, lambda: _render_with_plan(name, found))


@app.command()
@with_options
def converge(
    server: ServerOptions,
    wait: WaitOptions,
    name: options.Name,
    only: options.Only = [],  # noqa: B006
    except_: options.Except = [],  # noqa: B006
    dry_run: options.DryRun = False,
    plan: options.PlanDigest = "",
    rounds: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_ROUNDS,
            help="Observe the stack afterwards, and converge it again if it still differs, at most "
            "so many times in total.",
        ),
    ] = 1,
    yes: options.Yes = False,
) -> None:
    """Observe a stack, and repair what differs: create missing resources again, and update or
    replace changed ones. Keeps template, environment and parameters. --dry-run uses the last
    observation. With --plan, it does not ask for confirmation: you have seen the plan."""
    query = [*(("only", one) for one in only), *(("except", one) for one in except_)]
    if dry_run:
        preview = ask_stack(server, name, "GET", "drift", "plan", query=query)
        print_result(preview, server.format, lambda: plan_output.render(name, preview))
        return
    if rounds > 1 and plan:
        stop("--plan is of one round; leave out --rounds", ExitCode.USAGE)
    if not (yes or plan):
        stack, found = ask(server, lambda client: _read_plan(client, name, query))
        confirm(f"Converge {stack['stack_name']}?", converge_facts(found), yes)
        name = stack["id"]
    repeated: Json = {"rounds": rounds} if rounds > 1 else True
    body = {"converge": repeated, **request_bodies.partial_update(only, except_, ())}
    body |= request_bodies.plan_digest(plan)

    async def work(client: ApiClient) -> Outcome:
        stack = await find_stack(client, name)
        return await converge_rounds.run_rounds(client, stack, body, wait)

    stack_change.finish(ask(server, work), server.format)


async def _read_plan(client: ApiClient, name: str, query: Query) -> tuple[Json, Json]:
    """A stack, and the plan of its converge."""
    stack = await find_stack(client, name)
    return stack, await _plan(client, stack, query)


def converge_facts(found: Mapping[str, Json]) -> list[str]:
    """What a converge changes, a line each, with the resources that it replaces or deletes.
    found: see `_plan`. Pure."""
    if found["plan"] is None:
        return [f"The plan is not known: {found['plan_refused']}"]
    changes = found["plan"]["resource_changes"]
    lines = [f"Plan, from the last observation: {plan_output.count_changes(changes)}."]
    lost = [(kind, one) for kind in ("replaced", "deleted") for one in changes[kind]]
    lines += [
        f"  {kind}: {one['path']} ({one['resource_type']})" for kind, one in lost[:MAX_RESOURCES]
    ]
    if (rest := len(lost) - MAX_RESOURCES) > 0:
        lines.append(f"  and {rest} more; see --dry-run")
    unknown = found["plan"].get("unknown_states", ())
    return [*lines, converge_rounds.describe_unknown(unknown, "will not be")] if unknown else lines


async def _plan(client: ApiClient, stack: Json, query: Query | None = None) -> Json:
    """The plan of a converge, or why the server refuses it. The drift is shown in both cases."""
    try:
        plan = await client.call("GET", stack_path(stack, "drift", "plan"), query=query)
    except RequestError as error:
        if error.status in REFUSALS:
            return {"plan": None, "plan_refused": str(error)}
        raise
    return {"plan": plan, "plan_refused": None}


def _render_with_plan(name: str, drift: Mapping[str, Json]) -> "RenderableType":
    if drift["plan"] is not None:
        # The plan has the adopted values, too.
        plan = plan_output.render(name, drift["plan"])
        return group(_render(name, {**drift, "adopted": []}), "", "Plan of a converge:", plan)
    refused = drift["plan_refused"]
    text = f"A converge would be refused: {refused}" if refused else ""
    return group(_render(name, drift), *([wrapped_text(tables.plain(text))] if text else []))


def _render(name: str, drift: Mapping[str, Json]) -> "RenderableType":
    columns: tables.Columns = {
        "resource": "RESOURCE",
        "state": "STATE",
        "path": "PATH",
        "desired": "DESIRED",
        "observed": "OBSERVED",
        "reason": "REASON",
        "since": tables.past_column("SINCE"),
        "observed_at": tables.past_column("LAST OBSERVED"),
        "found_by": "FOUND BY",
    }
    rows = [row for one in listed_resources(drift) for row in rows_of(one)]
    table = [output.table(rows, columns)] if rows else []
    adopted = [wrapped_text(line) for line in adopted_lines(drift["adopted"])]
    rounds = [wrapped_text(tables.plain(line)) for line in round_lines(drift["converge"])]
    ends = [*(one["sentence"] for one in drift["paused"]), summary(drift, name)]
    return group(*table, *adopted, *rounds, *(wrapped_text(tables.plain(one)) for one in ends))


def listed_resources(drift: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """The resources that differ, with those that own their nested stacks, level by level. Pure."""
    nested = [{**one, "differences": [], "unrepaired": None} for one in drift.get("nested", ())]
    return sorted([*nested, *drift["resources"]], key=lambda one: _place(one["path"]))


def _place(path: str) -> tuple[str, str]:
    """The path of the stack, and the name of the resource."""
    stack, _, name = path.rpartition("/")
    return stack, name


def round_lines(converge: Mapping[str, Json] | None) -> list[str]:
    """A line about a converge with several rounds. Pure."""
    if converge is None:
        return []
    number = f"round {converge['round']} of {converge['rounds']}"
    reason = f": {converge['reason']}" if converge["reason"] else ""
    return [f"The converge is {converge['state']}, {number}{reason}."]


def adopted_lines(values: Sequence[Mapping[str, Json]]) -> list[str]:
    """A line for each adopted value. Pure."""
    return [adopted_text(one["resource_path"], one) for one in values]


def rows_of(resource: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    """A row for each difference of a resource, or one with the reason; then those of what was known
    of it before its state became unknown. Pure."""
    reason = resource["reason"]
    if resource["unrepaired"]:
        reason = f"not repaired: {resource['unrepaired']}"
    rows = _rows_of_state(resource, resource["state"], {**resource, "reason": reason})
    if (known := resource.get("last_known")) is None:
        return rows
    return [*rows, *_rows_of_state(resource, f"last known: {known['state']}", known)]


def _rows_of_state(
    resource: Mapping[str, Json], state: str, seen: Mapping[str, Json]
) -> Sequence[Mapping[str, Json]]:
    common = {
        "resource": resource["path"], "state": state, "reason": seen["reason"],
        "since": seen["since"], "observed_at": seen.get("observed_at"),
        "found_by": seen.get("found_by"),
    }  # fmt: skip
    differences = seen["differences"]
    if not differences:
        return [common | {"path": "", "desired": "", "observed": ""}]
    return [
        common
        | {
            "path": one["path"],
            "desired": format_json(one["desired"]),
            "observed": format_json(one["observed"]),
        }
        for one in differences
    ]


def summary(drift: Mapping[str, Json], stack: str) -> str:
    """What was observed when. stack: its name. Pure."""
    if drift["observing"]:
        return "The stack is being observed."
    if drift["observed_at"] is None:
        text = (
            "The stack has not been observed. Observe it with `headgate stack observe"
            f" {quote(stack)} --wait`."
        )
        return text + next_observation(drift)
    count, others = drift["observable_resources"], drift["unobservable_resources"]
    unknown = sum(one["state"] == ObservedState.UNKNOWN for one in drift["resources"])
    text = f"{len(drift['resources']) - unknown} of {count} observed resources differ"
    if unknown:
        text += f", {unknown} {'is' if unknown == 1 else 'are'} unknown"
    text += f", at {drift['observed_at']}."
    if others:
        text += f" {others} have a type that cannot be observed."
    return text + next_observation(drift)


def next_observation(drift: Mapping[str, Json]) -> str:
    """When a policy observes the stack, as a sentence; "": never. Pure."""
    observe = (drift["policy"] or {}).get("observe", "never")
    if observe == "never":
        return ""
    at, window = drift["next_observation_at"], drift["policy"].get("window")
    text = ""
    if window and window["opens_at"]:
        text = f" Repairs start in its window, from {window['opens_at']}."
    return f" It is observed every {observe['every']}" + (f", next at {at}." if at else ".") + text
