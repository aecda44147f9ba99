"""Questions before changes that cannot be undone."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer

from hub.cli.exit_codes import ExitCode
from hub.cli.messages import stop
from hub.cli.printing.consoles import standard_error
from hub.cli.printing.tables import plain
from hub.cli.signals import code_of_abort

Json = Any
#: Kinds of resources that a question lists; the others are counted.
MAX_KINDS = 10
UNCHANGED = "nothing was changed"


def confirm(question: str, facts: Sequence[str], yes: bool) -> None:
    """Ask on the terminal, and end the command unless the answer is yes. facts: what is lost, one
    line each. yes: do not ask.

    Without a terminal the command cannot ask, and waiting for input could block a
    script: it is refused.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        reason = "standard input is not a terminal, so the command cannot ask for confirmation"
        stop(f"{UNCHANGED}: {reason}. Use --yes to skip the question.", ExitCode.ERROR)
    for line in facts:
        standard_error().print(plain(line), markup=False, soft_wrap=True)
    try:
        agreed = typer.confirm(plain(question), err=True)
    except typer.Abort as abort:
        typer.echo(err=True)
        if code_of_abort(abort) == ExitCode.INTERRUPTED:
            stop(f"interrupted; {UNCHANGED}", ExitCode.INTERRUPTED)
        stop(f"{UNCHANGED}; use --yes to skip the question", ExitCode.ERROR)  # the input ended
    if not agreed:
        stop(UNCHANGED, ExitCode.ERROR)


def existing_resources(resources: Iterable[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
    """Those with a physical resource or a nested stack. Pure."""
    return [one for one in resources if one["physical_resource_id"]]


def resource_facts(resources: Iterable[Mapping[str, Json]]) -> list[str]:
    """The number of resources of each type, most frequent first. Pure."""
    kinds = Counter(str(one["resource_type"]) for one in resources)
    ordered = sorted(kinds.items(), key=lambda one: (-one[1], one[0]))
    lines = [f"  {count} {kind}" for kind, count in ordered[:MAX_KINDS]]
    if rest := sum(count for _, count in ordered[MAX_KINDS:]):
        lines.append(f"  {rest} of {len(ordered) - MAX_KINDS} other types")
    return lines


def format_count(count: int, noun: str) -> str:
    """``1 resource``, ``3 resources``. Pure."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
