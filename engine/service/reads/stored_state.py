"""Reads of stored state: stacks, evaluated outputs, events, graphs, hooks and audit logs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from engine.errors import Findings, public, without_value
from engine.hooks.hash_chain import Entry
from engine.hot.definition.stack import StackDefinition, evaluate_output
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import Expression, decode, is_static, referenced_resources
from engine.hot.expressions.masking import MASK, contains_mask, iterate_texts, leaks_secret
from engine.hot.functions.cost_budget import CostBudget, resolution_budget
from engine.hot.functions.function import FunctionError
from engine.hot.language.versions import date_of
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.keyed_names import find_name, possible_names
from engine.missing_objects import no_event, no_hook, no_resource, no_stack, no_version
from engine.service.reads.graphs import StackGraph, read_graphs
from engine.service.reads.written_types import WrittenTypes, written_types
from engine.service.requests.blueprint import Limits
from engine.service.requests.policy_check import check_section
from engine.service.requests.requests import Output, StackValues
from engine.store.audit.audit_log import ListedEntry, LogFilter, read_log, read_log_of_project
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.encryption.encrypted_rows import UNDECRYPTABLE
from engine.store.hooks import hook_lists
from engine.store.maintenance.processes import (
    ProcessRecord,
    list_processes,
    read_served_labels,
)
from engine.store.projects.id_prefixes import IdMatch, read_ids_with_prefix
from engine.store.read_database import ReadDatabase
from engine.store.records import (
    EventRecord,
    HookRecord,
    ResourceRecord,
    StackRecord,
    TemplateRecord,
    TraversalRecord,
    VersionRecord,
)
from engine.store.resources import resource_reads
from engine.store.resources.resource_reads import (
    read_descriptions,
    read_names,
    read_resource_rules,
    read_resources,
)
from engine.store.stacks import stack_lists, templates
from engine.store.stacks.events import EventFilter, list_events, read_event, read_tree_ids
from engine.store.stacks.stack_lists import (
    StackFilter,
    StackPage,
    StackPosition,
    find_position,
    list_stacks,
)
from engine.store.stacks.stack_overview import Overview, OverviewFilter, read_overview
from engine.store.stacks.stack_search import read_similar
from engine.store.traversals import graphs
from engine.types.registry import TypeRegistry
from engine.words import Json, uuid_or_none
from engine.work.nodes.prepare import Inputs


class Reads:
    """Reads of stored state."""

    def __init__(
        self,
        database: Database,
        registry: TypeRegistry,
        limits: Limits,
        lists: ReadDatabase | None = None,
    ) -> None:
        """lists: serves lists and histories; None: the database does."""
        self._database = database
        self._lists = lists or ReadDatabase(database)
        self._registry = registry
        self._limits = limits

    @property
    def types(self) -> Mapping[str, TypeSchema]:
        """The schemas of all resource types, by name."""
        return self._registry.schemas()

    def check_properties(
        self, name: str, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        """Check the rules of a type that concern several properties."""
        self._registry.check_properties(name, properties, place, findings)

    def check_convergence(
        self, section: Json, definition: StackDefinition, project: str, findings: Findings
    ) -> None:
        """Check the section `convergence` of a new stack."""
        check_section(
            section, definition, self._registry, self._limits.convergence, project, findings
        )

    async def find_stack(self, project: str, name_or_id: str) -> StackRecord:
        """Find a stack by id (also a deleted one) or by name. Raises NotFound (EntityNotFound),
        which suggests a similar name."""
        stack_id = uuid_or_none(name_or_id)
        async with self._database.connection() as conn:
            found = await stack_lists.find_stack(conn, project, stack_id, name_or_id)
            if found is not None:
                return found
            by_name = stack_id is None
            known = await read_similar(conn, project, name_or_id) if by_name else ()
        raise no_stack(name_or_id, known)

    async def ids_with_prefix(
        self, project: str, kind: str, ids: tuple[UUID, UUID]
    ) -> list[IdMatch]:
        """The objects of a kind whose ID is between two."""
        async with self._database.connection() as conn:
            return await read_ids_with_prefix(conn, project, kind, ids)

    async def list_stacks(self, project: str | None, wanted: StackFilter) -> StackPage:
        """A page of stacks. project: None for all projects."""
        return await self._lists.read(lambda conn: list_stacks(conn, project, wanted))

    async def stack_position(self, stack_id: UUID) -> StackPosition | None:
        """The position of a stack of any project in the order by age; None: there is none."""
        async with self._database.connection() as conn:
            return await find_position(conn, stack_id)

    async def template(self, stack: StackRecord) -> TemplateRecord:
        """The current template version."""
        async with self._database.connection() as conn:
            return (await templates.read_template(conn, stack.id, stack.version)).restore_order()

    async def version(self, stack: StackRecord, number: int) -> TemplateRecord:
        """A template version. Raises NotFound (VersionNotFound), also if it was purged."""
        async with self._database.connection() as conn:
            found = await templates.find_template(conn, stack.id, number)
        if found is None:
            raise no_version(number)
        return found.restore_order()

    async def history(
        self, stack: StackRecord, limit: int
    ) -> tuple[list[VersionRecord], list[TraversalRecord]]:
        """Template versions, and at most `limit` traversals; both newest first."""

        async def read(conn: Connection) -> tuple[list[VersionRecord], list[TraversalRecord]]:
            versions = await templates.read_versions(conn, stack.id)
            return versions, await graphs.read_traversals(conn, stack.id, limit)

        return await self._lists.read(read)

    async def view(self, stack: StackRecord, *, with_outputs: bool) -> StackValues:
        """The parameters of a stack, and its outputs if requested."""
        async with self._database.connection() as conn:
            shown = await templates.read_template_summary(conn, stack.id, stack.version)
            outputs = await _outputs(conn, stack, shown) if with_outputs else None
        return StackValues(dict(shown.parameters), outputs)

    async def outputs(self, stack: StackRecord) -> list[Output]:
        """The evaluated outputs; secret ones of nested stacks are masked."""
        async with self._database.connection() as conn:
            shown = await templates.read_template_summary(conn, stack.id, stack.version)
            return await _outputs(conn, stack, shown)

    async def resources(
        self, stack: StackRecord, *, depth: int = 0, with_values: bool = True
    ) -> list[ResourceRecord]:
        """The resources of a stack. depth: levels of nested stacks to include. with_values: also
        their properties, attributes and metadata, which are null without it."""
        return await self._lists.read(
            lambda conn: read_resources(conn, stack.id, depth=depth, with_values=with_values)
        )

    async def resource_name(self, stack: StackRecord, wanted: str) -> str:
        """The name of a resource, by its name or plain name. Raises NotFound (ResourceNotFound)."""
        async with self._database.connection() as conn:
            found = find_name(wanted, await read_names(conn, stack.id, possible_names(wanted)))
            if found is not None:
                return found
            raise no_resource(wanted, stack.name, await read_names(conn, stack.id))

    async def resource(
        self, stack: StackRecord, wanted: str
    ) -> tuple[ResourceRecord, Sequence[str]]:
        """A resource, by its name or plain name, and the names of the resources that depend on it.
        Raises NotFound (ResourceNotFound)."""
        name = await self.resource_name(stack, wanted)
        async with self._database.connection() as conn:
            rows = await read_resources(conn, stack.id, name)
            if not rows:
                raise no_resource(wanted, stack.name, await read_names(conn, stack.id))
            return rows[0], (await read_resource_rules(conn, stack.id, name)).required_by

    async def descriptions(
        self, stacks: Sequence[UUID], name: str | None = None
    ) -> dict[tuple[UUID, str], str]:
        """The descriptions of resources in their templates, by stack id and resource name."""
        async with self._database.connection() as conn:
            return await read_descriptions(conn, stacks, name)

    async def written_types(
        self, project: str, stacks: Sequence[UUID], name: str | None = None
    ) -> WrittenTypes:
        """The types of resources as their templates write them. name: only of this resource."""
        async with self._database.connection() as conn:
            limits = self._limits.for_project(project)
            return await written_types(conn, stacks, limits, self._registry, name)

    async def events(self, stack: StackRecord, wanted: EventFilter) -> list[EventRecord]:
        """The events that the Orchestration API lists: those with a status."""

        async def read(conn: Connection) -> list[EventRecord]:
            types: WrittenTypes | None = None
            if wanted.types or wanted.by_type:
                tree = await read_tree_ids(conn, stack.id, wanted.depth)
                limits = self._limits.for_project(stack.project)
                types = await written_types(conn, tree, limits, self._registry)
            return await list_events(
                conn, stack.id, stack.name, wanted, types.by_stack if types else {}
            )

        return await self._lists.page(read)

    async def event(
        self, stack: StackRecord, event_id: UUID
    ) -> tuple[EventRecord, dict[str, Json]]:
        """An event, and its resource's current properties. Raises NotFound (EntityNotFound)."""
        async with self._database.connection() as conn:
            found = await read_event(conn, stack.id, event_id)
        if found is None:
            raise no_event(event_id)
        return found

    async def overview(self, project: str, wanted: OverviewFilter) -> Overview:
        """The root stacks of a project, newest change first."""
        return await self._lists.read(
            lambda conn: read_overview(conn, project, wanted), replan=True
        )

    async def project_audit_log(self, project: str, wanted: LogFilter) -> list[ListedEntry]:
        """The audit log entries of all stacks of a project, newest first."""
        one_stack = wanted.stack_id is not None
        return await self._lists.read(
            lambda conn: read_log_of_project(conn, project, wanted),
            replan=True,
            by_index=not one_stack,
        )

    async def processes(self) -> list[ProcessRecord]:
        """The running and recently stopped processes of this database."""
        async with self._database.connection() as conn:
            return await list_processes(conn)

    async def served_labels(self) -> frozenset[str]:
        """The labels of the workers of running processes."""
        async with self._database.connection() as conn:
            return await read_served_labels(conn)

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
        project: str | None,
        wanted: hook_lists.HookFilter,
    ) -> list[HookRecord]:
        """The hooks that a filter selects, oldest first. project: None for all projects."""
        if project is None:
            return await self._lists.page(lambda conn: hook_lists.read_hooks_of_all(conn, wanted))
        return await self._lists.page(lambda conn: hook_lists.read_hooks(conn, project, wanted))

    async def hook_position(self, hook_id: UUID) -> hook_lists.HookPosition | None:
        """The position of a hook of any project in lists; None: there is none."""
        async with self._database.connection() as conn:
            return await hook_lists.find_hook_position(conn, hook_id)

    async def audit_log(self, stack: StackRecord, *, after: int, limit: int) -> list[Entry]:
        """The stack's audit log entries with numbers above `after`, oldest first."""
        return await self._lists.page(
            lambda conn: read_log(conn, stack.id, after=after, limit=limit)
        )

    async def hook(self, hook_id: UUID, *, project: str | None) -> HookRecord:
        """A hook. project: None for any. Raises NotFound (HookNotFound), also for another project's
        hook."""
        async with self._database.connection() as conn:
            found = await hook_lists.read_hook(conn, hook_id, project)
        if found is None:
            raise no_hook(hook_id)
        return found


