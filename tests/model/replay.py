"""Replays moves of the model on the real engine and a real database.

The engine decides with its own code from its own rows: requests call `Engine`, claims and steps
call `advance`, and workers prepare, decide and write as in a process. Only times are set here: if a
move needs a due row, the replay makes the row due.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID, uuid4

from engine.errors import Conflict, Invalid, NotFound
from engine.hooks.answers import Answer
from engine.hooks.rule import HookLimits, Rule
from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.hot.syntax.data_names import PREFIX
from engine.hot.syntax.document import DocumentLimits as SourceLimits
from engine.node.node import (
    Answered,
    Expired,
    Input,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustWait,
    OperationFailed,
    OperationForbidden,
)
from engine.plan.draft import STACK_TYPE
from engine.principal import principal_of_name
from engine.service import Engine
from engine.service.requests.blueprint import Limits
from engine.service.requests.quotas import Quotas
from engine.service.requests.requests import StackRequest
from engine.store.database import Database
from engine.store.traversals.advance import TraversalToEnd, Work, advance
from engine.types.contract import Call, Confirm, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.groups.resource_group import ResourceGroup
from engine.types.registry import TypeRegistry
from engine.words import Action, AnswerChannel, Decision, Json, Point
from engine.work.archive import archive_graphs
from engine.work.nodes.internal_error import NodeContext
from engine.work.nodes.job import Job, NodeInput, decide_again, decide_step, prepare_claim
from engine.work.nodes.operation_call import OperationRetries, judge
from engine.work.nodes.runs import LaterNodes, LaterStep, Runs
from engine.work.nodes.step_queue import WaitingStep
from engine.work.timers import Timers
from tests.model.groups import properties_of, update_policy_of
from tests.model.protocol import LATER, Move
from tests.model.system_state import Request, ResourceSpec, Scenario, SystemState, Worker
from tests.model.traversals import IN_PLACE
from tests.model.worker_decisions import FAILED_LEAVING_RESOURCE

PROJECT, LEASE, TIMEOUT = "p", timedelta(hours=1), timedelta(minutes=10)
HOOK_LIMITS = HookLimits(TIMEOUT, timedelta(days=1))
RETRYING = OperationRetries(limit=100, first=LEASE, max_pause=LEASE, random=lambda: 0.0)
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
TIME_OVER = "update traversal set working_time = time_limit where stack_id = $1 and number = $2"
HOOK_DUE = "update hook set deadline = clock_timestamp() - interval '1 hour' where id = $1"
#: With those that the nodes add if they replace their resources.
NEW_NODES = """
with planned as (select * from node where stack_id = $1 and traversal = $2)
select id, name, operation, direction,
       resource_id, replacement_id, definition ->> 'digest' as digest
  from planned
union all
select l.id, n.name, l.operation, 'cleanup', n.resource_id, null, null
  from planned n cross join jsonb_to_recordset(n.definition -> 'if_replaced') as l (
       id integer, operation text)
