"""Waiting for `headgate stack converge --rounds`: the server observes the stack after each round,
and starts the next one if it still differs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from shlex import quote
from typing import Any

from engine.words import PENDING_CONVERGE
from headgate.errors import RequestError
from hub.cli import libraries
from hub.cli.commands.stack_change import POLLS, Outcome, wait_for_action
from hub.cli.commands.stack_observation import read_drift
from hub.cli.confirmation import format_count
from hub.cli.connection.client import ApiClient, stack_path
from hub.cli.exit_codes import ExitCode
from hub.cli.messages import report_progress
from hub.cli.options import WaitOptions
from hub.cli.printing.plan_output import known_state
from hub.cli.printing.tables import plain

Json = Any
#: States of a converge that has not ended.
PENDING = frozenset(PENDING_CONVERGE)
#: Statuses of a refused plan.
REFUSALS = (HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT)
#: Resources that a message lists.
MAX_LISTED = 5


async def run_rounds(
    client: ApiClient, stack: Json, body: Mapping[str, Json], wait: WaitOptions
) -> Outcome:
    """Converge a stack, and wait for the update, or for all rounds. body: of the update. wait: for
    all rounds together."""
    end = libraries.asyncio.get_running_loop().time() + wait.timeout
    await client.call("PATCH", stack_path(stack), body=body)
    outcome = await wait_for_action(client, stack["id"], "UPDATE", wait)
    if body["converge"] is True:
        return await check_repaired(client, outcome, body) if wait.any else outcome
    if not wait.any:
        return outcome
    shown = 1
    while outcome.code == ExitCode.COMPLETE:
        try:
            async with libraries.asyncio.timeout_at(end), client.waiting():
                found = await _until_next(client, stack, shown)
        except TimeoutError:
            message = f"--timeout has expired; {client.continuation}"
            return replace(outcome, code=ExitCode.TIMED_OUT, message=message)
        if found is None:
            message = "another action superseded this one"
            return replace(outcome, code=ExitCode.FAILED, message=message)
        if found["state"] == "complete":
            return outcome
        if found["state"] == "incomplete":
            return replace(outcome, code=ExitCode.ERROR, message=plain(found["reason"]))
        shown = found["round"]
        text = f"The stack still differs. Round {shown} of {found['rounds']} has started."
        report_progress(plain(text))
        rest = max(end - libraries.asyncio.get_running_loop().time(), 0)
        outcome = await wait_for_action(client, stack["id"], "UPDATE", replace(wait, timeout=rest))
    return outcome


async def check_repaired(client: ApiClient, outcome: Outcome, body: Mapping[str, Json]) -> Outcome:
    """The outcome of a converge of one round, which fails if it has not repaired resources because
    their state is unknown. body: of the update."""
    if outcome.code != ExitCode.COMPLETE:
        return outcome
    query = [(key, one) for key in ("only", "except") for one in body.get(key, ())]
    try:
        plan = await client.call("GET", stack_path(outcome.stack, "drift", "plan"), query=query)
    except RequestError as error:
        if error.status not in REFUSALS:
            raise
        return outcome  # the next change of the stack would be refused
    if not (unknown := plan.get("unknown_states", ())):
        return outcome
    name = quote(outcome.stack["stack_name"])
    message = f"{describe_unknown(unknown, 'was not')}. `headgate stack drift {name}` says why"
    return replace(outcome, code=ExitCode.ERROR, message=message)


def describe_unknown(found: Sequence[Mapping[str, Json]], verb: str) -> str:
    """``2 resources were not repaired, because their state is unknown: a (last known: changed),
    b``. found: `unknown_states` of a plan. verb: of one resource. Pure."""
    count = format_count(len(found), "resource")
    if len(found) > 1:
        verb = verb.replace("was", "were")
    listed = ", ".join(map(known_state, found[:MAX_LISTED]))
    rest = f" and {len(found) - MAX_LISTED} more" if len(found) > MAX_LISTED else ""
    return plain(f"{count} {verb} repaired, because the state is unknown: {listed}{rest}")


async def _until_next(client: ApiClient, stack: Json, number: int) -> Json:
    """The converge when it has ended, or when a round after this one has started; None: another
    change of the stack has begun."""
    client.continuation = (
        "the converge continues on the server. `headgate stack drift"
        f" {quote(stack['stack_name'])}` shows its state"
    )
    polls = 0
    while True:
        converge = (await read_drift(client, stack))["converge"]
        if converge is None or converge["state"] == "ended":
            return None
        if converge["state"] not in PENDING or converge["round"] > number:
            return converge
        polls += 1
        await libraries.asyncio.sleep(POLLS.ceiling(polls))
