"""Tables of figures for the README and the documentation.

Each number is from a document. A row with a figure that was not measured is left out.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.bench.figures import (
    MEASURES,
    BadDocument,
    Better,
    Figures,
    Key,
    figures_of,
    format_value,
    growth,
    significant,
)
from tests.bench.plots import CHARTS

Json = Any
Block = Callable[[Json], str]
BEGIN, END = "<!-- figures: written by `make figures` -->", "<!-- end of figures -->"

#: What a row is about, and its figures as {part/case/size/measure}. Text in brackets is left out if
#: one of its figures was not measured; a row, if one outside of brackets was not.
ROWS: Sequence[tuple[str, str]] = (
    ("create through the API, 1,000 independent resources",
     "{create/wide/1000/rate}[ (the database alone: {create/wide/1000/limit})]"),
    ("the same in ten layers, two dependencies per resource",
     "{create/layered/1000/rate}[ ({create/layered/1000/limit})]"),
    ("10,000 independent resources; in ten layers",
     "{create/wide/10000/rate}; {create/layered/10000/rate}"),
    ("a chain of 1,000 resources", "{create/chain/1000/rate}[ ({create/chain/1000/limit})]"),
    ("update of all resources of a stack of 1,000; of 10,000",
     "{change/update all/1000/rate}; {change/update all/10000/rate}"),
    ("delete of a stack of 1,000; of 10,000",
     "{change/delete/1000/rate}; {change/delete/10000/rate}"),
    ("create and delete of a stack of 100,000",
     "{change/create/100000/rate}; {change/delete/100000/rate}"),
    ("update of one resource in a stack of 1,000",
     "{change/update one/1000/median}, of which {change/update one/1000/accept} until accepted"),
    ("the same in a stack of 10,000",
     "{change/update one/10000/median}, of which {change/update one/10000/accept}"),
    ("from an answer's POST to the start of the operation, median and p99",
     "{hook/signal to operation/0/median}, {hook/signal to operation/0/p99}"),
    ("the same with 10,000 other hooks waiting",
     "{hook/signal to operation/10000/median}, {hook/signal to operation/10000/p99}"),
    ("the same with 100,000 other hooks waiting",
     "{hook/signal to operation/100000/median}, {hook/signal to operation/100000/p99}"),
    ("memory of the server with 1,000 hooks waiting; with 10,000",
     "{hook/signal to operation/1000/memory}; {hook/signal to operation/10000/memory}"),
    ("database size of a waiting hook, including its resource",
     "{hook/signal to operation/10000/bytes}"),
    ("answers through the API to 1,000 hooks of one stack; of ten stacks in turn",
     "{hook/answer, one stack/1000/rate}; {hook/answer, many stacks/3000/rate}"),
    ("from the commit of an event to its webhook receiver, median; while another receiver hangs",
     "{deliver/webhook, one event/1/median}; {deliver/another target hangs/1/median}"),
    ("webhooks, ordered per stack",
     "{deliver/webhook/19200/rate}[ (HTTP client alone: {deliver/webhook/19200/limit})]"),
    ("AMQP with confirms, ordered per stack",
     "{deliver/amqp/19200/rate}[ (client alone: {deliver/amqp/19200/limit})]"),
    ("with 10,000 stacks and 16 concurrent requests: show a stack",
     "{read/show/10000/rate}, p99 {read/show/10000/p99}"
     "[ (empty handler: {read/empty handler/10000/rate};"
     " single-row query: {read/query for one row/10000/rate})]"),
    ("list 20 stacks: the first page; half way; by name",
     "{read/list 20, first page/10000/rate}; {read/list 20, half way/10000/rate};"
     " {read/list 20, by name/10000/rate}"),
    ("stacks of one resource accepted and completed",
     "{read/accept and complete it/10000/rate}"),
    ("event stream readers: memory of each; CPU time of an event for each",
     "{stream/memory of a reader/2000/bytes}; {stream/event of a reader/2000/server_cpu}"),
    ("create of 5,000 resources by two engines; with both restarted meanwhile",
     "{restart/create/5000/seconds}; {restart/create, both engines restarted/5000/seconds}"),
    ("recovery of an operation after its engine was killed, with a lease of 1 s",
     "{restart/call after a crash, lease 1 s/1/seconds}"),
    ("parse, validate and plan a YAML template of 1,000 resources with five functions each;"
     " of 10,000",
     "{language/YAML/1000/seconds}; {language/YAML/10000/seconds}"
     "[ (PyYAML's C loader, parsing alone: {language/YAML, parsed only/1000/seconds};"
     " {language/YAML, parsed only/10000/seconds})]"),
    ("a graph of 2,000 nodes in the dashboard: first paint; panning",
     "{dashboard/all nodes: draw/2000/median}; {dashboard/all nodes: pan all/2000/frames}"),
    ("of 10,000, collapsed (the same number of plain rectangles)",
     "{dashboard/collapsed: draw/10000/median} ({dashboard/collapsed: rectangles/10000/median});"
     " {dashboard/collapsed: pan all/10000/frames}"
     " ({dashboard/collapsed: pan rectangles/10000/frames})"),
)  # fmt: skip
FIGURE = re.compile(r"\{([^}]*)\}")
_OPTIONAL = re.compile(r"\[([^\]]*)\]")


def readme(document: Json) -> str:
    """What was measured, and the table of ROWS."""
    figures = figures_of(document)
    rows = [(label, cells(figures, text)) for label, text in ROWS]
    table = [f"| {label} | {text} |" for label, text in rows if text]
    return "\n".join([*about(document), "", "| | |", "|---|---|", *table])


def cells(figures: Figures, text: str) -> str:
    """The text with its figures; "": one was not measured."""
    text = _OPTIONAL.sub(lambda part: cells(figures, part[1]), text)
    keys = [key_of(match) for match in FIGURE.findall(text)]
    if not all(key in figures for key in keys):
        return ""
    return FIGURE.sub(lambda match: figure(figures, key_of(match[1])), text)


def key_of(text: str) -> Key:
    part, case, size, measure = text.split("/")
    return Key(part, case, int(size), measure)


def figure(figures: Figures, key: Key) -> str:
    return format_value(key.measure, figures.value(key))


def about(document: Json) -> list[str]:
    """Date, commit, machine, load and sizes, in lines."""
    machine, parts = document["machine"], document["parts"]
    dates = sorted({part["date"][:10] for part in parts.values()})
    commits = dict.fromkeys(
        f"`{part['commit']}`{' with changes' if part['changed'] else ''}" for part in parts.values()
    )
    figures = figures_of(document)
    loads = [value for key in figures if key.measure == "load" for value in figures.runs(key)]
    text = (
        f"Measured on {' and '.join(dates)} at commit {', '.join(commits)}:"
        f" {machine['cores']} cores of {machine['processor']}, {machine['memory_mb'] // 1000} GB,"
        f" {machine['system']}, Python {machine['python']}, the"
        f" embedded PostgreSQL {machine['postgresql']} on"
        f" {machine['file_system']}, where a durable commit takes"
        f" {format_value('median', machine['commit_ms'])}; load {significant(min(loads))} to"
        f" {significant(max(loads))}. Each value is the median of its runs;"
        " [docs/figures.json](docs/figures.json) has them all. Parts:"
        f" {', '.join(parts)}; sizes of stacks: {sizes(figures)}."
    )
    return textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)


#: Cases whose size is that of a stack.
SIZED = (("create", "wide"), ("create", "layered"), ("create", "chain"), ("change", "delete"))


def sizes(figures: Figures) -> str:
    """Sizes of stacks with the number of their runs: ``1,000 (3 runs)``."""
    runs: dict[int, int] = {}
    for key in figures:
        if key[:2] in SIZED and key.measure == "rate":
            runs[key.size] = max(runs.get(key.size, 0), len(figures.runs(key)))
    return ", ".join(
        f"{size:,} ({runs[size]} run{'s' * (runs[size] > 1)})" for size in sorted(runs)
    )


def growth_table(document: Json) -> str:
    """How many times one unit costs at the largest size what it costs at the smallest from 1,000,
    for each line of the charts."""
    figures = figures_of(document)
    lines = [
        "| | sizes | rate, as cost | server CPU | PostgreSQL CPU | median latency |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    cases = {line[:2] for chart in CHARTS.values() for line in chart.lines.values()}
    for part, case in sorted(cases):
        ratios = [growth(figures, part, case, name) for name in _GROWING]
        if largest := next(filter(None, ratios), None):
            shown_ratios = " | ".join(f"{ratio[2]:.2f}" if ratio else "" for ratio in ratios)
            lines.append(f"| {part}: {case} | {largest[0]:,} → {largest[1]:,} | {shown_ratios} |")
    return "\n".join(lines)


def performance(document: Json) -> str:
    """The tables of docs/explanation/performance.md."""
    tables = [growth_table(document)]
    if limits := limits_table(document):
        tables.append("Beside their limits, at the largest size with a limit:\n\n" + limits)
    if aims := aims_table(document):
        tables.append("Beside their aims on two quiet cores:\n\n" + aims)
    return "\n\n".join(tables)


#: The columns of the table of stacks on OpenStack.
_OPENSTACK = (
    "seconds", "server_cpu", "tokens", "requests",
    "keystone", "nova", "neutron", "cinder", "glance",
)  # fmt: skip


def openstack(document: Json) -> str:
    """The table of docs/explanation/comparison.md: stacks on OpenStack, beside Heat."""
    found, machine, part = figures_of(document), document["machine"], document["parts"]["openstack"]
    cases = dict.fromkeys(key[:3] for key in found)
    rows = [
        f"| {case} | {size} | {' | '.join(_columns(found, part_, case, size))} |"
        for part_, case, size in sorted(cases, key=lambda one: one[2])
    ]
    loads = [value for key in found if key.measure == "load" for value in found.runs(key)]
    text = (
        f"Measured on {part['date'][:10]} at commit `{part['commit']}`"
        f"{' with changes' if part['changed'] else ''}: {machine['cores']} cores of"
        f" {machine['processor']}, load {significant(min(loads))} to {significant(max(loads))}."
    )
    titles = [MEASURES[name].title for name in _OPENSTACK]
    header = [f"| | servers | {' | '.join(titles)} |", f"|---|--:|{'--:|' * len(titles)}"]
    lines = textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, "", *header, *rows])


def _columns(figures: Figures, part: str, case: str, size: int) -> Iterator[str]:
    for name in _OPENSTACK:
        key = Key(part, case, size, name)
        if key not in figures:
            yield ""
        elif MEASURES[name].unit:
            yield figure(figures, key)
        else:
            yield f"{figures.value(key):,.0f}"


_CPU = "CPU time"
_TURNS = "commits, one after the other"
_TEMPLATE = "reading the template"
_LATENCY = "transactions, one after the other"
#: What is measured, its aim, and what limits it. The aim of a delete is the rate of a create.
AIMS: Sequence[tuple[str, float | str, str]] = (
    ("create/wide/1000/rate", 12_000, _CPU),
    ("create/wide/10000/rate", 12_000, _CPU),
    ("create/layered/1000/rate", 10_000, _CPU),
    ("create/chain/1000/rate", 800, _TURNS),
    ("create/values/1000/rate", 8_000, _CPU),
    ("create/400 stacks at once/50/rate", 10_000, _CPU),
    ("create/400 stacks at once/50/accept", 10, f"{_CPU}: 16 requests share two cores"),
    ("read/accept a stack of one/10000/rate", 600, _CPU),
    ("read/accept, one client/10000/median", 5, f"{_TEMPLATE}, and {_LATENCY}"),
    ("change/update one/1000/median", 20, _TEMPLATE),
    ("change/update one/10000/median", 20, _TEMPLATE),
    ("change/delete/10000/rate", "change/create/10000/rate", _CPU),
    ("hook/signal to operation/10000/median", 5, _LATENCY),
    ("hook/signal to operation/10000/p99", 15, _LATENCY),
    ("hook/answer, one stack/1000/rate", 2_000, _CPU),
    ("hook/answer, many stacks/3000/rate", 3_000, _CPU),
    ("hook/show during: answer, one stack/1000/p99", 50, _CPU),
    ("deliver/webhook/19200/share", 60, _CPU),
    ("deliver/amqp/19200/share", 60, _CPU),
    ("read/show/10000/rate", 3_000, _CPU),
    ("read/list 20, first page/10000/rate", 1_500, _CPU),
    ("change/delete/10000/memory", 300, "the largest template that was parsed"),
)


def aims_table(document: Json) -> str:
    """The figures of AIMS that were measured, with the rate that the CPU times of a unit allow; "":
    none."""
    figures, cores = figures_of(document), document["machine"].get("cores", 1)
    rows = []
    for text, aim, cause in AIMS:
        key = key_of(text)
        wanted = key_of(aim) if isinstance(aim, str) else None
        if key not in figures or (wanted and wanted not in figures):
            continue
        value, aimed = figures.value(key), figures.value(wanted) if wanted else float(aim)
        higher = MEASURES[key.measure].better is Better.HIGHER
        reached = value >= aimed if higher else value <= aimed
        title = "" if key.measure in ("rate", "median") else f", {MEASURES[key.measure].title}"
        columns = (
            f"{key.part}: {key.case}{title}", f"{key.size:,}", format_value(key.measure, aimed),
            figure(figures, key), "yes" if reached else f"{value / aimed:.2f} times the aim",
            _possible(figures, key, cores), cause,
        )  # fmt: skip
        rows.append(f"| {' | '.join(columns)} |")
    header = ["| | size | aim | measured | reached | the cores allow | what limits it |",
              "|---|--:|--:|--:|--:|--:|---|"]  # fmt: skip
    return "\n".join([*header, *rows]) if rows else ""


def _possible(figures: Figures, key: Key, cores: int) -> str:
    """The rate at which all cores are busy with this; "": not a rate, or without CPU times."""
    used = [key._replace(measure=f"{name}_cpu") for name in ("server", "postgres", "client")]
    if key.measure != "rate" or not all(one in figures for one in used):
        return ""
    return format_value("rate", cores * 1e6 / sum(figures.value(one) for one in used))


#: What the limit of a case is, where it has one.
_GRAPHS = "PostgreSQL alone executes the same graph, in sets"
_HANDLER = "a bare server: one statement for each request"
LIMITS: dict[tuple[str, str], str] = {
    ("create", "wide"): _GRAPHS,
    ("create", "layered"): _GRAPHS,
    ("create", "chain"): f"{_GRAPHS} of one node",
    ("create", "values"): f"{_GRAPHS} of one node",
    ("create", "400 stacks at once"): f"{_GRAPHS}, over 16 connections",
    ("create", "2000 stacks at once"): f"{_GRAPHS}, over 16 connections",
    ("read", "accept a stack of one"): f"{_HANDLER}, a durable insert",
    ("read", "accept, one client"): f"{_HANDLER}, a durable insert",
    ("change", "update one"): "a bare server that decodes the template and inserts it durably",
    ("hook", "signal to operation"): "a bare server: a durable update, a notification, an update",
    ("hook", "answer, one stack"): f"{_HANDLER}, a durable update with a notification",
    ("hook", "answer, many stacks"): f"{_HANDLER}, a durable update with a notification",
    ("deliver", "webhook"): "a client that signs and sends",
    ("deliver", "amqp"): "a client that sends and awaits confirms",
    ("read", "show"): f"{_HANDLER}, one row by its key",
    ("read", "list 20, first page"): f"{_HANDLER}, 20 rows of an index",
    ("read", "list 20, by name"): f"{_HANDLER}, 20 rows of an index",
}


def limits_table(document: Json) -> str:
    """The figures of LIMITS that were measured beside their limits; "": none."""
    figures = figures_of(document)
    rows = []
    for (part, case), text in LIMITS.items():
        for measure, limit in (("rate", "limit"), ("median", "limit_ms")):
            key = max((key for key in figures if key[:2] == (part, case) and key.measure == limit),
                      default=None)  # fmt: skip
            if key is None or (measured := key._replace(measure=measure)) not in figures:
                continue
            share = figures.value(measured) / figures.value(key)
            shown = f"{100 * share:.0f} %" if measure == "rate" else f"{share:.1f} times"
            rows.append(f"| {part}: {case} | {key.size:,} | {figure(figures, measured)} |"
                        f" {figure(figures, key)} | {shown} | {text} |")  # fmt: skip
    header = ["| | size | measured | limit | of the limit | the limit is |",
              "|---|--:|--:|--:|--:|---|"]  # fmt: skip
    return "\n".join([*header, *rows]) if rows else ""


_GROWING = ("rate", "server_cpu", "postgres_cpu", "median")
assert set(_GROWING) <= set(MEASURES)


def with_block(page: Path, block: str) -> str:
    """The page with this text between its markers. Raises BadDocument."""
    text = page.read_text()
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise BadDocument(f"{page}: it has no lines {BEGIN} and {END}; add them around the figures")
    return f"{head}{BEGIN}\n\n{block}\n\n{END}{tail}"