"""


#: The name of the type of resources whose create only computes.
COMPUTED = "C"


class StubType(ResourceType):
    """The resource type. Moves contain the outcomes of operations, so no operation is called."""

    schema = TypeSchema(
        "T",
        description="",
        properties={"value": Property(Kind.STRING, update_allowed=True)},
        steps=("cut", "glue", "pre-batch"),
    )
    cancellable = True

    def create(self, call: Call) -> Outcome:
        raise NotImplementedError

    def delete(self, call: Call) -> Outcome:
        raise NotImplementedError

    def needs_replace(self, call: Call) -> bool:
        return str(call.properties["value"]).endswith("!")


class ComputedType(StubType):
    """The type of the resources whose create only computes."""

    computes_only = True
    schema = replace(StubType.schema, name=COMPUTED)

    def create(self, call: Call) -> Outcome:
        return Done("there")


class GateType(StubType):
    """The type of gates."""

    schema = TypeSchema(STACK_TYPE, description="", any_property=True)


@dataclass(slots=True)
class EngineClaim:
    """A claim in the real engine, with the input and the step that its worker decided. read: the
    nodes that it may execute in the same run; later: their steps."""

    job: Job
    node_input: NodeInput | None = None
    step: Json = None
    read: Sequence[Work] = ()
    later: Sequence[LaterStep] = ()

    def documents(self) -> list[Json]:
        """The steps to commit: with the later ones of its run."""
        waiting = WaitingStep(self.step, 0, NodeContext(self.job.work))
        waiting.add_later(list(self.later))
        return list(waiting.documents())


class Divergence(AssertionError):
    """The engine and the model differ."""


class Replay:
    """One stack in a database. nodes, rows, keys: IDs of the model to those of the engine.
    digests, model_keys: the engine's to the model's."""

    def __init__(self, database: Database, scenario: Scenario) -> None:
        self.database, self.scenario = database, scenario
        self.registry = TypeRegistry([StubType(), ComputedType(), GateType(), ResourceGroup()])
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
        self.model_keys: dict[UUID, tuple[int, int, int]] = {}
        self.engine_claims: dict[tuple[int, int, int], EngineClaim] = {}

    async def perform(self, move: Move, before: SystemState, after: SystemState) -> None:
        match move.kind:
            case "request":
                await self._request(self.scenario.requests[before.accepted])
            case "claim":
                await self._claim(move, after)
            case "call" | "run":
                self._call(move)
            case "commit" | "repeat":
                await self._commit(move)
            case "hook":
                await self._hook(move)
            case "timeout":
                async with self.database.connection() as conn:
                    await conn.execute(TIME_OVER, self.stack, move.traversal)
            case "end":
                await self.engine.stacks.end_traversal(TraversalToEnd(self.stack, move.traversal))
        if after.current != before.current:
            await archive_graphs(self.database)
            await self._map_new_nodes(after)
        elif after.deleted:
            await archive_graphs(self.database)

    async def _request(self, request: Request) -> None:
        body = StackRequest(
            name=f"s{uuid4().hex}",
            template=_template(request.template),
            environment=_environment(request.template, self.scenario.stack),
            files=_files(request.template),
        )
        if request.run_to:
            await self._run_to(request.run_to)
        elif request.breakpoint:
            await self._set_breakpoint(request.breakpoint)
        elif request.action is Action.CREATE:
            timeout = 60 if self.scenario.incidents.timeout else None
            body = replace(
                body, disable_rollback=not self.scenario.rolls_back, timeout_mins=timeout
            )
            self.stack = (await self.engine.stacks.create(PROJECT, body)).id
        elif request.action is Action.UPDATE:
            await self.engine.stacks.update(PROJECT, self.stack, body)
        elif request.action is Action.SNAPSHOT:
            with suppress(Conflict):
                await self.engine.snapshots.create(
                    PROJECT, self.stack, "", principal_of_name("ann")
                )
        elif request.action in IN_PLACE:
            with suppress(Conflict):  # another action is under way
                await self.engine.stacks.start_action(
                    PROJECT, self.stack, request.action, principal_of_name("ann")
                )
        elif request.action is Action.DELETE:
            await self.engine.stacks.delete(PROJECT, self.stack, principal_of_name("ann"))
        else:
            with suppress(Invalid):  # no traversal under way can be ended like this
                await self._end_early(request.ends)

    async def _set_breakpoint(self, name: str) -> None:
        by = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
        items = [{"at": name, "on": Point.PRE_CREATE, "timeout": "10m", "on_timeout": "stop"}]
        await self.engine.breakpoints.add(PROJECT, self.stack, items, by)

    async def _run_to(self, path: str) -> None:
        by = Answer(Decision.CONTINUE, principal_of_name("ann"), AnswerChannel.API)
        with suppress(Invalid, NotFound):  # no traversal under way, or no pending node
            await self.engine.hooks.run_to(PROJECT, self.stack, path, by)

    async def _end_early(self, ends: str) -> None:
        if ends == "stopped":
            await self.engine.stacks.stop(PROJECT, self.stack, principal_of_name("ann"))
        else:
            rollback = ends == "rolled back"
            await self.engine.stacks.cancel(
                PROJECT, self.stack, principal_of_name("ann"), rollback=rollback
            )

    async def _map_new_nodes(self, system: SystemState) -> None:
        """Map the engine's new nodes and rows to those of the model."""
        async with self.database.connection() as conn:
            new_nodes = await conn.fetch(NEW_NODES, self.stack, system.current)
        node_plan = system.traversal(system.current).graph.nodes
        if len(new_nodes) != len(node_plan):
            raise Divergence(
                f"{len(new_nodes)} nodes were planned, and {len(node_plan)} in the model"
            )
        model_ids = {real: model for model, real in self.rows.items()}
        by_name = {
            (one.name, _operation(system, at), one.direction.value): at
            for at, one in enumerate(node_plan)
        }
        by_row = {(one.resource, one.direction.value): at for at, one in enumerate(node_plan)}
        for row in sorted(new_nodes, key=lambda row: str(row["direction"]), reverse=True):
            if row["direction"] == "forward":
                at = by_name[row["name"], row["operation"], "forward"]
                if row["digest"] is not None:  # an in-place action has no definition
                    self.digests[row["digest"]] = node_plan[at].value
                self.rows[node_plan[at].resource] = row["resource_id"]
                if (replacement := node_plan[at].replacement) is not None:
                    self.rows[replacement] = row["replacement_id"]
            else:
                at = by_row[model_ids[row["resource_id"]], "cleanup"]
            self.nodes[system.current, at] = row["id"]

    async def _claim(self, move: Move, after: SystemState) -> None:
        node = -1 if move.node < 0 else self.nodes[move.traversal, move.node]
        async with self.database.connection() as conn:
            await conn.execute(MAKE_DUE, self.stack, move.traversal, node)
            types = self.registry.computing_types()
            result = await advance(conn, "w", LEASE, 1, [], run_types=types)
        ends = [(end.stack_id, end.traversal) for end in result.ends]
        if move.node < 0:
            if ends != [(self.stack, move.traversal)] or result.work:
                raise Divergence(f"a traversal that must end was due, and {result} was claimed")
            return
        if [work.key[:3] for work in result.work] != [(self.stack, move.traversal, node)] or ends:
            raise Divergence(f"node {node} was due, and {result} was claimed")
        self._prepare(move.traversal, move.node, result.work[0], result.later)
        key = (move.traversal, move.node, result.work[0].key.claim)
        workers = [worker for worker in after.workers if worker[:3] == key]
        later = {self.nodes[move.traversal, one.node] for worker in workers for one in worker.later}
        if {work.key.node for work in result.later} != later:
            raise Divergence(f"the run may have {later}, and {result.later} were returned")

    def _prepare(self, traversal: int, at: int, work: Work, later: Sequence[Work] = ()) -> None:
        """`NodeRunner.run_node`."""
        job, node_input = prepare_claim(work, self.registry)
        engine_claim = EngineClaim(job, read=later)
        self.engine_claims[traversal, at, work.key.claim] = engine_claim
        if node_input is not None:
            self._encode(engine_claim, node_input)

    def _call(self, move: Move) -> None:
        assert move.input is not None
        engine_claim = self._engine_claim(move.worker)
        assert engine_claim.job.prepared is not None
        if engine_claim.step is not None:
            raise Divergence("the model calls an operation, and the worker has a step to commit")
        outcome = _outcome(engine_claim.job.work, move.input)
        self._encode(engine_claim, judge(engine_claim.job.prepared, outcome, RETRYING))
        if move.kind == "run":
            self._run(engine_claim)

    def _run(self, engine_claim: EngineClaim) -> None:
        runs = Runs(self.registry, RETRYING, lambda _: 1_000_000, uuid4, TIMEOUT)
        nodes = LaterNodes(engine_claim.read, math.inf)
        engine_claim.later = runs.execute(engine_claim.job, engine_claim.step, nodes)
        if len(engine_claim.later) != len(engine_claim.read):
            raise Divergence(f"the run has {engine_claim.later}, of {engine_claim.read}")

    def _encode(self, engine_claim: EngineClaim, node_input: NodeInput) -> None:
        engine_claim.node_input = node_input
        engine_claim.step = decide_step(
            engine_claim.job, node_input, new_id=uuid4, default_timeout=TIMEOUT
        )
        assert engine_claim.step is not None, node_input

    async def _commit(self, move: Move) -> None:
        engine_claim = self._engine_claim(move.worker)
        async with self.database.connection() as conn:
            result = await advance(conn, "w", LEASE, 0, engine_claim.documents())
        for one in result.refused:
            assert engine_claim.node_input is not None
            engine_claim.step = decide_again(
                engine_claim.job,
                engine_claim.node_input,
                one,
                new_id=uuid4,
                default_timeout=TIMEOUT,
            )
        for work in result.work:
            self._prepare(move.traversal, move.node, work)

    def _engine_claim(self, worker: Worker | None) -> EngineClaim:
        assert worker is not None
        return self.engine_claims[worker[:3]]

    async def _hook(self, move: Move) -> None:
        assert move.hook is not None
        node = self.nodes[move.traversal, move.node]
        async with self.database.connection() as conn:
            hook = await conn.fetchval(
                HOOK_ID, self.stack, move.traversal, node, str(move.hook.point)
            )
            if isinstance(move.input, Expired):
                await conn.execute(HOOK_DUE, hook)
        if isinstance(move.input, Expired):
            assert await self.timers.expire_due() == 1
            return
        assert isinstance(move.input, Answered)
        await self.engine.hooks.answer(
            hook,
            Answer(
                move.input.decision,
                principal_of_name(move.input.by),
                AnswerChannel.API,
                how=move.how,
            ),
            project=PROJECT,
        )


