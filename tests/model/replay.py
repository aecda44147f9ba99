"""Moves of the model, carried out by the real engine on a real database.

What the engine decides here it decides with its own code, from its own rows: requests go through
`Engine`, claims and settles through `advance`, workers prepare, decide and write as theirs do. Only
time is made by hand: what a move needs to be due is made due, and nothing else is.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID, uuid4

from engine.errors import Conflict, Invalid
from engine.hooks.rule import Limits as HookLimits
from engine.hooks.rule import Rule
from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.hot.syntax.document import DocumentLimits as SourceLimits
from engine.node.inputs import (
    Answered,
    Expired,
    Input,
    MustReplace,
    MustRetry,
    MustWait,
    OperationFailed,
    OperationForbidden,
    Superseded,
)
from engine.plan.gates import STACK_TYPE
from engine.principal import named
from engine.service import Engine
from engine.service.requests.blueprint import Limits
from engine.service.requests.quotas import Quotas
from engine.service.requests.requests import Answer, StackRequest
from engine.store.advance import End, Work, advance
from engine.store.database import Database
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.registry import Registry
from engine.words import Action, Decision, Door, Json
from engine.work.job import Job, NodeInput, prepare_claim, settle, settle_superseded
from engine.work.operation_call import judge
from engine.work.retries import Retrying
from engine.work.timers import Timers
from tests.model.accept import IN_PLACE
from tests.model.protocol import LATER, REJECT, Move
from tests.model.telling import LEFT
from tests.model.world import Hand, Request, Size, Want, World

PROJECT, LEASE, TIMEOUT = "p", timedelta(hours=1), timedelta(minutes=10)
HOOK_LIMITS = HookLimits(TIMEOUT, timedelta(days=1))
RETRYING = Retrying(limit=100, first=LEASE, longest=LEASE, random=lambda: 0.0)
MAKE_DUE = """
with nodes as (
    update node set wake_at = clock_timestamp() + interval '1 hour'
           * case when stack_id = $1 and traversal = $2 and id = $3 then -1 else 1 end
     where wake_at is not null
)
update traversal set wake_at = clock_timestamp() + interval '1 hour'
       * case when stack_id = $1 and number = $2 then -1 else 1 end
 where wake_at is not null
"""
HOOK_ID = """
select id from hook
 where stack_id = $1 and traversal = $2 and node = $3 and point = $4 and state = 'waiting'
"""
TIME_OVER = "update traversal set worked = time_limit where stack_id = $1 and number = $2"
HOOK_DUE = "update hook set deadline = clock_timestamp() - interval '1 hour' where id = $1"
NEW_NODES = """
select id, coalesce(nullif(name, ''), operation) as name, direction,
       resource_id, replacement_id, definition ->> 'digest' as digest
  from node where stack_id = $1 and traversal = $2
"""


class Thing(ResourceType):
    """What the model's resources are. Outcomes come from the moves, so nothing is ever called."""

    schema = TypeSchema(
        "T", description="", properties={"value": Property(Kind.STRING, update_allowed=True)}
    )

    def create(self, call: Call) -> Outcome:
        raise NotImplementedError

    def delete(self, call: Call) -> Outcome:
        raise NotImplementedError

    def needs_replace(self, call: Call) -> bool:
        return str(call.properties["value"]).endswith("!")


class Gate(Thing):
    """What the nodes of the whole stack are."""

    schema = TypeSchema(STACK_TYPE, description="", any_property=True)


@dataclass(slots=True)
class Held:
    """What a worker of the real engine holds of a node: what it was given, and what it will say."""

    job: Job
    said: NodeInput | None = None
    step: Json = None


class Diverged(AssertionError):
    """The engine did something else than the model."""


