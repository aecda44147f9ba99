"""What people read of stacks: records, values worked out, nothing changed."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from engine.errors import NotFound
from engine.hooks.audit import Entry
from engine.hot.definition import evaluate_output
from engine.hot.effort import at_once
from engine.hot.expression import decode, references
from engine.hot.schema import TypeSchema
from engine.hot.versions import date_of
from engine.service.graphs import StackGraph, read_graphs
from engine.service.requests import Output, StackView
from engine.store import read
from engine.store.audit import read_trail
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.events import EventFilter, list_events, read_event
from engine.store.listing import StackFilter, StackPage, list_stacks
from engine.store.processes import ProcessRecord, list_processes
from engine.store.records import (
    EventRecord,
    HookRecord,
    ResourceRecord,
    StackRecord,
    TemplateRecord,
    TraversalRecord,
    VersionRecord,
)
from engine.store.resources import read_descriptions, read_resources
from engine.types.registry import Registry
from engine.words import Json
from engine.work.prepare import Inputs


class Reading:
    """The reads of the front door."""

    def __init__(self, database: Database, registry: Registry) -> None:
        self._database = database
        self._registry = registry

    @property
    def types(self) -> Mapping[str, TypeSchema]:
        return self._registry.schemas()

    async def find_stack(self, project: str, name_or_id: str) -> StackRecord:
        """By id (deleted ones too), then by name. NotFound (code EntityNotFound)."""
        async with self._database.connection() as conn:
            found = await read.find_stack(conn, project, _uuid(name_or_id), name_or_id)
        if found is None:
            reason = f"The Stack ({name_or_id}) could not be found."
            raise NotFound(reason, code="EntityNotFound")
        return found

    async def list_stacks(self, project: str | None, wanted: StackFilter) -> StackPage:
        """project: None: of every project."""
        async with self._database.connection() as conn:
            return await list_stacks(conn, project, wanted)

    async def template(self, stack: StackRecord) -> TemplateRecord:
        async with self._database.connection() as conn:
            return await read.read_template(conn, stack.id, stack.version)

    async def version(self, stack: StackRecord, number: int) -> TemplateRecord:
        """A version of the template. NotFound (code VersionNotFound): forgotten, or never there."""
        async with self._database.connection() as conn:
            found = await read.find_version(conn, stack.id, number)
        if found is None:
            remedy = "GET .../versions lists those that are kept."
            raise NotFound(f"there is no version {number}", remedy=remedy, code="VersionNotFound")
        return found

    async def history(
        self, stack: StackRecord, limit: int
    ) -> tuple[list[VersionRecord], list[TraversalRecord]]:
        """Versions and traversals, newest first."""
        async with self._database.connection() as conn:
            versions = await read.read_versions(conn, stack.id)
            return versions, await read.read_traversals(conn, stack.id, limit)

    async def view(self, stack: StackRecord, *, with_outputs: bool) -> StackView:
        """What the API shows of a stack besides its row."""
        async with self._database.connection() as conn:
            shown = await read.read_shown(conn, stack.id, stack.version)
            outputs = await _outputs(conn, stack, shown) if with_outputs else None
        return StackView(dict(shown.parameters), outputs)

    async def outputs(self, stack: StackRecord) -> list[Output]:
        async with self._database.connection() as conn:
            shown = await read.read_shown(conn, stack.id, stack.version)
            return await _outputs(conn, stack, shown)

    async def resources(self, stack: StackRecord, *, depth: int = 0) -> list[ResourceRecord]:
        """depth: levels of stacks inside whose resources are wanted, too."""
        async with self._database.connection() as conn:
            return await read_resources(conn, stack.id, depth=depth)

    async def descriptions(
        self, stacks: Sequence[UUID], name: str | None = None
    ) -> dict[tuple[UUID, str], str]:
        """What the templates of stacks say of their resources, by stack and name."""
        async with self._database.connection() as conn:
            return await read_descriptions(conn, stacks, name)

    async def events(self, stack: StackRecord, wanted: EventFilter) -> list[EventRecord]:
        """The events the Orchestration API lists (those with a status)."""
        async with self._database.transaction(replan=True) as conn:
            return await list_events(conn, stack.id, wanted)

    async def event(
        self, stack: StackRecord, event_id: UUID
    ) -> tuple[EventRecord, dict[str, Json]]:
        """With its resource's properties as they are now. NotFound (code EntityNotFound)."""
        async with self._database.connection() as conn:
            found = await read_event(conn, stack.id, event_id)
        if found is None:
            raise NotFound(f"there is no event {event_id}", code="EntityNotFound")
        return found

    async def processes(self) -> list[ProcessRecord]:
        """Those that are at work on this database, and those that lately were."""
        async with self._database.connection() as conn:
            return await list_processes(conn)

    async def graph(
        self, stack: StackRecord, *, nested: bool = False, traversal: int | None = None
    ) -> list[StackGraph]:
        """Of the stack's current traversal, or of an earlier one; nested: and of those that it
        began in stacks inside, each behind the one around it; all of it as it was at one moment.
        NotFound (code TraversalNotFound): forgotten, or never there."""
        async with self._database.snapshot() as conn:
            return await read_graphs(conn, stack.id, traversal, nested=nested)

    async def hooks(
        self,
        project: str,
        wanted: read.HookFilter,
    ) -> list[HookRecord]:
        """Oldest first."""
        async with self._database.transaction(replan=True) as conn:
            return await read.read_hooks(conn, project, wanted)

    async def audit_trail(self, stack: StackRecord, *, after: int, limit: int) -> list[Entry]:
        """Who decided what, in order."""
        async with self._database.connection() as conn:
            return await read_trail(conn, stack.id, after=after, limit=limit)

    async def hook(self, hook_id: UUID, *, project: str | None) -> HookRecord:
        """NotFound (code HookNotFound) also when it belongs to another project."""
        async with self._database.connection() as conn:
            found = await read.read_hook(conn, hook_id, project)
        if found is None:
            raise NotFound(f"there is no hook {hook_id}", code="HookNotFound")
        return found


async def _outputs(conn: Connection, stack: StackRecord, shown: read.Shown) -> list[Output]:
    outputs = [(one, decode(one["value"], date_of(shown.written_in))) for one in shown.outputs]
    names = sorted({name for _, value in outputs for name in references(value)})
    view = Inputs(await read.read_values(conn, stack.id, names) if names else {})
    effort = at_once()
    return [
        Output(one["key"], one["description"], *evaluate_output(value, view, effort))
        for one, value in outputs
    ]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
