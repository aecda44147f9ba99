"""Measures the parts of the product, prints tables, and writes a JSON document of all figures.

``python -m tests.bench create hooks``: those parts alone. ``--beside DIR``: also measures another
checkout, in turn with this one. See CONTRIBUTING.md.
"""

import argparse
import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from tests.bench import compare, figures, hot_path, machine, scale
from tests.bench.capacity import capacity
from tests.bench.change import change
from tests.bench.channels import deliveries
from tests.bench.create import create
from tests.bench.dashboard import graph
from tests.bench.deadlines import deadlines
from tests.bench.hooks import hooks
from tests.bench.language import language
from tests.bench.observe import observe
from tests.bench.openstack import openstack
from tests.bench.reads import reads
from tests.bench.restarts import restarts
from tests.bench.run import Run
from tests.bench.scale import million_hooks, million_stacks, million_tree
from tests.bench.server import ROOT, BenchPostgres, running_postgres
from tests.bench.streams import streams
from tests.bench.trees import trees

Json = Any
#: In the order of a run.
PARTS: Mapping[str, Callable[[Run], Awaitable[None]]] = {
    "create": create,
    "change": change,
    "hook": hooks,
    "deadline": deadlines,
    "read": reads,
    "deliver": deliveries,
    "stream": streams,
    "tree": trees,
    "restart": restarts,
    "observe": observe,
    "capacity": capacity,
    "million-tree": million_tree,
    "million-hooks": million_hooks,
    "million-stacks": million_stacks,
    "language": language,
    "dashboard": graph,
    "openstack": openstack,
}
#: Parts of a run that names none. The others have documents of their own, see CONTRIBUTING.md.
USUAL = tuple(name for name in PARTS if name not in ("capacity", "openstack", *scale.PARTS))
DEFAULT = ROOT / "build" / "bench.json"


def main(arguments: Sequence[str]) -> None:
    options = parse_arguments(arguments)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            runner.run(measure(options))
        except asyncio.CancelledError:
            sys.exit("bench: terminated")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        help=f"of {', '.join(PARTS)}; default: all but capacity, million-* and openstack",
    )
    parser.add_argument("--rounds", type=int, default=5, help="runs of each small size")
    parser.add_argument(
        "--sizes", type=sizes, default=(100, 1_000, 10_000), help="resources: 100,1000"
    )
    parser.add_argument("--largest", type=int, default=100_000, help="resources; 0: none")
    parser.add_argument(
        "--servers", type=sizes, default=(10, 50), help="of the part openstack: 10,50,100"
    )
    parser.add_argument(
        "--no-limits", action="store_true", help="without the limits of the machine"
    )
    parser.add_argument("--json", type=Path, default=DEFAULT, help="the document to write")
    parser.add_argument("--add", action="store_true", help="keep the other parts of that document")
    parser.add_argument("--beside", type=Path, help="a checkout with its own .venv")
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]}; parts are {', '.join(PARTS)}")
    return options


def sizes(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(size) for size in text.split(",")))


async def measure(options: argparse.Namespace) -> None:
    task = asyncio.current_task()
    assert task
    # Stop the servers also when this process is terminated.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with running_postgres() as postgres:
        metadata = await describe_run(postgres)
        print(heading(metadata), end="\n\n", flush=True)
        if options.beside:
            await measure_beside(options, postgres, metadata)
        else:
            await measure_parts(options, postgres, metadata)


async def measure_parts(
    options: argparse.Namespace, postgres: BenchPostgres, metadata: Json
) -> None:
    run = new_run(options, postgres, rounds=options.rounds)
    previous = figures.read(options.json) if options.add else None
    for name in options.parts or USUAL:
        await PARTS[name](run)
        derived = figures.derive(run.figures)
        print(figures.table(derived, name), end="\n\n", flush=True)
        figures.write(options.json, figures.document(derived, metadata, previous))
    print(f"written: {options.json}")


async def measure_beside(
    options: argparse.Namespace, postgres: BenchPostgres, metadata: Json
) -> None:
    """Each round measures the other checkout, then this one."""
    sources = (options.beside.resolve(), ROOT)
    runs = [new_run(options, postgres, rounds=1, source=source) for source in sources]
    for number in range(options.rounds):
        for run in runs:
            print(f"round {number + 1}: {run.source}", file=sys.stderr, flush=True)
            for name in options.parts or USUAL:
                await PARTS[name](run)
    documents = [
        figures.document(figures.derive(run.figures), metadata | origin_of(run.source))
        for run in runs
    ]
    beside = options.json.with_stem(f"{options.json.stem}-beside")
    for path, document in zip((beside, options.json), documents, strict=True):
        figures.write(path, document)
    print(compare.table(*documents))
    print(f"\nwritten: {beside}, {options.json}")


def new_run(options: argparse.Namespace, postgres: BenchPostgres, **more: Any) -> Run:
    return Run(
        postgres,
        sizes=options.sizes,
        largest=options.largest,
        servers=options.servers,
        limits=not options.no_limits,
        **more,
    )


async def describe_run(postgres: BenchPostgres) -> Json:
    async with postgres.connection() as conn:
        version = await conn.fetchval("show server_version")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **origin_of(ROOT),
        "machine": {
            **machine.describe(postgres.folder),
            "postgresql": version.split()[0],
            "commit_ms": round(await postgres.commit_ms(), 2),
        },
    }


def origin_of(source: Path) -> Json:
    """The commit of a checkout, "" where Git knows none; whether its files differ from it; and the
    digests of its hot path."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=source, capture_output=True, text=True).stdout.strip()

    return {
        "commit": git("rev-parse", "--short=12", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        "hot_path": hot_path.digests(source),
    }


def heading(metadata: Json) -> str:
    about = metadata["machine"]
    return (
        f"{about['cores']} cores of {about['processor']}, {about['system']},"
        f" Python {about['python']}, PostgreSQL {about['postgresql']} on {about['file_system']};"
        f" a durable commit takes {about['commit_ms']:.1f} ms; load {machine.load():.1f}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