async def _outputs(
    conn: Connection, stack: StackRecord, shown: templates.TemplateSummary
) -> list[Output]:
    if shown.undecryptable:
        return [Output(UNDECRYPTABLE, "", None, shown.undecryptable)]
    outputs = [(one, decode(one["value"], date_of(shown.written_in))) for one in shown.outputs]
    values = await _values_of(conn, stack.id, (value for _, value in outputs))
    view, budget = Inputs(values.by_name), resolution_budget()
    found = [
        Output(one["key"], one["description"], *_evaluate_value(value, values, view, budget))
        for one, value in outputs
    ]
    is_public = stack.parent_id is None and not stack.private_outputs
    if is_public and not any(one.error for one in found):
        return found
    stored = await templates.read_template(conn, stack.id, stack.version)
    secret = secret_outputs(shown, view, {one.key: one.value for one in found}, stored)
    return [_mask_output(one, with_value=is_public) if one.key in secret else one for one in found]


async def evaluate_outputs(
    conn: Connection,
    stack: StackRecord,
    shown: templates.TemplateSummary,
    wanted: Collection[str],
    budget: CostBudget,
) -> tuple[dict[str, tuple[Json, str | None]], frozenset[str]]:
    """Return (value, error) of some outputs by name, and the names of the secret ones. Outputs that
    do not exist are left out. budget: shared with other stacks."""
    outputs = {
        one["key"]: decode(one["value"], date_of(shown.written_in))
        for one in shown.outputs
        if one["key"] in wanted
    }
    values = await _values_of(conn, stack.id, outputs.values())
    view = Inputs(values.by_name)
    found = {name: _evaluate_value(one, values, view, budget) for name, one in outputs.items()}
    stored = await templates.read_template(conn, stack.id, stack.version)
    return found, secret_outputs(shown, view, {key: one for key, (one, _) in found.items()}, stored)


