"""The credential with which a repair of drift acts in the cloud.

No user waits for a repair whose token it could use, and the approver of a drift hook has approved
the repair only. So it acts with the credential that the owner of the project has handed over for
repairs. A repair that needs one and has none does not start.
"""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from engine.errors import NotFound
from engine.hot.environment.registry import is_template_file
from engine.plan.graph import downstream
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.observer import observations
from engine.store.observer.repair_scope import (
    ResourceInScope,
    read_lost_types,
    read_root,
    read_scope,
)
from engine.types.registry import TypeRegistry
from engine.words import StackId
from engine.work.observer.batch_observer import PAGE, PAGE_BYTES
from engine.work.observer.observed_rows import recorded_call


class RepairCredentialSource(Protocol):
    """The credentials of projects."""

    async def find_for_repairs(self, project: str) -> str:
        """What a repair in a project stores with its traversal. Raises Forbidden if no repair can
        act in the project, Unavailable."""
        ...


class RepairCredentials:
    """handed_over: None: the identity service of this server has no such credentials."""

    def __init__(
        self, database: Database, registry: TypeRegistry, handed_over: RepairCredentialSource | None
    ) -> None:
        self._database = database
        self._registry = registry
        self._handed_over = handed_over

    async def find(self, project: str, stack_id: UUID, names: Sequence[str]) -> str:
        """The credential for a repair of these resources of a root stack; "": it needs none. Raises
        Forbidden, Unavailable."""
        if self._handed_over is None:
            return ""
        async with self._database.connection() as conn:
            needed = await self._needs_credential(conn, project, stack_id, names)
        return await self._handed_over.find_for_repairs(project) if needed else ""

    async def _needs_credential(
        self, conn: Connection, project: str, stack_id: UUID, names: Sequence[str]
    ) -> bool:
        """Whether the resources or those that depend on them act in a cloud, also in nested
        stacks."""
        root = await read_root(conn, stack_id)
        start = [one.id for one in root if one.name in names]
        reached = downstream({one.id: one.requires for one in root}, start)
        chosen = {one.name for one in root if one.id in reached}
        scope = await read_scope(conn, stack_id, chosen)
        if await self._creates_in_cloud(conn, scope):
            return True
        found = [(one.stack_id, one.id) for one in scope if self._uses_credential(one.type)]
        while found:
            page = await observations.read_some(conn, found, project, PAGE, PAGE_BYTES)
            for one in page.resources:
                call = recorded_call(project, StackId(one.stack_id), "", one, one.id)
                if self._registry.get(one.type).needs_credential(call):
                    return True
            last = page.last
            found = [one for one in found if last is not None and one > last]
        return False

    async def _creates_in_cloud(self, conn: Connection, scope: Sequence[ResourceInScope]) -> bool:
        """Whether a nested stack that does not exist any more has resources that act in a cloud.
        The repair creates them again. They have no rows, so their templates are read; a type that
        is not known, or only by the name that an environment maps, counts as one of a cloud."""
        owners = [one for one in scope if self._registry.has_nested_stack(one.type)]
        if not owners:
            return False
        known = self._registry.schemas()
        return any(
            type_ is None
            or not (is_template_file(type_) or type_ in known)
            or self._uses_credential(type_)
            for type_ in await read_lost_types(conn, owners)
        )

    def _uses_credential(self, name: str) -> bool:
        """False for a type with a nested stack: the resources of that are read, too."""
        try:
            type_ = self._registry.get(name)
        except NotFound:  # the plug-in of an earlier process
            return False
        return type_.uses_credential and not type_.has_nested_stack
