"""headgate admin upgrade-check: whether this program may start on a database, beside the processes
that run on it."""

from collections.abc import Iterator, Sequence

from engine.errors import HeadgateError
from engine.store.connection import Connection
from engine.store.schema.compatibility import RunningProgram, contract_of
from engine.store.schema.routine_versions import own_version
from engine.store.schema.upgrade import UpgradePlan, is_outdated, own_program, plan_upgrade
from hub.checks.database import MAX_NAMED, CheckResult, CheckState, error_result, ok_result

#: A place of the documentation.
GUIDE = "docs/how-to/run-at-scale.md"


async def check_upgrade(conn: Connection, version: str) -> list[CheckResult]:
    """version: of this program. The last result is whether it may start."""
    own = own_program(version)
    about = f"{own} knows migrations up to {own.migration}, and routines of version {own.routines}"
    program = ok_result("program", about)
    try:
        plan = await plan_upgrade(conn, version)
    except HeadgateError as error:
        return [program, error_result("start", error)]
    return [program, *judge_upgrade(plan)]


def judge_upgrade(plan: UpgradePlan) -> Iterator[CheckResult]:
    """What the start of a program does, and whether it may start."""
    yield ok_result("schema", _describe_schema(plan))
    yield ok_result("routines", _describe_routines(plan))
    yield ok_result("processes", f"running: {name_programs(plan.running)}")
    try:
        plan.check_running()
    except HeadgateError as error:
        yield error_result("start", error)
        return
    if plan.running:
        yield ok_result("start", f"{plan.own} may start beside the running processes")
    else:
        yield ok_result("start", f"{plan.own} may start")


def _describe_schema(plan: UpgradePlan) -> str:
    if plan.unknown:
        later = ", ".join(plan.unknown)
        return f"a later headgate has added {later}; this headgate works with it"
    if not plan.pending:
        return "the schema is up to date"
    names = ", ".join(one.name for one in plan.pending)
    needs = "".join(
        f"; with {one.name}, only programs that know {needed} can run"
        for one in plan.pending
        if (needed := contract_of(one))
    )
    return f"the start applies {names}{needs}"


def _describe_routines(plan: UpgradePlan) -> str:
    own = own_version()
    if is_outdated(plan.routines, own):
        return f"the start replaces {plan.routines or 'nothing'} with {own}"
    if plan.routines != own:
        return f"the database has {plan.routines}, which is later; this headgate works with it"
    return f"the database has {own} of this headgate"


def name_programs(running: Sequence[RunningProgram]) -> str:
    """The programs of processes, each with its hosts: headgate 0.1.0 (a, b); headgate 0.2.0 (c)."""
    hosts: dict[str, list[str]] = {}
    for one in sorted(running, key=lambda one: (one.program.migration, one.program.routines)):
        hosts.setdefault(_name(one), []).append(one.host)
    named = [f"{name} ({', '.join(sorted(set(on))[:MAX_NAMED])})" for name, on in hosts.items()]
    return "; ".join(named) or "none"


def _name(one: RunningProgram) -> str:
    program = one.program
    if not program.version:
        return str(program)
    return f"{program}, {program.migration}, routines {program.routines}"


def check_processes(running: Sequence[RunningProgram]) -> CheckResult:
    """For doctor: whether all running processes have one version."""
    if not running:
        return ok_result("processes", "no process runs")
    programs = {one.program for one in running}
    if len(programs) == 1:
        return ok_result("processes", f"running: {name_programs(running)}")
    reason = f"processes of {len(programs)} versions run: {name_programs(running)}"
    remedy = f"Finish the upgrade; {GUIDE} has the steps"
    return CheckResult("processes", CheckState.WARNING, reason, remedy)
