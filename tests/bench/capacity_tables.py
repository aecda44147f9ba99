"""The tables of docs/explanation/capacity.md: measured costs, and what many engines would carry."""

import textwrap
from typing import Any

from tests.bench.figures import Figures, Key, figures_of, significant
from tests.bench.saturation import Costs, Load, simulate

Json = Any
PART = "capacity"
ENGINE, API, SHOW = "engine, a resource", "API, a resource of a new stack", "API, show a stack"
#: The simulated numbers of engines and of cells, and the cores of each database.
ENGINES, CELLS, CORES = (10, 100, 1_000), (1, 4, 16, 64), 16


def tables(document: Json) -> str:
    """Raises KeyError if a figure of the part is missing."""
    found, machine, part = figures_of(document), document["machine"], document["parts"][PART]
    loads = [value for key in found if key.measure == "load" for value in found.runs(key)]
    text = (
        f"Measured on {part['date'][:10]} at commit `{part['commit']}`"
        f"{' with changes' if part['changed'] else ''}: {machine['cores']} cores of"
        f" {machine['processor']}, PostgreSQL {machine['postgresql']}, load"
        f" {significant(min(loads))} to {significant(max(loads))}. CPU time in microseconds."
    )
    lines = textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, "", *_engines(found), "", *_others(found), "", *_simulated(document)])


def _numbers(found: Figures) -> list[int]:
    return sorted({key.size for key in found if key.case == ENGINE})


def _engines(found: Figures) -> list[str]:
    rows = [
        "| engines on one database | an engine | PostgreSQL | commits"
        " | one core of an engine carries | one core of PostgreSQL carries |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for number in _numbers(found):
        engine, database, commits = (
            found.value(Key(PART, ENGINE, number, measure))
            for measure in ("server_cpu", "postgres_cpu", "commits")
        )
        rows.append(
            f"| {number} | {significant(engine)} | {significant(database)} | {significant(commits)}"
            f" | {_per_second(engine)} | {_per_second(database)} |"
        )
    return rows


def _others(found: Figures) -> list[str]:
    few, many = _numbers(found)[0], _numbers(found)[-1]
    rows = ["| | the process | PostgreSQL | one core of the process carries |", "|---|--:|--:|--:|"]
    for title, key in (
        ("API: a resource of a new stack", Key(PART, API, few, "server_cpu")),
        ("API: show a stack", Key(PART, SHOW, few, "server_cpu")),
        ("dispatcher: a webhook", Key("deliver", "webhook", 19_200, "server_cpu")),
    ):
        database = key._replace(measure="postgres_cpu")
        if key in found:
            cost = found.value(key)
            used = significant(found.value(database)) if database in found else ""
            rows.append(f"| {title} | {significant(cost)} | {used} | {_per_second(cost)} |")
    idle, database_idle = (
        found.value(Key(PART, case, many, "core")) for case in ("engine, idle", "PostgreSQL, idle")
    )
    rows.append(
        f"| an idle engine, of a core | {significant(idle, 2)} %"
        f" | {significant(database_idle / many, 2)} % | |"
    )
    return rows


def _per_second(microseconds: float) -> str:
    return f"{significant(1e6 / microseconds, 2)}/s"


def measured_costs(document: Json) -> Costs:
    found = figures_of(document)
    numbers = _numbers(found)

    def seconds(measure: str) -> dict[int, float]:
        return {number: found.value(Key(PART, ENGINE, number, measure)) / 1e6 for number in numbers}

    most = numbers[-1]
    return Costs(
        seconds("server_cpu"),
        seconds("postgres_cpu"),
        batch=1 / found.value(Key(PART, ENGINE, most, "commits")),
        flush=document["machine"]["commit_ms"] / 1000,
        idle=found.value(Key(PART, "PostgreSQL, idle", most, "core")) / 100 / most,
    )


def _simulated(document: Json) -> list[str]:
    costs = measured_costs(document)
    rows = [
        f"| engines | {' | '.join(_cells(count) for count in CELLS)} |",
        f"|--:|{'---|' * len(CELLS)}",
    ]
    for engines in ENGINES:
        loads = [simulate(costs, engines, cells, CORES) for cells in CELLS]
        rows.append(f"| {engines:,} | {' | '.join(map(_load, loads))} |")
    return rows


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _load(load: Load) -> str:
    return (
        f"{significant(load.rate, 2)}/s, {load.limit} (engines {load.engines:.0%},"
        f" PostgreSQL {load.database:.0%})"
    )