class Replay:
    """One stack in a database, moved as the model is. nodes, rows, keys: model to engine.
    digests, keyed: the engine's to the model's."""

    def __init__(self, database: Database, size: Size) -> None:
        self.database, self.size = database, size
        self.registry = Registry([Thing(), Gate()])
        quotas = Quotas(stacks_per_project=0)
        limits = Limits(
            SourceLimits(), HOOK_LIMITS, resources=100, versions=100, snapshots=1, quotas=quotas
        )
        self.engine = Engine(database, self.registry, limits, new_id=uuid4)
        self.timers = Timers(database, poll=LEASE, default_timeout=TIMEOUT, new_id=uuid4)
        self.stack = UUID(int=0)
        self.nodes: dict[tuple[int, int], int] = {}
        self.rows: dict[int, UUID] = {}
        self.digests: dict[str, str] = {"": ""}
        self.keys: dict[tuple[int, int, int], UUID] = {}
        self.keyed: dict[UUID, tuple[int, int, int]] = {}
        self.held: dict[tuple[int, int, int], Held] = {}

    async def do(self, move: Move, before: World, after: World) -> None:
        match move.kind:
            case "request":
                await self._request(self.size.requests[before.asked])
            case "claim":
                await self._claim(move, after)
            case "call":
                self._call(move)
            case "settle" | "again":
                await self._settle(move)
            case "hook":
                await self._hook(move)
            case "late":
                async with self.database.connection() as conn:
                    await conn.execute(TIME_OVER, self.stack, move.traversal)
            case "end":
                await self.engine.stacks.end_traversal(End(self.stack, move.traversal))
        if after.current != before.current:
            await self._learn(after)

    async def _request(self, asked: Request) -> None:
        said = StackRequest(
            name=f"s{uuid4().hex}",
            template=_template(asked.template),
            environment=_environment(asked.template, self.size.stack),
        )
        if asked.action is Action.CREATE:
            timeout = 60 if self.size.luck.late else None
            said = replace(said, disable_rollback=not self.size.rolls_back, timeout_mins=timeout)
            self.stack = (await self.engine.stacks.create(PROJECT, said)).id
        elif asked.action is Action.UPDATE:
            await self.engine.stacks.update(PROJECT, self.stack, said)
        elif asked.action in IN_PLACE:
            with suppress(Conflict):  # something is under way
                await self.engine.stacks.start_action(
                    PROJECT, self.stack, asked.action, named("ann")
                )
        elif asked.action is Action.DELETE:
            await self.engine.stacks.delete(PROJECT, self.stack, named("ann"))
        else:
            with suppress(Invalid):  # nothing that may be ended so is under way
                await self._end_early(asked.ends)

    async def _end_early(self, ends: str) -> None:
        if ends == "stopped":
            await self.engine.stacks.stop(PROJECT, self.stack, named("ann"))
        else:
            rollback = ends == "rolled back"
            await self.engine.stacks.cancel(PROJECT, self.stack, named("ann"), rollback=rollback)

    async def _learn(self, world: World) -> None:
        """Which of the engine's new nodes and rows are which of the model's."""
        async with self.database.connection() as conn:
            found = await conn.fetch(NEW_NODES, self.stack, world.current)
        fixed = world.traversal(world.current).graph.nodes
        if len(found) != len(fixed):
            raise Diverged(f"{len(found)} nodes were planned, and {len(fixed)} in the model")
        known = {real: model for model, real in self.rows.items()}
        by_name = {
            (one.name or _operation(world, at), one.direction.value): at
            for at, one in enumerate(fixed)
        }
        by_row = {(one.resource, one.direction.value): at for at, one in enumerate(fixed)}
        for row in sorted(found, key=lambda row: str(row["direction"]), reverse=True):
            if row["direction"] == "forward":
                at = by_name[row["name"], "forward"]
                if row["digest"] is not None:  # an action in place has no definition
                    self.digests[row["digest"]] = fixed[at].value
                self.rows[fixed[at].resource] = row["resource_id"]
                if (replacement := fixed[at].replacement) is not None:
                    self.rows[replacement] = row["replacement_id"]
            else:
                at = by_row[known[row["resource_id"]], "cleanup"]
            self.nodes[world.current, at] = row["id"]

    async def _claim(self, move: Move, after: World) -> None:
        node = -1 if move.node < 0 else self.nodes[move.traversal, move.node]
        async with self.database.connection() as conn:
            await conn.execute(MAKE_DUE, self.stack, move.traversal, node)
            got = await advance(conn, "w", LEASE, 1, [])
        ends = [(end.stack_id, end.traversal) for end in got.ends]
        if move.node < 0:
            if ends != [(self.stack, move.traversal)] or got.work:
                raise Diverged(f"the end of a traversal was due, and {got} was claimed")
            return
        if [work.key[:3] for work in got.work] != [(self.stack, move.traversal, node)] or ends:
            raise Diverged(f"node {node} was due, and {got} was claimed")
        self._take(move.traversal, move.node, got.work[0])

    def _take(self, traversal: int, at: int, work: Work) -> None:
        """`NodeRunner.run_node`."""
        job, said = prepare_claim(work, self.registry)
        held = self.held[traversal, at, work.key.claim] = Held(job)
        if said is not None:
            self._tell(held, said)

    def _call(self, move: Move) -> None:
        assert move.said is not None
        held = self._held(move.hand)
        assert held.job.prepared is not None
        if held.step is not None:
            raise Diverged("an operation was to be called, and the worker has something to tell")
        outcome = _outcome(held.job.work, move.said)
        self._tell(held, judge(held.job.prepared, outcome, RETRYING))

    def _tell(self, held: Held, said: NodeInput) -> None:
        held.said = said
        held.step = settle(held.job, said, new_id=uuid4, default_timeout=TIMEOUT)
        assert held.step is not None, said

    async def _settle(self, move: Move) -> None:
        held = self._held(move.hand)
        async with self.database.connection() as conn:
            got = await advance(conn, "w", LEASE, 0, [held.step])
        for one in got.refused:
            assert held.said is not None
            held.step = settle_superseded(
                held.job,
                held.said,
                Superseded(reason=one.reason),
                new_id=uuid4,
                default_timeout=TIMEOUT,
            )
        for work in got.work:
            self._take(move.traversal, move.node, work)

    def _held(self, hand: Hand | None) -> Held:
        assert hand is not None
        return self.held[hand[:3]]

    async def _hook(self, move: Move) -> None:
        assert move.hook is not None
        node = self.nodes[move.traversal, move.node]
        async with self.database.connection() as conn:
            hook = await conn.fetchval(
                HOOK_ID, self.stack, move.traversal, node, str(move.hook.point)
            )
            if isinstance(move.said, Expired):
                await conn.execute(HOOK_DUE, hook)
        if isinstance(move.said, Expired):
            assert await self.timers.expire_due() == 1
            return
        assert isinstance(move.said, Answered)
        decision = Decision.REJECT if move.said == REJECT else Decision.CONTINUE
        await self.engine.hooks.answer(
            hook, Answer(decision, named(move.said.by), Door.API), project=PROJECT
        )


