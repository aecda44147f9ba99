"""Reads of stacks: records, evaluated outputs, events, graphs and hooks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from engine.errors import NotFound
from engine.hooks.hash_chain import Entry
from engine.hot.definition.stack import evaluate_output
from engine.hot.expressions.expression import decode, referenced_resources
from engine.hot.expressions.masking import MASK
from engine.hot.functions.cost_budget import resolution_budget
from engine.hot.language.versions import date_of
from engine.hot.schema.type_schema import TypeSchema
from engine.service.reads.graphs import StackGraph, read_graphs
from engine.service.requests.requests import Output, StackView
from engine.service.requests.secret_outputs import secret_outputs
from engine.store import stack_queries
from engine.store.audit_log import read_trail
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.events import EventFilter, list_events, read_event
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
from engine.store.secret_rows import UNDECRYPTABLE
from engine.store.stack_lists import StackFilter, StackPage, list_stacks
from engine.types.registry import Registry
from engine.words import Json
from engine.work.prepare import Inputs


class Reads:
    """Reads of stored state."""

    def __init__(self, database: Database, registry: Registry) -> None:
        self._database = database
        self._registry = registry

    @property
    def types(self) -> Mapping[str, TypeSchema]:
        """The schemas of all resource types, by name."""
        return self._registry.schemas()

    async def find_stack(self, project: str, name_or_id: str) -> StackRecord:
        """Find a stack by id (also a deleted one) or by name. Raises NotFound (EntityNotFound)."""
        async with self._database.connection() as conn:
            found = await stack_queries.find_stack(conn, project, _uuid(name_or_id), name_or_id)
        if found is None:
            reason = f"The Stack ({name_or_id}) could not be found."
            raise NotFound(reason, code="EntityNotFound")
        return found

    async def list_stacks(self, project: str | None, wanted: StackFilter) -> StackPage:
        """A page of stacks. project: None for all projects."""
        async with self._database.connection() as conn:
            return await list_stacks(conn, project, wanted)

    async def template(self, stack: StackRecord) -> TemplateRecord:
        """The current template version."""
        async with self._database.connection() as conn:
            return await stack_queries.read_template(conn, stack.id, stack.version)

    async def version(self, stack: StackRecord, number: int) -> TemplateRecord:
        """A template version. Raises NotFound (VersionNotFound), also if it was purged."""
        async with self._database.connection() as conn:
            found = await stack_queries.find_version(conn, stack.id, number)
        if found is None:
            remedy = "GET .../versions lists the retained versions."
            raise NotFound(f"there is no version {number}", remedy=remedy, code="VersionNotFound")
        return found

    async def history(
        self, stack: StackRecord, limit: int
    ) -> tuple[list[VersionRecord], list[TraversalRecord]]:
        """Template versions, and at most `limit` traversals; both newest first."""
        async with self._database.connection() as conn:
            versions = await stack_queries.read_versions(conn, stack.id)
            return versions, await stack_queries.read_traversals(conn, stack.id, limit)

    async def view(self, stack: StackRecord, *, with_outputs: bool) -> StackView:
        """The parameters of a stack, and its outputs if requested."""
        async with self._database.connection() as conn:
            shown = await stack_queries.read_shown(conn, stack.id, stack.version)
            outputs = await _outputs(conn, stack, shown) if with_outputs else None
        return StackView(dict(shown.parameters), outputs)

    async def outputs(self, stack: StackRecord) -> list[Output]:
        """The evaluated outputs; secret ones of nested stacks are masked."""
        async with self._database.connection() as conn:
            shown = await stack_queries.read_shown(conn, stack.id, stack.version)
            return await _outputs(conn, stack, shown)

    async def resources(self, stack: StackRecord, *, depth: int = 0) -> list[ResourceRecord]:
        """The resources of a stack. depth: levels of nested stacks to include."""
        async with self._database.connection() as conn:
            return await read_resources(conn, stack.id, depth=depth)

    async def descriptions(
        self, stacks: Sequence[UUID], name: str | None = None
    ) -> dict[tuple[UUID, str], str]:
        """The descriptions of resources in their templates, by stack id and resource name."""
        async with self._database.connection() as conn:
            return await read_descriptions(conn, stacks, name)

    async def events(self, stack: StackRecord, wanted: EventFilter) -> list[EventRecord]:
        """The events that the Orchestration API lists: those with a status."""
        async with self._database.transaction(replan=True) as conn:
            return await list_events(conn, stack.id, wanted)

    async def event(
        self, stack: StackRecord, event_id: UUID
    ) -> tuple[EventRecord, dict[str, Json]]:
        """An event, and its resource's current properties. Raises NotFound (EntityNotFound)."""
        async with self._database.connection() as conn:
            found = await read_event(conn, stack.id, event_id)
        if found is None:
            raise NotFound(f"there is no event {event_id}", code="EntityNotFound")
        return found

    async def processes(self) -> list[ProcessRecord]:
        """The running and recently stopped processes of this database."""
        async with self._database.connection() as conn:
            return await list_processes(conn)

    async def graph(
        self, stack: StackRecord, *, nested: bool = False, traversal: int | None = None
    ) -> list[StackGraph]:
        """The graph of a traversal; with nested, also of the nested traversals that it started,
        after their parents. All graphs are read from one snapshot of the database.

        traversal: None for the current one. Raises NotFound (TraversalNotFound), also if it was
        purged.
        """
        async with self._database.snapshot() as conn:
            return await read_graphs(conn, stack.id, traversal, nested=nested)

    async def hooks(
        self,
        project: str,
        wanted: stack_queries.HookFilter,
    ) -> list[HookRecord]:
        """The hooks that a filter selects, oldest first."""
        async with self._database.transaction(replan=True) as conn:
            return await stack_queries.read_hooks(conn, project, wanted)

    async def audit_log(self, stack: StackRecord, *, after: int, limit: int) -> list[Entry]:
        """The stack's audit log entries with numbers above `after`, oldest first."""
        async with self._database.connection() as conn:
            return await read_trail(conn, stack.id, after=after, limit=limit)

    async def hook(self, hook_id: UUID, *, project: str | None) -> HookRecord:
        """A hook. project: None for any. Raises NotFound (HookNotFound), also for another project's
        hook."""
        async with self._database.connection() as conn:
            found = await stack_queries.read_hook(conn, hook_id, project)
        if found is None:
            raise NotFound(f"there is no hook {hook_id}", code="HookNotFound")
        return found