def _operation(system: SystemState, at: int) -> str:
    node = system.node(system.current, at)
    return "" if node is None else node.operation.value


def _outcome(work: Work, node_input: Input) -> Outcome:
    if node_input == FAILED_LEAVING_RESOURCE:
        return Failed("left", physical_id="there")
    match node_input:
        case OperationFailed(reason=reason):
            return Failed(reason)
        case MustRetry(reason=reason):
            return Failed(reason, retry=True)
        case MustWait():
            return Wait(LATER, {"at": 1})
        case MustConfirm(step=step):
            return Confirm(step, {"at": 1})
        case MustReplace() | OperationForbidden():
            return Replace()
        case _:
            return Done(None if work.operation in ("delete", "begin", "finish") else "there")


def _template(specs: tuple[ResourceSpec, ...]) -> Json:
    resources: Mapping[str, Json] = {
        spec.name: {
            **_definition(spec),
            "depends_on": list(spec.requires),
            "deletion_policy": spec.policy,
        }
        for spec in specs
        if not spec.data
    }
    data: Mapping[str, Json] = {
        spec.name.removeprefix(PREFIX): {
            "type": "T",
            "id": "there",
            "properties": {"value": spec.value},
        }
        for spec in specs
        if spec.data
    }
    if data:
        return {"heat_template_version": "2026-12-01", "data": data, "resources": resources}
    return {"heat_template_version": "2018-08-31", "resources": resources}


