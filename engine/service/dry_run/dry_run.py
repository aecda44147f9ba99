"""Dry runs of requests to create or update a stack."""

from engine.hot.definition.stack import StackDefinition
from engine.plan.draft import Options
from engine.service.actions.moves import Moves
from engine.service.dry_run.stack_tree import StackContext, TreeDryRun
from engine.service.plan_view.prediction import Preview
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.change import (
    CurrentState,
    DesiredState,
    live_breakpoints,
    read_matchable,
)
from engine.service.requests.external_validation import ExternalValidation
from engine.service.requests.immutable_parameters import check_immutable
from engine.service.requests.partial_update import partial_filter
from engine.service.requests.requests import StackRequest
from engine.service.requests.stack_names import check_name, name_taken
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.current_resources import read_existing
from engine.store.database import Database
from engine.store.records import StackRecord
from engine.store.stack_queries import find_stack, read_template
from engine.words import Action


class DryRun:
    def __init__(
        self,
        database: Database,
        traversals: Traversals,
        moves: Moves,
        external_validation: ExternalValidation,
    ) -> None:
        self._database = database
        self._external_validation = external_validation
        self._traversals = traversals
        self._moves = moves
        self._stack_tree = TreeDryRun(traversals)

    async def create(self, project: str, request: StackRequest) -> tuple[Preview, StackDefinition]:
        """The preview and definition of a new stack. Raises what `Stacks.create` raises."""
        check_name(request.name)
        async with self._database.connection() as conn:
            if await find_stack(conn, project, None, request.name) is not None:
                raise name_taken(request.name)
        blueprint = await self.build_new(project, request)
        await self._external_validation.validate(blueprint.definition, project, request.credential)
        stack_id = self._traversals.new_id()
        desired = DesiredState(
            stack_id, Action.CREATE, 1, 1, blueprint, CurrentState(), request.requested_by,
            cleared=request.hooks_clear, wanted_plan=request.plan_digest,
        )  # fmt: skip
        async with self._database.connection() as conn:
            preview = await self.preview(conn, project, request.name, desired)
        return preview, blueprint.definition

    async def build_new(self, project: str, request: StackRequest) -> Blueprint:
        """The blueprint of a stack that does not exist yet: it has no id."""
        return await self._traversals.build(
            request, None, project=project, stack_id=None, name=request.name
        )

    async def update(self, project: str, stack: StackRecord, request: StackRequest) -> Preview:
        """The preview of an update. Raises what `Stacks.update` raises.

        Moves are applied in a transaction that is rolled back.
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
                await self._moves.apply(conn, project, locked, request, blueprint)
            existing = await read_existing(conn, stack.id)
            names = {*blueprint.definition.resources, *(row.name for row in existing)}
            desired = DesiredState(
                stack_id=stack.id,
                action=Action.UPDATE,
                number=stack.traversal + 1,
                version=stack.version + 1,
                blueprint=blueprint,
                current=CurrentState(
                    existing,
                    live=await live_breakpoints(conn, stack.id),
                    nested=await read_matchable(conn, stack.id, blueprint),
                ),
                requested_by=request.requested_by,
                cleared=request.hooks_clear,
                options=Options(chosen=partial_filter(request, names)),
                wanted_plan=request.plan_digest,
            )
            preview = await self.preview(conn, project, stack.name, desired)
        await self._external_validation.validate(blueprint.definition, project, request.credential)
        return preview

    async def preview(
        self, conn: Connection, project: str, name: str, desired: DesiredState
    ) -> Preview:
        """The preview of a change, with those of its nested stacks. desired.current must have all
        rows that it concerns.

        Raises Conflict (PlanChanged) if `desired.wanted_plan` is the digest of another plan.
        """
        target = StackContext(project, name, (), desired.stack_id if desired.number > 1 else None)
        return await self._stack_tree.dry_run(conn, desired, target, desired.current.rows)