async def _outputs(
    conn: Connection, stack: StackRecord, shown: stack_queries.Shown
) -> list[Output]:
    if shown.undecryptable:
        return [Output(UNDECRYPTABLE, "", None, shown.undecryptable)]
    outputs = [(one, decode(one["value"], date_of(shown.written_in))) for one in shown.outputs]
    names = sorted({name for _, value in outputs for name in referenced_resources(value)})
    values = (
        await stack_queries.read_values(conn, stack.id, names)
        if names
        else stack_queries.Values({}, {})
    )
    view = Inputs(values.of)
    budget = resolution_budget()

    def evaluated(value: Json) -> tuple[Json, str | None]:
        for name in referenced_resources(value):
            if name in values.undecryptable:
                return None, values.undecryptable[name]
        return evaluate_output(value, view, budget)

    found = [Output(one["key"], one["description"], *evaluated(value)) for one, value in outputs]
    return found if stack.parent_id is None else await _masked(conn, stack, shown, view, found)


async def _masked(
    conn: Connection,
    stack: StackRecord,
    shown: stack_queries.Shown,
    view: Inputs,
    found: list[Output],
) -> list[Output]:
    """Mask the secret outputs of a nested stack: only its parent receives their values."""
    stored = await stack_queries.read_template(conn, stack.id, stack.version)
    secret = secret_outputs(shown, view, {one.key: one.value for one in found}, stored)
    return [replace(one, value=MASK) if one.key in secret else one for one in found]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