def _definition(spec: ResourceSpec) -> dict[str, Json]:
    if spec.batch:
        return {
            "type": "OS::Heat::ResourceGroup",
            "properties": properties_of(spec),
            "update_policy": update_policy_of(spec),
        }
    kind = _file(spec) if spec.nested else COMPUTED if spec.computes else "T"
    return {"type": kind, "properties": {"value": spec.value}}


def _files(specs: tuple[ResourceSpec, ...]) -> dict[str, str]:
    """The templates of nested stacks, at all levels."""
    files: dict[str, str] = {}
    for spec in specs:
        if spec.nested and not spec.batch:
            parameters = {"parameters": {"value": {"type": "string"}}}
            files |= {_file(spec): json.dumps(_template(spec.nested) | parameters)}
            files |= _files(spec.nested)
    return files


def _file(spec: ResourceSpec) -> str:
    return f"{spec.name}.yaml"


def _environment(specs: tuple[ResourceSpec, ...], stack: tuple[Rule, ...]) -> Json:
    restricted: dict[str, Json] = {
        spec.name: {"restricted_actions": list(spec.restricted)}
        for spec in specs
        if spec.restricted
    }
    registry: Json = {"resources": restricted} if restricted else {}
    return {"hooks": _hooks(specs, stack), "resource_registry": registry}


def _hooks(specs: tuple[ResourceSpec, ...], stack: tuple[Rule, ...]) -> list[Json]:
    return _hooks_inside(specs, "") + [_hook(rule) for rule in stack]


def _hooks_inside(specs: tuple[ResourceSpec, ...], path: str) -> list[Json]:
    hooks: list[Json] = []
    for spec in specs:
        hooks += [{"at": path + spec.name, **_hook(rule)} for rule in spec.rules]
        hooks += _hooks_inside(spec.nested, f"{path}{spec.name}/")
    return hooks


def _hook(rule: Rule) -> dict[str, Json]:
    more: dict[str, Json] = {"approvals": rule.approvals} if rule.approvals > 1 else {}
    if rule.answer_by:
        more["answer_by"] = list(rule.answer_by)
    return {
        "on": str(rule.point),
        "mode": rule.mode.value,
        "on_timeout": rule.on_timeout.value,
        "timeout": "10m",
        **more,
    }
