"""What a request would do, without doing any of it."""

from engine.hot.definition import Definition
from engine.plan.draft import Options
from engine.service.asking import Asking
from engine.service.blueprint import Blueprint
from engine.service.fixed import check_immutable
from engine.service.foreseeing import Around, Foreseeing
from engine.service.goals import Found, Goal, live_breakpoints, read_meant
from engine.service.moves import Moves
from engine.service.names import check_name, taken
from engine.service.partial import chooser
from engine.service.prediction import Preview
from engine.service.requests import StackRequest
from engine.service.traversals import Traversals
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.existing import read_existing
from engine.store.read import find_stack, read_template
from engine.store.records import StackRecord
from engine.words import (
    Action,
)


class Previews:
    def __init__(
        self, database: Database, traversals: Traversals, moves: Moves, asking: Asking
    ) -> None:
        self._database = database
        self._asking = asking
        self._traversals = traversals
        self._moves = moves
        self._foreseeing = Foreseeing(traversals)

    async def create(self, project: str, request: StackRequest) -> tuple[Preview, Definition]:
        """What making a stack of the request would do. Raises what that would."""
        check_name(request.name)
        async with self._database.connection() as conn:
            if await find_stack(conn, project, None, request.name) is not None:
                raise taken(request.name)
        blueprint = await self.to_be(project, request)
        await self._asking.ask(blueprint.definition, project, request.credential)
        stack_id = self._traversals.new_id()
        goal = Goal(stack_id, Action.CREATE, 1, 1, blueprint, Found(), request.requested_by,
                    cleared=request.hooks_clear, wanted_plan=request.plan_digest)  # fmt: skip
        async with self._database.connection() as conn:
            preview = await self.foresee(conn, project, request.name, goal)
        return preview, blueprint.definition

    async def to_be(self, project: str, request: StackRequest) -> Blueprint:
        """A stack that is not there yet, of which nobody knows the id."""
        return await self._traversals.build(
            request, None, project=project, stack_id=None, name=request.name
        )

    async def update(self, project: str, stack: StackRecord, request: StackRequest) -> Preview:
        """What the update would do to what exists now. Raises what the update would.

        Moves are carried out, and taken back.
        """
        async with self._database.rehearsal() as conn:
            await self._moves.lock(conn, project, stack.id, request.moved)
            before = await read_template(conn, stack.id, stack.version)
            blueprint = await self._traversals.build(
                request,
                before,
                project=project,
                stack_id=stack.id,
                name=stack.name,
            )
            await check_immutable(conn, stack.id, stack.version, blueprint)
            if request.moved:
                locked = await self._traversals.lock(conn, project, stack.id)
                await self._moves.carry_out(conn, project, locked, request, blueprint)
            existing = await read_existing(conn, stack.id)
            names = {*blueprint.definition.resources, *(row.name for row in existing)}
            goal = Goal(
                stack_id=stack.id,
                action=Action.UPDATE,
                number=stack.traversal + 1,
                version=stack.version + 1,
                blueprint=blueprint,
                found=Found(
                    existing,
                    live=await live_breakpoints(conn, stack.id),
                    inside=await read_meant(conn, stack.id, blueprint),
                ),
                requested_by=request.requested_by,
                cleared=request.hooks_clear,
                options=Options(chosen=chooser(request, names)),
                wanted_plan=request.plan_digest,
            )
            preview = await self.foresee(conn, project, stack.name, goal)
        await self._asking.ask(blueprint.definition, project, request.credential)
        return preview

    async def foresee(self, conn: Connection, project: str, name: str, goal: Goal) -> Preview:
        """What the change does, in its stack and inside. Conflict (PlanChanged) when its author
        saw another plan. goal.found: all rows that it concerns."""
        here = Around(project, name, (), goal.stack_id if goal.number > 1 else None)
        return await self._foreseeing.foresee(conn, goal, here, goal.found.rows)