async def _values_of(
    conn: Connection, stack_id: UUID, outputs: Iterable[Expression]
) -> resource_reads.ResourceValues:
    """The values of the resources that outputs read."""
    names = sorted({name for value in outputs for name in referenced_resources(value)})
    if not names:
        return resource_reads.ResourceValues({}, {})
    return await resource_reads.read_values(conn, stack_id, names)


def _evaluate_value(
    value: Expression, values: resource_reads.ResourceValues, view: Inputs, budget: CostBudget
) -> tuple[Json, str | None]:
    for name in referenced_resources(value):
        if name in values.undecryptable:
            return None, public(values.undecryptable[name])
    return evaluate_output(value, view, budget)


#: Replaces the reason of an output that may quote a secret.
WITHHELD_OUTPUT = "it cannot be evaluated; the reason is not shown because it depends on a secret"


def _mask_output(one: Output, *, with_value: bool) -> Output:
    """A secret output. Its value is shown only in a stack that is not and was not nested; otherwise
    it is for the parent. An error may quote secrets that the value does not contain.
    """
    error = None if one.error is None else without_value(one.error, WITHHELD_OUTPUT)
    return replace(one, value=one.value if with_value else MASK, error=error)


def secret_outputs(
    shown: templates.TemplateSummary,
    view: Inputs,
    values: Mapping[str, Json],
    stored: TemplateRecord,
) -> frozenset[str]:
    """Names of the secret outputs. values: of the outputs, by name. view: the stack's resources."""
    version, hidden = date_of(shown.written_in), _hidden_texts(stored)
    masked = view.mask() if view.has_secrets else None
    return frozenset(
        key
        for one in shown.outputs
        if (key := one["key"]) in values
        if one.get("secret")
        or ("secret" not in one and leaks_secret(values[key], hidden))
        or (masked is not None and _reads_secrets(decode(one["value"], version), masked))
    )


def _reads_secrets(expression: Expression, masked: Inputs) -> bool:
    if is_static(expression):
        return False
    try:
        return contains_mask(resolve(expression, masked, masked=True, budget=resolution_budget()))
    except FunctionError:  # evaluating masks can exceed a budget that the values do not
        return True


def _hidden_texts(stored: TemplateRecord) -> set[str]:
    """Values of hidden parameters, for outputs that an earlier release stored without `secret`."""
    values = {**(stored.environment.get("parameters") or {}), **stored.parameters}
    return {text for name in stored.hidden_parameters for text in iterate_texts(values.get(name))}
