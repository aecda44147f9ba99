"""Rounds of `headgate stack converge`: repair, observe, and repair what differs again.

Each round is an update of its own, with the rights of the user, its hooks and its quotas.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hub.cli.client import ApiClient, stack_path
from hub.cli.context import err
from hub.cli.exit_codes import ExitCode
from hub.cli.options import WaitOptions
from hub.cli.stack_change import Outcome, wait_for_action
from hub.cli.stack_observation import request_observation, wait_until_observed
from hub.cli.tables import plain

Json = Any
#: Maximum number of rounds.
MAX_ROUNDS = 10
#: Resources that a sentence lists.
MAX_LISTED = 5
EXPIRED = "--timeout has expired while the stack is being observed; no further round starts"


async def run_rounds(
    client: ApiClient, stack: Json, body: Mapping[str, Json], wait: WaitOptions, rounds: int
) -> Outcome:
    """Converge a stack until it no longer differs, at most `rounds` times. body: of the update.
    wait: for all rounds together."""
    end = asyncio.get_running_loop().time() + wait.timeout
    number = 1
    while True:
        outcome = await _converge(client, stack, body, wait, end)
        if outcome.code != ExitCode.COMPLETE or rounds == 1:
            return outcome
        try:
            async with asyncio.timeout_at(end):
                left = await _read_left(client, stack, body)
        except TimeoutError:
            return replace(outcome, code=ExitCode.TIMED_OUT, message=EXPIRED)
        if not left:
            return outcome
        if number == rounds:
            message = f"after {rounds} rounds, {describe(left)}. Find out what changes the stack"
            return replace(outcome, code=ExitCode.ERROR, message=plain(message))
        text = f"Round {number} of {rounds} is complete, and {describe(left)}. Next round."
        err.print(plain(text), markup=False, soft_wrap=True)
        number += 1


async def _converge(
    client: ApiClient, stack: Json, body: Mapping[str, Json], wait: WaitOptions, end: float
) -> Outcome:
    """One round. end: in the time of the event loop."""
    await client.call("PATCH", stack_path(stack), body=body)
    rest = max(end - asyncio.get_running_loop().time(), 0)
    return await wait_for_action(client, stack["id"], "UPDATE", replace(wait, timeout=rest))


async def _read_left(
    client: ApiClient, stack: Json, body: Mapping[str, Json]
) -> list[Mapping[str, Json]]:
    """Observe the stack; return what another round would repair."""
    await request_observation(client, stack)
    drift = await wait_until_observed(client, stack)
    if not drift["resources"]:
        return []
    query = [(name, one) for name in ("only", "except") for one in body.get(name, ())]
    plan = await client.call("GET", stack_path(stack, "drift", "plan"), query=query)
    return repairable(drift, plan)


def repairable(drift: Mapping[str, Json], plan: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """The resources that differ and that a converge would change, according to its plan. Pure."""
    changes = plan["resource_changes"]
    changed = {one["path"] for kind in changes if kind != "unchanged" for one in changes[kind]}
    found = [one for one in drift["resources"] if one["state"] != "unknown"]
    return [one for one in found if one["path"] in changed]


def describe(left: Sequence[Mapping[str, Json]]) -> str:
    """``2 resources still differ: a (changed), b (missing)``. Pure."""
    names = ", ".join(f"{one['path']} ({one['state']})" for one in left[:MAX_LISTED])
    more = f" and {len(left) - MAX_LISTED} more" if len(left) > MAX_LISTED else ""
    count = "1 resource still differs" if len(left) == 1 else f"{len(left)} resources still differ"
    return f"{count}: {names}{more}"
