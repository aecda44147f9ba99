"""The front door: accept a change, answer a hook, read what there is."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import orjson

from engine.errors import Conflict, NotFound
from engine.plan.draft import Options
from engine.service import ending
from engine.service.asking import Answered, Asking
from engine.service.blueprint import Limits
from engine.service.breakpoints import LiveBreakpoints
from engine.service.exports import Exports, check_adopted
from engine.service.fixed import check_immutable
from engine.service.goals import Found, Goal, find
from engine.service.inspecting import Inspecting
from engine.service.interrupting import Interrupting, check_settled
from engine.service.marks import Marks
from engine.service.moves import Moves
from engine.service.names import check_name, taken
from engine.service.nested import Nested
from engine.service.outermost import VISITED, check_outermost
from engine.service.overview import Overviews
from engine.service.partial import chooser
from engine.service.previews import Previews
from engine.service.quotas import CHECKS, STACKS, Quotas
from engine.service.requests import StackRequest
from engine.service.signals import ResourceSignals
from engine.service.snapshots import Snapshots
from engine.service.software import Software
from engine.service.traversals import UNDER_WAY, Traversals
from engine.store import accept
from engine.store.advance import End
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.existing import read_existing
from engine.store.read import find_stack, read_template
from engine.store.records import StackRecord
from engine.store.sealing import Sealer
from engine.types.registry import Registry
from engine.words import Action, Operation
from engine.work.measures import Measures

#: Actions on a whole stack that leave its definition alone.
VISITING = {
    Action.CHECK: Operation.CHECK,
    Action.SUSPEND: Operation.SUSPEND,
    Action.RESUME: Operation.RESUME,
}


class Engine(Interrupting):
    """Changes of stacks, answers to hooks and reads; the rest behind doors of their own:
    `previews`, `snapshots`, `exports`, `marks`, `software`, `overview`,
    `inspecting`.

    Everything raises the errors of engine/errors.py: Invalid, NotFound, Conflict, AnswerRefused,
    LimitReached, Unavailable.
    """

    def __init__(
        self,
        database: Database,
        registry: Registry,
        limits: Limits,
        *,
        new_id: Callable[[], UUID],
        wake: Callable[[], None] = lambda: None,
        watched: bool = False,
        sealer: Sealer | None = None,
        measures: Measures | None = None,
    ) -> None:
        """wake: tells a worker of this process, quicker than the database does. watched: there are
        lifecycle plug-ins. sealer: for credentials; without one, none are kept."""
        traversals = Traversals(registry, limits, new_id=new_id, watched=watched, sealer=sealer)
        measured = measures or Measures()
        super().__init__(database, traversals, new_id=new_id, wake=wake, measures=measured)
        self._limits = limits
        self._moves = Moves(self._traversals)
        self.asking = Asking(database, registry, limits.constraint_timeout)
        self.previews = Previews(database, self._traversals, self._moves, self.asking)
        self.snapshots = Snapshots(database, self._traversals, wake)
        self.exports = Exports(database, self._traversals)
        self.marks = Marks(database)
        self.signals = ResourceSignals(database, self._traversals, wake)
        self.software = Software(database, new_id=new_id)
        self.aside = traversals.aside
        self.overview = Overviews(database)
        self.inspecting = Inspecting(database, registry)
        self.nested = Nested(database, traversals, self.asking, new_id=new_id, wake=wake)
        self.breakpoints = LiveBreakpoints(database, self._traversals, new_id=new_id)

    def limits_of(self, project: str) -> Limits:
        return self._limits.of(project)

    def quotas_of(self, project: str) -> Quotas:
        return self._limits.of(project).quotas

    async def create_stack(self, project: str, request: StackRequest) -> StackRecord:
        """Validate whole, plan, store; return once durable. Conflict StackExists."""
        check_name(request.name)
        stack_id = self._new_id()
        blueprint = await self._traversals.build(
            request, None, project=project, stack_id=stack_id, name=request.name
        )
        if request.adopted is not None:
            check_adopted(blueprint, request, self._traversals.registry)
        await self.asking.ask(blueprint.definition, project, request.credential)
        async with self._database.transaction("accept") as conn:
            known = await self._seen_before(conn, project, request, stack_id)
            if known is None:
                await self._insert_stack(conn, project, stack_id, request)
                goal = Goal(
                    stack_id=stack_id,
                    action=Action.CREATE if request.adopted is None else Action.ADOPT,
                    number=1,
                    version=1,
                    blueprint=blueprint,
                    found=Found(),
                    requested_by=request.requested_by,
                    cleared=request.hooks_clear,
                    options=Options(adopted=request.adopted or {}),
                    wanted_plan=request.plan_digest,
                    credential=request.credential,
                )
                if request.plan_digest:
                    to_be = await self.previews.to_be(project, request)
                    looked_at = replace(goal, blueprint=to_be)
                    await self.previews.foresee(conn, project, request.name, looked_at)
                planned = await self._traversals.toward(conn, goal)
                await self.quotas_of(project).keep(conn, project, STACKS)
                await self.quotas_of(project).keep_change(conn, project, planned)
            record = await find_stack(conn, project, known or stack_id, "")
        self._wake()
        if record is None:
            raise NotFound("the stack that this request made is gone", code="EntityNotFound")
        return record

    async def _seen_before(
        self, conn: Connection, project: str, request: StackRequest, stack_id: UUID
    ) -> UUID | None:
        """The stack an earlier request with the same Idempotency-Key made."""
        if not request.idempotency_key:
            return None
        said = orjson.dumps(
            [request.name, request.template, request.environment, request.files,
             request.parameters, request.tags, request.timeout_mins, request.environment_files,
             request.disable_rollback, request.plan_digest, request.hooks_clear, request.hooks_add],
            option=orjson.OPT_SORT_KEYS,
        )  # fmt: skip
        digest = hashlib.sha256(said).hexdigest()
        held = await accept.claim_key(conn, project, request.idempotency_key, digest, stack_id)
        if held.digest != digest:
            raise Conflict(
                "this Idempotency-Key was used for another request",
                place="Idempotency-Key",
                remedy="Use a new key for each new request.",
                code="IdempotencyKeyReused",
            )
        return None if held.stack_id == stack_id else held.stack_id

    async def _insert_stack(
        self, conn: Connection, project: str, stack_id: UUID, request: StackRequest
    ) -> None:
        made = await accept.insert_stack(
            conn,
            stack_id=stack_id,
            project=project,
            name=request.name,
            owner=request.requested_by,
            tags=request.tags or (),
            timeout_mins=request.timeout_mins,
            disable_rollback=request.disable_rollback is not False,
        )
        if not made:
            raise taken(request.name)

    async def update_stack(self, project: str, stack_id: UUID, request: StackRequest) -> None:
        """Supersede whatever runs by a traversal toward what is asked."""
        answered = await self._asked_before(project, stack_id, request)
        async with self._database.transaction("accept") as conn:
            await self._moves.lock(conn, project, stack_id, request.moved)
            locked = await self._traversals.lock(conn, project, stack_id)
            check_outermost(locked, "updated")
            stored = None
            if request.looks_back:
                stored = await read_template(conn, stack_id, locked.version)
            blueprint = await self._traversals.build(
                request,
                stored,
                project=project,
                stack_id=stack_id,
                name=locked.name,
            )
            await self.asking.ask_again(
                conn, blueprint.definition, project, request.credential, answered
            )
            await check_immutable(conn, stack_id, locked.version, blueprint)
            await self._traversals.supersede(conn, locked, request.requested_by)
            await self._moves.carry_out(conn, project, locked, request, blueprint)
            found = await find(conn, stack_id, blueprint)
            await accept.adorn_stack(
                conn,
                stack_id=stack_id,
                tags=request.tags,
                timeout_mins=request.timeout_mins,
                disable_rollback=request.disable_rollback,
            )
            names = {*blueprint.definition.resources, *(row.name for row in found.rows)}
            goal = Goal(
                stack_id=stack_id,
                action=Action.UPDATE,
                number=locked.traversal + 1,
                version=locked.newest + 1,
                blueprint=blueprint,
                found=found,
                requested_by=request.requested_by,
                cleared=request.hooks_clear,
                options=Options(chosen=chooser(request, names)),
                wanted_plan=request.plan_digest,
                credential=request.credential,
            )
            if request.plan_digest:
                await self.previews.foresee(conn, project, locked.name, goal)
            planned = await self._traversals.toward(conn, goal)
            await self.quotas_of(project).keep_change(conn, project, planned)
        self._wake()

    async def _asked_before(self, project: str, stack_id: UUID, request: StackRequest) -> Answered:
        """What somebody outside says of the values of an update; the stack is not locked."""
        if not self.asking.outside:
            return {}
        async with self._database.connection() as conn:
            stack = await find_stack(conn, project, stack_id, "")
            if stack is None:
                return {}
            stored = await read_template(conn, stack_id, stack.version)
        blueprint = await self._traversals.build(
            request,
            stored,
            project=project,
            stack_id=stack_id,
            name=stack.name,
        )
        return await self.asking.ask(blueprint.definition, project, request.credential)

    async def delete_stack(
        self, project: str, stack_id: UUID, requested_by: str, *, credential: str = ""
    ) -> None:
        """Supersede whatever runs by a traversal that clears everything away."""
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            check_outermost(locked, "deleted")
            if locked.action == Action.DELETE and locked.state in UNDER_WAY:
                return
            await self._traversals.supersede(conn, locked, requested_by)
            existing = await read_existing(conn, stack_id)
            await self._traversals.away(conn, locked, existing, requested_by)
            await self._traversals.keep_credential(conn, stack_id, locked.traversal + 1, credential)
        self._wake()

    async def visit_stack(
        self, project: str, stack_id: UUID, action: Action, by: str, *, credential: str = ""
    ) -> None:
        """Check, suspend or resume. Conflict (ActionInProgress) while something else is under way.

        To ask twice for what is under way, or to suspend what is suspended, changes nothing.
        """
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            check_outermost(locked, VISITED[action])
            if locked.action == action and locked.state in UNDER_WAY:
                return
            if locked.action == action == Action.SUSPEND and locked.state == "complete":
                return
            check_settled(locked, f"{action.lower()} it")
            await self._traversals.visit(conn, locked, action, VISITING[action], by)
            await self._traversals.keep_credential(conn, stack_id, locked.traversal + 1, credential)
            if action == Action.CHECK:
                await self.quotas_of(project).keep(conn, project, CHECKS)
        self._wake()

    async def end_traversal(self, ended: End) -> None:
        """For workers: a traversal of which nothing is left, or whose time is over."""
        async with self._database.transaction("end") as conn:
            await ending.end(conn, self._traversals, ended)
        self._wake()