def _operation(world: World, at: int) -> str:
    node = world.node(world.current, at)
    return "" if node is None else node.operation.value


def _outcome(work: Work, said: Input) -> Outcome:
    if said == LEFT:
        return Failed("left", physical_id="there")
    match said:
        case OperationFailed(reason=reason):
            return Failed(reason)
        case MustRetry(reason=reason):
            return Failed(reason, retry=True)
        case MustWait():
            return Wait(LATER, {})
        case MustReplace() | OperationForbidden():
            return Replace()
        case _:
            return Done(None if work.operation in ("delete", "begin", "finish") else "there")


def _template(wants: tuple[Want, ...]) -> Json:
    resources: Mapping[str, Json] = {
        want.name: {
            "type": "T",
            "properties": {"value": want.value},
            "depends_on": list(want.requires),
            "deletion_policy": want.policy,
        }
        for want in wants
    }
    return {"heat_template_version": "2018-08-31", "resources": resources}


def _environment(wants: tuple[Want, ...], stack: tuple[Rule, ...]) -> Json:
    restricted: dict[str, Json] = {
        want.name: {"restricted_actions": list(want.restricted)}
        for want in wants
        if want.restricted
    }
    registry: Json = {"resources": restricted} if restricted else {}
    return {"hooks": _hooks(wants, stack), "resource_registry": registry}


def _hooks(wants: tuple[Want, ...], stack: tuple[Rule, ...]) -> list[Json]:
    of_resources = [{"at": want.name, **_hook(rule)} for want in wants for rule in want.rules]
    return of_resources + [_hook(rule) for rule in stack]


def _hook(rule: Rule) -> dict[str, Json]:
    several: dict[str, Json] = {"approvals": rule.approvals} if rule.approvals > 1 else {}
    return {
        "on": str(rule.point),
        "mode": rule.mode.value,
        "on_timeout": rule.on_timeout.value,
        "timeout": "10m",
        **several,
    }
