"""A stack as a Hypothesis state machine on the real store, with workers that the test moves.

Random graphs and breakpoints; updates, partial updates, deletes, cancels and stops at any time;
operations that succeed, wait, fail or are retried; workers that die between any two steps, or
return late and repeat their steps. After every step the rules of stack_rules.py hold. At the end
everything completes, and the resources are those of the last template.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from engine.errors import HeadgateError
from engine.principal import principal_of_name
from engine.service import Answer, Engine, StackRequest
from engine.types.contract import Confirm, Failed, Outcome, Replace, Wait
from engine.words import Action, AnswerChannel, Decision, Json
from engine.work.archive import archive_graphs
from engine.work.timers import Timers
from tests.property.change_strategies import NAMES, RequestedChange, changes
from tests.property.machines import TIMES, StoreMachine, run_machine
from tests.property.stack_rules import breaches
from tests.support.idle_engine import idle_engine, make_registry
from tests.support.manual_worker import ManualWorker, expire_leases_and_timers
from tests.support.scripted_type import Thing, World

EXAMPLES, STEPS = 120 * TIMES, 40
#: More rounds than any stack here can need to come to its end.
ROUNDS = 200

WAITING = "select id from hook where stack_id = $1 and state = 'waiting' order by opened_at, id"
STATE = """
select t.state, t.action, s.deleted_at is not null as deleted
  from stack s join traversal t on t.stack_id = s.id and t.number = s.traversal where s.id = $1
"""
ROWS = """
select name, type, action, status, physical_id, properties, deletion_policy, replaced_by
  from resource where stack_id = $1
"""
UNREADY = """
select b.name from node n join node b on b.stack_id = n.stack_id and b.traversal = n.traversal
   and n.id = any (b.dependents)
 where n.stack_id = $1 and n.traversal = $2 and n.id = $3 and b.state <> 'done'
"""
STORY = """
select sequence, type, physical_id, action, status, reason from event
 where stack_id = $1 and (resource_name is null or resource_name = any ($2)) order by sequence
