"""Patterns are matched against each resource: their number is limited, repetitions included, and
large stacks are planned outside the event loop."""

import threading
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio

import engine.service.traversals.planner as planner
from engine.errors import Findings
from engine.hooks import precedence, rule_patterns
from engine.hooks.precedence import Breakpoints
from engine.hooks.rule import Rule
from engine.hooks.rule_patterns import check_patterns
from engine.hooks.rule_reader import Declaration
from engine.hot.syntax.globs import MAX_GLOBS
from engine.service.hooks.breakpoints import MAX_BREAKPOINTS
from engine.words import Point
from tests.support.program import Json, Program, resource, template

MANY = ["*1"] * (MAX_GLOBS + 1)
RULES = [{"at": one, "on": "pre-create"} for one in MANY]
RESOURCES = {f"r{number}": resource() for number in range(12)}
TOO_MANY = f"There are {len(MANY)} patterns of resources; the maximum is {MAX_GLOBS}."


@pytest_asyncio.fixture(loop_scope="session")
async def run(in_own_project: Program) -> Program:
    await in_own_project.create("s", RESOURCES)
    assert await in_own_project.until_ended("s") == "CREATE_COMPLETE"
    return in_own_project


@pytest.mark.parametrize(
    "body",
    [
        {"environment": {"hooks": RULES}},
        {"hooks": {"add": RULES}},
        {"hooks": {"clear": MANY}},
        {"template": template(RESOURCES, hooks=RULES)},
    ],
    ids=["environment", "hooks.add", "hooks.clear", "template"],
)
@pytest.mark.parametrize("path", ["", "/preview"])
async def test_too_many_are_refused(run: Program, body: Json, path: str) -> None:
    request = {"stack_name": "t", "template": template(RESOURCES)} | body
    status, response = await run.call("POST", f"/stacks{path}", request)
    assert (status, TOO_MANY in response["error"]["message"]) == (400, True), response
    assert (await run.call("GET", "/stacks/t"))[0] == 404


@pytest.mark.parametrize("place", ["only", "except"])
async def test_too_many_of_a_partial_update_are_refused(run: Program, place: str) -> None:
    at = f"/stacks/s/{(await run.stack('s'))['id']}"
    for path in (at, f"{at}/preview"):
        body = {"template": template(RESOURCES), place: MANY}
        status, response = await run.call("PUT", path, body)
        assert (status, TOO_MANY in response["error"]["message"]) == (400, True), response


async def test_too_many_breakpoints_of_a_live_stack_are_refused(run: Program) -> None:
    at = f"/stacks/s/{(await run.stack('s'))['id']}/breakpoints"
    status, response = await run.call("POST", at, {"breakpoints": RULES})
    assert (status, TOO_MANY in response["error"]["message"]) == (400, True), response
    assert (await run.call("POST", at, {"breakpoints": RULES[1:]}))[0] == 201
    status, response = await run.call("POST", at, {"breakpoints": RULES[:1]})
    assert status == 400 and f"and {MAX_GLOBS} with patterns" in response["error"]["message"]
    plain = [f"r{number % 12}:pre-update" for number in range(MAX_BREAKPOINTS - MAX_GLOBS)]
    assert (await run.call("POST", at, {"breakpoints": plain}))[0] == 201
    assert (await run.call("POST", at, {"breakpoints": plain[:1]}))[0] == 400


@pytest.mark.parametrize("count", [planner.PLANNED_AT_ONCE, planner.PLANNED_AT_ONCE + 1])
async def test_large_stacks_are_planned_in_a_thread(
    run: Program, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    threads: list[bool] = []
    plan = vars(planner)["plan"]

    def is_planned(*args: Json) -> Json:
        threads.append(threading.current_thread() is threading.main_thread())
        return plan(*args)

    monkeypatch.setattr(planner, "plan", is_planned)
    resources = {f"r{number}": resource() for number in range(count)}
    body = {"stack_name": "large", "template": template(resources)}
    assert (await run.call("POST", "/stacks/preview", body))[0] == 200
    await run.create("large", resources)
    assert threads == [count <= planner.PLANNED_AT_ONCE] * 2


def record(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, position: int
) -> list[str]:
    """The values of one argument in all calls of a function by its module."""
    values: list[str] = []
    function = getattr(module, name)

    def record_calls(*args: Any) -> Any:
        values.append(args[position])
        return function(*args)

    monkeypatch.setattr(module, name, record_calls)
    return values


def test_each_pattern_is_matched_once_and_few_nearest_names_are_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matched = record(monkeypatch, rule_patterns, "reaches", 0)
    searched = record(monkeypatch, rule_patterns, "nearest_place", 0)
    rule = Rule(Point.PRE_CREATE, short=True)
    declared = [
        Declaration(f"x{number % 500}", rule, f"hooks[{number}]") for number in range(5_000)
    ]
    warnings = check_patterns(declared, {f"r{number}": {} for number in range(100)}, Findings())
    assert (len(matched), len(searched)) == (500, rule_patterns.MAX_WARNINGS)
    assert len(warnings) == rule_patterns.MAX_WARNINGS + 1


def test_cleared_breakpoints_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = record(monkeypatch, precedence, "matches_glob", 1)
    declared = [Declaration(f"r{number}", Rule(Point.PRE_CREATE), "x") for number in range(100)]
    cleared = [f"r{number}:pre-create" for number in range(0, 100, 2)]
    cleared += [f"r1:other-{number}" for number in range(1_000)]
    rules = Breakpoints(declared, cleared_breakpoints=cleared)
    left = [name for name in map("r{}".format, range(100)) if rules.find_rules(name)]
    assert left == [f"r{number}" for number in range(1, 100, 2)]
    assert compared == []
