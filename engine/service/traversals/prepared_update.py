"""Builds and validates updates before their stacks are locked.

Building takes most of the time of an update: no lock and no connection is held meanwhile.
"""

from dataclasses import dataclass
from uuid import UUID

from engine.errors import Findings
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.external_validation import ExternalValidation, Results
from engine.service.requests.requests import StackRequest
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.records import StackRecord
from engine.store.stacks.stack_lists import find_stack
from engine.store.stacks.stack_locks import LockedStack
from engine.store.stacks.templates import find_template, read_template


@dataclass(frozen=True, slots=True)
class PreparedUpdate:
    """stack: as it was read. results: of external validators, for `blueprint`."""

    stack: StackRecord
    blueprint: Blueprint
    results: Results

    def is_current(self, request: StackRequest, locked: LockedStack) -> bool:
        """Return whether a build under the lock would have the same result: it depends on the
        stack's name and region, and on its template version if the request is completed from
        that."""
        same = self.stack.name == locked.name and self.stack.region == locked.region
        return same and (not request.uses_stored or self.stack.version == locked.version)


class UpdateBuilder:
    def __init__(
        self,
        database: Database,
        traversals: Traversals,
        external_validation: ExternalValidation,
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._external_validation = external_validation

    async def prepare(
        self, project: str, stack_id: UUID, request: StackRequest, warned: Findings
    ) -> PreparedUpdate | None:
        """Build and validate an update without locking the stack. None: it cannot be updated.

        warned: gets the warnings about the request. Raises Invalid, LimitReached.
        """
        stored = None
        async with self._database.connection() as conn:
            stack = await find_stack(conn, project, stack_id, "")
            if stack is None or stack.deleted_at is not None or stack.root_id is not None:
                return None
            if request.uses_stored:
                stored = await find_template(conn, stack_id, stack.version)
                if stored is None:  # deleted since the stack was read
                    return None
        blueprint = await self._traversals.blueprints.build_for(stack, request, stored)
        warned.warn_all(blueprint.warnings)
        results = await self._external_validation.validate(
            blueprint.definition, project, request.credential, blueprint.region
        )
        return PreparedUpdate(stack, blueprint, results)

    async def build_locked(
        self,
        conn: Connection,
        locked: LockedStack,
        request: StackRequest,
        prepared: PreparedUpdate | None,
    ) -> Blueprint:
        """The blueprint of an update: the prepared one unless the stack has changed since.

        Raises Invalid, LimitReached, Conflict.
        """
        if prepared and prepared.is_current(request, locked):
            return prepared.blueprint
        stored = None
        if request.uses_stored:
            stored = await read_template(conn, locked.id, locked.version)
        blueprint = await self._traversals.blueprints.build_for(locked, request, stored, conn=conn)
        await self._external_validation.validate_locked(
            conn,
            blueprint.definition,
            locked.project,
            request.credential,
            prepared.results if prepared else {},
            blueprint.region,
        )
        return blueprint