"""
ANN = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
PAST = "update hook set deadline = clock_timestamp() - interval '1 second' where id = $1"


class StackMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.engine: Engine = idle_engine(self.database, Thing(self.world), new_id=self.new_id)
        registry = make_registry(Thing(self.world))
        self.workers = [
            ManualWorker(self.database, registry, self.engine.stacks.end_traversal, self.new_id)
            for _ in range(2)
        ]
        self.timers = Timers(
            self.database,
            poll=timedelta(seconds=1),
            default_timeout=timedelta(days=1),
            new_id=self.new_id,
        )
        self.stack_id: UUID | None = None
        self.change: RequestedChange | None = None
        self.project = f"p-{self.new_id()}"
        self.retained: set[str] = set()
        self.counts["examples"] += 1

    def new_id(self) -> UUID:
        """One after the other, so that the same example goes the same way again."""
        self.counts["ids"] += 1
        return UUID(int=self.counts["ids"])

    async def _all(self, query: str, *args: Any) -> list[Any]:
        async with self.database.connection() as conn:
            return list(await conn.fetch(query, *args))

    @property
    def state(self) -> Any:
        return self.wait(self._all(STATE, self.stack_id))[0]

    def called(self, what: str, coming: Any) -> None:
        """A request of a person: it is accepted whole, or refused in words."""
        try:
            self.wait(coming)
            self.counts[what] += 1
        except HeadgateError as error:
            assert error.finding.reason
            self.counts["refused requests"] += 1

    # -- what people do

    @initialize(change=changes(), rollback=st.booleans())
    def create(self, change: RequestedChange, rollback: bool) -> None:
        request = self.request(change, disable_rollback=not rollback)
        self.stack_id = self.wait(self.engine.stacks.create(self.project, request)).id
        self.change = change
        self.counts["creates"] += 1

    def request(self, change: RequestedChange, **more: Any) -> StackRequest:
        environment = {"hooks": change.hooks} if change.hooks else {}
        return StackRequest(
            name="s",
            template=change.template,
            environment=environment,
            requested_by=principal_of_name("ann"),
            **more,
        )

    def gone(self) -> bool:
        return bool(self.state["deleted"])

    @rule(
        what=st.sampled_from((
            "update", "update", "update", "partial update", "resume", "cancel", "roll back", "stop",
            "check", "suspend", "wake", "mark", "delete", "break at", "break no more", "run to",
        )),
        change=changes(),
        name=st.sampled_from(NAMES),
        patience=st.integers(0, 1),
    )  # fmt: skip
    def ask(self, what: str, change: RequestedChange, name: str, patience: int) -> None:
        """People ask less often than workers work, or nothing would ever come far."""
        if patience == 0 and not self.gone():
            self.called(what, self.request_of(what, change, name))

    def request_of(self, what: str, change: RequestedChange, name: str) -> Any:
        engine, here = self.engine, (self.project, self.id)
        on_again = StackRequest(
            existing=True, hooks_clear=["*"], requested_by=principal_of_name("ann")
        )
        requests: dict[str, Callable[[], Any]] = {
            "update": lambda: engine.stacks.update(*here, self.request(change)),
            "partial update": lambda: engine.stacks.update(
                *here, self.request(change, only=[name])
            ),
            "resume": lambda: engine.stacks.update(*here, on_again),
            "cancel": lambda: engine.stacks.cancel(*here, principal_of_name("ann"), rollback=False),
            "roll back": lambda: engine.stacks.cancel(
                *here, principal_of_name("ann"), rollback=True
            ),
            "stop": lambda: engine.stacks.stop(*here, principal_of_name("ann")),
            "check": lambda: engine.stacks.start_action(
                *here, Action.CHECK, principal_of_name("ann")
            ),
            "suspend": lambda: engine.stacks.start_action(
                *here, Action.SUSPEND, principal_of_name("ann")
            ),
            "wake": lambda: engine.stacks.start_action(
                *here, Action.RESUME, principal_of_name("ann")
            ),
            "mark": lambda: engine.resource_health.mark_health(
                *here, name, unhealthy=True, reason="ill"
            ),
            "delete": lambda: engine.stacks.delete(*here, principal_of_name("ann")),
            "break at": lambda: engine.breakpoints.add(*here, self.breakpoint(name, change), ANN),
            "break no more": lambda: self.break_no_more(),
            "run to": lambda: engine.hooks.run_to(*here, name, ANN),
        }
        return requests[what]()

    @staticmethod
    def breakpoint(name: str, change: RequestedChange) -> list[Json]:
        points = [one["on"][0] for one in change.hooks if "at" in one] or [
            "pre-create",
            "pre-update",
        ]
        return [f"{name}:{point}" for point in points]

    async def break_no_more(self) -> None:
        breakpoints = await self.engine.breakpoints.read(self.id)
        ids = [one.id for one in breakpoints]
        await self.engine.breakpoints.remove(self.project, self.id, ids, ANN)

    @rule(which=st.integers(0, 9), decision=st.sampled_from((*Decision, Decision.CONTINUE, None)))
    def hook(self, which: int, decision: Decision | None) -> None:
        """A user answers a hook, or (None) it expires."""
        waiting = self.waiting()
        if not waiting:
            return
        one = waiting[which % len(waiting)]["id"]
        if decision is None:
            self.wait(self._all(PAST, one))
            self.counts["deadlines"] += self.wait(self.timers.expire_due())
        else:
            answer = Answer(decision, principal_of_name("bob"), AnswerChannel.API)
            self.called("answer", self.engine.hooks.answer(one, answer, project=self.project))

    def waiting(self) -> list[Any]:
        if self.stack_id is None:
            return []
        found: list[Any] = self.wait(self._all(WAITING, self.id))
        return found

    # -- what workers do

    @property
    def id(self) -> UUID:
        assert self.stack_id is not None
        return self.stack_id

    @rule(
        worker_index=st.integers(0, 1),
        moves=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 11)), min_size=1, max_size=8),
    )
    def work(self, worker_index: int, moves: list[tuple[int, int]]) -> None:
        """A worker claims, and calls what it has claimed; or it claims more before it does."""
        worker = self.workers[worker_index]
        for which, outcome in moves:
            if worker.jobs and outcome < 9:
                self.operate(worker, which, outcome)
            else:
                self.wait(worker.claim(1 + which))
                self.note_retained()
                self.counts["claims"] += 1

    def operate(self, worker: ManualWorker, which: int, outcome: int) -> None:
        job = worker.jobs[which % len(worker.jobs)]
        self.in_order(job)
        self.world.scripted.clear()
        outcomes: dict[int, Outcome] = {
            0: Failed("it broke", self.left_by_a_lost_call(job)),
            1: Failed("busy", retry=True),
            2: Wait(job.work.now + timedelta(hours=1), {"half": True}),
            3: Confirm("resize", {"half": True}),
            4: Replace() if job.work.operation == "update" else Confirm("resize", None),
        }
        if outcome in outcomes:
            self.world.script(job.work.operation, job.work.name, outcomes[outcome])
            self.counts[type(outcomes[outcome]).__name__.lower()] += 1
        worker.operate(which)
        self.counts["operations"] += 1

    def left_by_a_lost_call(self, job: Any) -> str | None:
        """What an operation had made when its worker died is found, and named, when it fails."""
        physical_id = f"{job.work.name}-{(job.work.operation_key or UUID(int=0)).hex[:8]}"
        return physical_id if physical_id in self.world.things else None

    def in_order(self, job: Any) -> None:
        """What a node waits for has ended well before its operation is called."""
        key = job.work.key
        early = self.wait(self._all(UNREADY, self.id, key.traversal, key.node))
        assert not early, f"{job.work.name} is called before {[row['name'] for row in early]}"

    @rule(
        worker_index=st.integers(0, 1),
        what=st.sampled_from(("crash", "come back late", "time passes")),
        luck=st.integers(0, 2),
    )
    def mishap(self, worker_index: int, what: str, luck: int) -> None:
        if luck:
            return
        self.counts[what] += 1
        match what:
            case "crash":
                self.workers[worker_index].crash()
            case "come back late":
                self.wait(self.workers[worker_index].repeat_steps())
            case _:
                self.expire_leases_and_timers()

    def expire_leases_and_timers(self) -> None:
        """A worker calls no operation when its lease is over; what it did before it may yet say."""
        self.wait(expire_leases_and_timers(self.database, self.id))
        for worker in self.workers:
            worker.jobs.clear()

    # -- what must be true

    @invariant()
    def rules_hold(self) -> None:
        if self.stack_id is not None:
            self.counts["steps"] += 1
            self.note_retained()
            self.checked_rules()

    def checked_rules(self) -> None:
        async def look() -> list[str]:
            async with self.database.connection() as conn:
                return await breaches(conn, self.id)

        assert self.wait(look()) == []

    def teardown(self) -> None:
        if self.stack_id is None or self.change is None:
            return
        self.drive()
        if not self.gone():
            self.check_clean_update()
            self.wait(self.engine.stacks.delete(self.project, self.id, principal_of_name("ann")))
            self.drive()
        self.wait(archive_graphs(self.database))
        rows = self.wait(self._all(ROWS, self.id))
        state = self.state
        assert state["deleted"] and state["state"] == "complete", dict(state)
        assert not rows and self.nodes() == 0, rows
        left = {one for one in self.world.things if one not in self.retained}
        assert not left, f"left behind: {left}\n{self.story(left)}"

    def story(self, things: set[str]) -> str:
        """What the events say of these things' resources."""
        names = sorted({thing.partition("-")[0] for thing in things})
        rows = self.wait(self._all(STORY, self.id, names))
        return "\n".join(" ".join(str(value) for value in row.values()) for row in rows)

    def nodes(self) -> int:
        counted = self.wait(self._all("select count(*) from node where stack_id = $1", self.id))
        return int(counted[0][0])

    def drive(self) -> None:
        """Let everything under way end: all hooks answered, all work done, nothing fails."""
        self.world.scripted.clear()
        for _ in range(ROUNDS):
            self.note_retained()
            for hook in self.wait(self._all(WAITING, self.id)):
                answer = Answer(Decision.CONTINUE, principal_of_name("bob"), AnswerChannel.API)
                self.wait(self.engine.hooks.answer(hook["id"], answer, project=self.project))
            busy = 0
            for worker in self.workers:
                while worker.jobs:
                    self.in_order(worker.jobs[0])
                    worker.operate(0)
                busy += self.wait(worker.claim(10))
            self.checked_rules()
            if not busy:
                self.expire_leases_and_timers()
                if self.state["state"] not in ("running", "ending") and not self.under_way():
                    return
        raise AssertionError(f"it does not end: {dict(self.state)}")

    def under_way(self) -> bool:
        query = """select id from node where stack_id = $1
                    and state in ('ready', 'running', 'parked')"""
        return bool(self.wait(self._all(query, self.id)))

    def note_retained(self) -> None:
        """Real things that their rows' policy leaves alone when the rows go."""
        for row in self.wait(self._all(ROWS, self.id)):
            if row["deletion_policy"] == "Retain" and row["physical_id"]:
                self.retained.add(row["physical_id"])

    def check_clean_update(self) -> None:
        """After an update in which nothing fails, the resources are as the template says."""
        change = RequestedChange(self.change.resources if self.change else {}, [])
        # What is cleared away keeps its breakpoints: a stop would stop this, too.
        request = self.request(change, hooks_clear=["*"])
        self.wait(self.engine.stacks.update(self.project, self.id, request))
        self.drive()
        assert self.state["state"] == "complete", dict(self.state)
        rows = self.wait(self._all(ROWS, self.id))
        by_name = {row["name"]: row for row in rows}
        assert set(by_name) == set(change.resources) and len(rows) == len(by_name)
        for name, row in by_name.items():
            assert row["status"] == "COMPLETE" and row["replaced_by"] is None
            self.as_requested(change.resources[name], row, by_name)
            assert self.world.things[row["physical_id"]] == row["properties"]["size"]
        others = set(self.world.things) - {row["physical_id"] for row in rows} - self.retained
        assert not others, f"left behind: {others}\n{self.story(others)}"

    def as_requested(self, wished: Json, row: Any, by_name: dict[str, Any]) -> None:
        size = wished["properties"]["size"]
        if isinstance(size, dict):
            other = size.get("get_resource") or size["get_attr"][0]
            reads = "physical_id" if "get_resource" in size else None
            of = by_name[other]
            size = of[reads] if reads else of["properties"]["size"]
        assert row["properties"]["size"] == size, (row["name"], row["properties"], size)
        assert row["properties"]["place"] == wished["properties"]["place"]


def test_a_stack_survives_random_events(database_url: str) -> None:
    run_machine(StackMachine, database_url, examples=EXAMPLES, steps=STEPS)
    assert StackMachine.counts["operations"] > EXAMPLES // 2 and StackMachine.counts["crash"]
