"""A stack tree as a Hypothesis state machine on the real store, with workers that the test moves.

Random trees of three levels with breakpoints at any of them; updates, cancels, stops and deletes at
any time; operations that fail or wait; workers that die between any two steps, also between the
start of a nested stack and the commit that parks its parent. After every step the rules of
stack_rules.py hold in every stack. At the end the tree completes, the objects are those of the last
template, and a delete leaves nothing.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from engine.errors import HeadgateError
from engine.principal import principal_of_name
from engine.service import Answer, Engine, StackRequest
from engine.types.contract import Failed, Outcome, Wait
from engine.words import AnswerChannel, Decision, Json
from engine.work.timers import Timers
from tests.property.machines import TIMES, StoreMachine, run_machine
from tests.property.stack_rules import breaches
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ONE_DAY, ManualWorker, expire_leases_and_timers
from tests.support.scripted_type import Thing, World

EXAMPLES, STEPS, ROUNDS = 20 * TIMES, 40, 400
ANN = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
PAST = "update hook set deadline = clock_timestamp() - interval '1 second' where id = $1"
STACKS = """
select s.id, s.parent_id, s.deleted_at is not null as deleted, t.state
  from stack s join traversal t on t.stack_id = s.id and t.number = s.traversal
 where s.project = $1 order by s.created_at
"""
WAITING = "select id from hook where project = $1 and state = 'waiting' order by opened_at, id"
STORY = """
select s.path, e.sequence, e.resource_name, e.type, e.action, e.status, e.reason
  from event e join stack s on s.id = e.stack_id where s.project = $1 order by e.time, e.sequence
"""
UNDER_WAY = """
select n.stack_id from node n join stack s on s.id = n.stack_id
 where s.project = $1 and n.state in ('ready', 'running', 'parked')
"""

LEAF = """
heat_template_version: 2018-08-31
parameters: {size: {type: number}}
resources:
  x: {type: Test::Thing, properties: {size: {get_param: size}}}
  y: {type: Test::Thing, depends_on: x, properties: {size: {get_param: size}}}
outputs: {size: {value: {get_attr: [y, size]}}}
"""
BRANCH = """
heat_template_version: 2018-08-31
parameters: {size: {type: number}}
resources:
  z: {type: Test::Thing, properties: {size: {get_param: size}}}
  in: {type: leaf.yaml, depends_on: z, properties: {size: {get_param: size}}}
outputs: {size: {value: {get_attr: [in, size]}}}
"""
FILES = {"leaf.yaml": LEAF, "branch.yaml": BRANCH}
#: Number of objects of each type.
THINGS = {"Test::Thing": 1, "leaf.yaml": 2, "branch.yaml": 3}
PATHS = ("a", "b", "*/x", "*/y", "*/z", "*/in", "*/in/y", "b/*", "*/*/x")
RequestedChange = tuple[dict[str, Json], list[Json]]


@st.composite
def changes(draw: st.DrawFn) -> RequestedChange:
    """Resources of the root stack, and breakpoints in short form, which may match nothing."""
    resources: dict[str, Json] = {}
    for name in draw(st.sampled_from((("a",), ("a", "b"), ("b", "a"), ("a", "b", "c")))):
        size: Json = draw(st.integers(1, 2))
        reads: bool = draw(st.booleans())
        if resources and reads:
            size = {"get_attr": [draw(st.sampled_from(sorted(resources))), "size"]}
        kind = draw(st.sampled_from(sorted(THINGS)))
        resources[name] = {"type": kind, "properties": {"size": size}}
    points = st.sampled_from(("pre-create", "post-create", "pre-update", "pre-delete"))
    hooks = draw(st.dictionaries(st.sampled_from(PATHS), points, max_size=2))
    return resources, [{"path": path, "point": point} for path, point in hooks.items()]


def size_of(resources: dict[str, Json], name: str) -> int:
    size = resources[name]["properties"]["size"]
    return size_of(resources, size["get_attr"][0]) if isinstance(size, dict) else int(size)


def environment(hooks: list[Json]) -> Json:
    """Heat's form, a level of the map for each of the path."""
    found: dict[str, Json] = {}
    for one in hooks:
        level = found
        for name in one["path"].split("/"):
            level = level.setdefault(name, {})
        level["hooks"] = one["point"]
    return {"resource_registry": {"resources": found}} if found else {}


class TreeMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.engine: Engine = idle_engine(self.database, Thing(self.world), new_id=self.new_id)
        registry = make_registry(Thing(self.world))
        self.workers = [
            ManualWorker(self.database, registry, self.engine.stacks.end_traversal, self.new_id,
                  run_nested=self.engine.nested.run_operation)
            for _ in range(2)
        ]  # fmt: skip
        self.timers = Timers(
            self.database, poll=ONE_DAY, default_timeout=ONE_DAY, new_id=self.new_id
        )
        self.stack_id: UUID | None = None
        self.change: RequestedChange = ({}, [])
        self.project = f"t-{self.new_id()}"

    def new_id(self) -> UUID:
        self.counts["ids"] += 1
        return UUID(int=(1 << 96) + self.counts["ids"])

    async def _all(self, query: str, *args: Any) -> list[Any]:
        async with self.database.connection() as conn:
            return list(await conn.fetch(query, *args))

    def all(self, query: str, *args: Any) -> list[Any]:
        found: list[Any] = self.wait(self._all(query, *args))
        return found

    def stacks(self) -> list[Any]:
        return self.all(STACKS, self.project)

    @property
    def id(self) -> UUID:
        assert self.stack_id is not None
        return self.stack_id

    def gone(self) -> bool:
        return any(row["id"] == self.stack_id and row["deleted"] for row in self.stacks())

    # -- users

    @initialize(change=changes(), rollback=st.booleans())
    def create(self, change: RequestedChange, rollback: bool) -> None:
        request = self.request(change, disable_rollback=not rollback)
        self.stack_id = self.wait(self.engine.stacks.create(self.project, request)).id
        self.change = change

    def request(self, change: RequestedChange, **more: Any) -> StackRequest:
        resources, hooks = change
        return StackRequest(
            name="s", template={"heat_template_version": "2018-08-31", "resources": resources},
            environment=environment(hooks), files=FILES,
            requested_by=principal_of_name("ann"), **more,
        )  # fmt: skip

    @rule(
        what=st.sampled_from(
            ("update", "update", "resume", "cancel", "roll back", "stop", "delete")
        ),
        change=changes(),
        patience=st.integers(0, 1),
    )
    def ask(self, what: str, change: RequestedChange, patience: int) -> None:
        if patience or self.gone():
            return
        here = (self.project, self.id)
        resumed = StackRequest(
            existing=True, hooks_clear=["*"], requested_by=principal_of_name("ann")
        )
        requests: dict[str, Callable[[], Any]] = {
            "update": lambda: self.engine.stacks.update(*here, self.request(change)),
            "resume": lambda: self.engine.stacks.update(*here, resumed),
            "cancel": lambda: self.engine.stacks.cancel(
                *here, principal_of_name("ann"), rollback=False
            ),
            "roll back": lambda: self.engine.stacks.cancel(
                *here, principal_of_name("ann"), rollback=True
            ),
            "stop": lambda: self.engine.stacks.stop(*here, principal_of_name("ann")),
            "delete": lambda: self.engine.stacks.delete(*here, principal_of_name("ann")),
        }
        try:
            self.wait(requests[what]())
            self.counts[what] += 1
            if what == "update":
                self.change = change
        except HeadgateError as error:
            assert error.finding.reason

    @rule(which=st.integers(0, 9), decision=st.sampled_from((*Decision, Decision.CONTINUE, None)))
    def hook(self, which: int, decision: Decision | None) -> None:
        waiting = self.all(WAITING, self.project)
        if not waiting:
            return
        one = waiting[which % len(waiting)]["id"]
        if decision is None:
            self.all(PAST, one)
            self.counts["deadlines"] += self.wait(self.timers.expire_due())
            return
        answer = Answer(decision, principal_of_name("bob"), AnswerChannel.API)
        try:
            self.wait(self.engine.hooks.answer(one, answer, project=self.project))
            self.counts["answers"] += 1
        except HeadgateError as error:
            assert error.finding.reason

    # -- workers

    @rule(
        worker_index=st.integers(0, 1),
        moves=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 11)), min_size=1, max_size=10),
    )
    def work(self, worker_index: int, moves: list[tuple[int, int]]) -> None:
        worker = self.workers[worker_index]
        for which, outcome in moves:
            if worker.jobs and outcome < 9:
                self.operate(worker, which, outcome)
            else:
                self.wait(worker.claim(1 + which))

    def operate(self, worker: ManualWorker, which: int, outcome: int) -> None:
        work = worker.jobs[which % len(worker.jobs)].work
        self.world.scripted.clear()
        later = Wait(work.now + ONE_DAY, {"half": True})
        outcomes: dict[int, Outcome] = {0: Failed("it broke"), 1: later}
        if outcome in outcomes and not self.found_by(work):
            self.world.script(work.operation, work.name, outcomes[outcome])
        self.wait(worker.operate_nested(which))
        self.counts["operations"] += 1

    def found_by(self, work: Any) -> bool:
        """Whether a lost call created the object; the next call finds it and does not fail."""
        return f"{work.name}-{(work.operation_key or UUID(int=0)).hex[:8]}" in self.world.things

    @rule(
        worker_index=st.integers(0, 1),
        what=st.sampled_from(("crash", "late", "time")),
        luck=st.integers(0, 2),
    )
    def mishap(self, worker_index: int, what: str, luck: int) -> None:
        if luck:
            return
        self.counts[what] += 1
        match what:
            case "crash":
                self.workers[worker_index].crash()
            case "late":
                self.wait(self.workers[worker_index].repeat_steps())
            case _:
                self.expire_leases_and_timers()

    def expire_leases_and_timers(self) -> None:
        for row in self.stacks():
            self.wait(expire_leases_and_timers(self.database, row["id"]))
        for worker in self.workers:
            worker.jobs.clear()

    # -- invariants

    @invariant()
    def rules_hold(self) -> None:
        async def look(stack_id: UUID) -> list[str]:
            async with self.database.connection() as conn:
                return await breaches(conn, stack_id)

        if self.stack_id is None:
            return
        for row in self.stacks():
            assert self.wait(look(row["id"])) == []

    def teardown(self) -> None:
        if self.stack_id is None:
            return
        self.drive()
        if not self.gone():
            self.check_clean_update()
            self.wait(self.engine.stacks.delete(self.project, self.id, principal_of_name("ann")))
            self.drive()
        self.counts["stacks"] += len(self.stacks())
        assert all(row["deleted"] for row in self.stacks()), self.stacks()
        assert not self.world.things, f"left behind: {self.world.things}"

    def check_clean_update(self) -> None:
        """After an update in which nothing fails, the objects are those of the template."""
        resources, _ = self.change
        request = self.request((resources, []), hooks_clear=["*"])
        self.wait(self.engine.stacks.update(self.project, self.id, request))
        self.drive()
        live = [row for row in self.stacks() if not row["deleted"]]
        assert all(row["state"] == "complete" for row in live), live
        expected: Counter[int] = Counter()
        for name, one in resources.items():
            expected[size_of(resources, name)] += THINGS[one["type"]]
        assert Counter(self.world.things.values()) == expected, self.story()

    def story(self) -> str:
        """The events of the whole tree, oldest first."""
        rows = self.all(STORY, self.project)
        return "\n".join(" ".join(str(value) for value in row.values()) for row in rows)

    def drive(self) -> None:
        """Answer all hooks and do all work, without failures, until every action has ended."""
        self.world.scripted.clear()
        for _ in range(ROUNDS):
            for hook in self.all(WAITING, self.project):
                answer = Answer(Decision.CONTINUE, principal_of_name("bob"), AnswerChannel.API)
                self.wait(self.engine.hooks.answer(hook["id"], answer, project=self.project))
            busy = 0
            for worker in self.workers:
                while worker.jobs:
                    self.wait(worker.operate_nested(0))
                busy += self.wait(worker.claim(10))
            self.rules_hold()
            if not busy and self.at_rest():
                return
        raise AssertionError(f"the stacks did not come to rest: {self.stacks()}")

    def at_rest(self) -> bool:
        self.expire_leases_and_timers()
        ended = all(row["state"] not in ("running", "ending") for row in self.stacks())
        return ended and not self.all(UNDER_WAY, self.project)


def test_a_tree_survives_random_events(database_url: str) -> None:
    run_machine(TreeMachine, database_url, examples=EXAMPLES, steps=STEPS)
    assert TreeMachine.counts["operations"] > EXAMPLES and TreeMachine.counts["crash"]
