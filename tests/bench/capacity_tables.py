"""The tables of docs/explanation/capacity.md: measured costs, and what many engines would carry."""

import textwrap
from typing import Any

from tests.bench.figures import Figures, Key, figures_of, significant
from tests.bench.saturation import Costs, Load, simulate

Json = Any
PART = "capacity"
#: What is measured up to a million.
MILLIONS = {
    "million-tree": "a tree",
    "million-hooks": "waiting hooks",
    "million-stacks": "resources in many stacks",
}
ENGINE, API, SHOW = "engine, a resource", "API, a resource of a new stack", "API, show a stack"
#: The simulated numbers of engines and of cells, and the cores of each database.
ENGINES, CELLS, CORES = (10, 100, 1_000), (1, 4, 16, 64), 16


def tables(document: Json) -> str:
    """Raises KeyError if a figure of the part `capacity` is missing."""
    found = figures_of(document)
    lines = [
        *_origin(document, found, PART, "deliver"), "", *_engines(found), "", *_others(found), "",
        *_simulated(document),
    ]  # fmt: skip
    if measured := [name for name in MILLIONS if name in document["parts"]]:
        lines += [
            "",
            *_origin(document, found, *measured),
            "",
            *_scale(found),
            "",
            *_requests(found),
        ]
    return "\n".join(lines)


def _origin(document: Json, found: Figures, name: str, *others: str) -> list[str]:
    """Where and when a part was measured. others: parts of the same tables."""
    machine, part = document["machine"], document["parts"][name]
    loads = [
        value
        for key in found
        if key.part in (name, *others) and key.measure == "load"
        for value in found.runs(key)
    ]
    text = (
        f"Measured on {part['date'][:10]} at commit `{part['commit']}`"
        f"{' with changes' if part['changed'] else ''}: {machine['cores']} cores of"
        f" {machine['processor']}, PostgreSQL {machine['postgresql']}, load"
        f" {significant(min(loads))} to {significant(max(loads))}. CPU time in microseconds."
    )
    return textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)


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


def _scale(found: Figures) -> list[str]:
    """What changes need: the CPU time and the bytes of one unit, by the size of the whole."""
    rows = [
        "| | size | rate | server | PostgreSQL | one core of PostgreSQL carries"
        " | bytes of the database | the largest process |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for key in (one for one in found if one.part in MILLIONS and one.measure == "rate"):
        server, database, grown, memory = (
            found.value(key._replace(measure=measure))
            for measure in ("server_cpu", "postgres_cpu", "bytes", "memory")
        )
        rows.append(
            f"| {MILLIONS[key.part]}: {key.case} | {key.size:,} | {significant(found.value(key))}/s"
            f" | {significant(server)} | {significant(database)} | {_per_second(database)}"
            f" | {significant(grown)} | {significant(memory)} MB |"
        )
    return rows


def _requests(found: Figures) -> list[str]:
    """What a single request or a start takes, by what is stored."""
    rows = ["| | stored | median | server | PostgreSQL |", "|---|--:|--:|--:|--:|"]
    for key in (one for one in found if one.part in MILLIONS):
        row = f"| {MILLIONS[key.part]}: {key.case} | {key.size:,} | {significant(found.value(key))}"
        if key.measure == "seconds":
            rows.append(f"{row} s | | |")
        if key.measure == "median":
            used = " | ".join(
                significant(found.value(key._replace(measure=measure)))
                for measure in ("server_cpu", "postgres_cpu")
            )
            rows.append(f"{row} ms | {used} |")
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
