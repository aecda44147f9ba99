"""Dry runs of requests to create or update a stack, with its nested stacks.

A nested stack is planned like its parent, as far as its parameter values are known; that of a group
with the members that the group has after all steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from uuid import UUID

from engine.errors import Conflict, Findings, Invalid, LimitReached
from engine.hooks.rule_patterns import cleared_inside
from engine.hot.definition.stack import PER_STACK, StackDefinition
from engine.hot.definition.template_stacks import with_parameters_alone
from engine.hot.evaluation.stack_outputs import StackOutputs
from engine.hot.expressions.expression import is_static
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.nested.template_stack import PARAMETERS, TEMPLATE_STACK, stack_parameters
from engine.plan.draft import Options
from engine.plan.drift import NO_MARKS, DriftMarks
from engine.plan.expected_changes import UNKNOWN, contains_unknown
from engine.service.actions.moves import Moves
from engine.service.observations import read_repairs, read_unobserved
from engine.service.plan_preview import (
    KINDS,
    PlanPreviewer,
    Preview,
    PreviewedResource,
    overrides_of,
    read_rows,
    uncertain_preview,
)
from engine.service.reads.stack_outputs import check_sources, with_stack_outputs
from engine.service.requests.adoption import check_imported, imported_resources
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.change_checks import check_immutable, check_name, name_taken
from engine.service.requests.desired_state import CurrentState, DesiredState, read_whole_state
from engine.service.requests.external_validation import ExternalValidation
from engine.service.requests.nested_stack import (
    NestedStack,
    OwningResource,
    build_nested,
    previewed_name,
)
from engine.service.requests.parsing import ParsedRequest
from engine.service.requests.requests import StackRequest
from engine.service.requests.stack_region import check_region
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.observer.drift_rows import UnobservedResource
from engine.store.records import PlannedRecord, StackRecord
from engine.store.resources.current_resources import read_existing
from engine.store.resources.overrides import read_overrides
from engine.store.stacks.stack_lists import find_stack
from engine.store.stacks.templates import read_template
from engine.store.traversals.nested_stacks import (
    MemberRecord,
    NestedStackName,
    read_members,
    read_nested_stacks,
)
from engine.types.contract import Call, Child, Member, ReconcileNested
from engine.types.groups.member_template import UNKNOWN_VALUES
from engine.words import (
    Action,
    DeletionPolicy,
    Json,
    ResourceId,
    Restriction,
    StackId,
    Status,
    TraversalState,
)

#: In place of IDs that a dry run does not assign.
NO_ID = UUID(int=0)
#: The definition that a delete has as its target.
EMPTY = StackDefinition("", "", {}, {}, {}, {}, frozenset(), (), {})


@dataclass(slots=True)
class ListedResources:
    """Resources that one dry run may still list. left: their number."""

    left: int

    def take(self, resources: int) -> bool:
        """Take `resources` from the limit; False if it is exceeded."""
        self.left -= resources
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class StackContext:
    """A stack of a dry run. path: names of the resources from the root stack. stack_id: None if the
    stack does not exist yet. members: the limit of the members of groups. possible: the limit of
    the resources in nested stacks, also of groups, that exist only if a condition holds which is
    not known yet. is_possible: it is such a nested stack, or inside of one. members, possible,
    nesting, marks: of the whole tree. marks: of a converge."""

    project: str
    name: str
    path: Sequence[str]
    stack_id: UUID | None
    members: ListedResources = field(compare=False)
    possible: ListedResources = field(compare=False)
    nesting: NestedTemplates = field(compare=False)
    marks: DriftMarks = field(default=NO_MARKS, compare=False)
    is_possible: bool = False

    def take_members(self, members: int) -> bool:
        """Take the members of a group from their limit; False if it is exceeded. `admit` takes
        those of a possible stack."""
        return self.is_possible or self.members.take(members)

    def admit(self, resources: int) -> None:
        """Take the resources of a possible stack from their limit, before they are built: those
        that have errors cost as much as others. Raises LimitReached."""
        if self.is_possible and not self.possible.take(resources):
            raise LimitReached("a dry run lists no more resources whose condition is not known")

    def nested_context(self, resource: str, name: str, stack_id: UUID | None) -> "StackContext":
        """The context of the nested stack of a resource."""
        return replace(self, name=name, path=[*self.path, resource], stack_id=stack_id)


@dataclass(frozen=True, slots=True)
class PreviewedChild:
    """The nested stack of a group, and the files of its version."""

    child: Child
    files: Mapping[str, str]


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

    async def create(
        self, project: str, request: StackRequest, warned: Findings
    ) -> tuple[Preview, StackDefinition]:
        """The preview and definition of a new stack. warned: gets the warnings about the request.
        Raises what `Stacks.create` raises."""
        check_name(request.name)
        async with self._database.connection() as conn:
            if await find_stack(conn, project, None, request.name) is not None:
                raise name_taken(request.name)
        blueprint = await self.build_new(project, request)
        warned.warn_all(blueprint.warnings)
        await self._external_validation.validate(
            blueprint.definition, project, request.credential, blueprint.region
        )
        check_imported(blueprint.definition, self._traversals.registry)
        stack_id = self._traversals.new_id()
        desired = DesiredState(
            stack_id, Action.CREATE, 1, 1, blueprint, CurrentState(), request.requested_by,
            options=Options(adopted=imported_resources(blueprint.definition)),
            cleared_breakpoints=request.hooks_clear, wanted_plan=request.plan_digest,
        )  # fmt: skip
        async with self._database.connection() as conn:
            preview = await self.preview(conn, project, request.name, desired)
        return preview, blueprint.definition

    async def build_new(
        self, project: str, request: StackRequest, conn: "Connection | None" = None
    ) -> Blueprint:
        """The blueprint of a stack that does not exist yet: it has no id. conn: of the caller's
        transaction, if it has one."""
        return await self._traversals.blueprints.build(
            request, None, project=project, stack_id=None, name=request.name, conn=conn
        )

    async def update(
        self, project: str, stack: StackRecord, request: StackRequest, warned: Findings
    ) -> Preview:
        """The preview of an update. warned: gets the warnings about the request. Raises what
        `Stacks.update` raises.

        Moves are applied in a transaction that is rolled back, and lock their stacks. Repairs of
        drift are not, so that readers, who may preview a converge, delay no change.
        """
        async with self._database.rollback_only() as conn:
            before = await read_template(conn, stack.id, stack.version)
            blueprint = await self._traversals.blueprints.build_for(
                stack, request, before, conn=conn
            )
            warned.warn_all(blueprint.warnings)
            await check_sources(conn, stack.id, blueprint.stack_outputs)
            renames = bool(await self._moves.of_template(conn, stack.id, request, blueprint))
            await self._moves.lock(conn, project, stack.id, request.moved, whole_tree=renames)
            await check_immutable(conn, stack.id, stack.version, blueprint)
            check_imported(blueprint.definition, self._traversals.registry)
            moved: dict[str, str] = {}
            if request.moved or renames:
                locked = await self._traversals.lock(conn, project, stack.id)
                moved = await self._moves.apply(conn, project, locked, request, blueprint)
            marks, unobserved = NO_MARKS, list[UnobservedResource]()
            if request.converge:
                if stack.root_id is not None:
                    await self._traversals.lock_root(conn, project, stack.id, "updated")  # raises
                selected = await self._traversals.planner.select_defined(
                    request, blueprint, project
                )
                marks = await read_repairs(conn, stack.id, selected)
                unobserved = await read_unobserved(conn, stack.id, selected)
            current = await _read_state(conn, stack.id, blueprint, marks)
            desired = await self._traversals.planner.desired_by_update(
                project,
                request,
                blueprint,
                current,
                stack_id=stack.id,
                number=stack.traversal + 1,
                version=stack.version + 1,
                moved=moved,
            )
            preview = await self.preview(conn, project, stack.name, desired, marks)
        await self._external_validation.validate(
            blueprint.definition, project, request.credential, blueprint.region
        )
        if stack.root_id is None:
            await self._check_region(stack, blueprint.region)
        return replace(preview, unobserved=unobserved)

    async def _check_region(self, stack: StackRecord, wanted: str) -> None:
        """Raises Invalid if a root stack has resources in another region than it wants. After the
        validation, like an update: a region that does not exist has an error of its own."""
        async with self._database.connection() as conn:
            configured = self._traversals.limits.region
            await check_region(conn, stack.id, stack.region, wanted, configured)

    async def preview(
        self,
        conn: Connection,
        project: str,
        name: str,
        desired: DesiredState,
        marks: DriftMarks = NO_MARKS,
    ) -> Preview:
        """The preview of a change, with those of its nested stacks. desired.current must have all
        rows that it concerns, with the marks of a converge. marks: its digest covers their drift.

        Raises Conflict (PlanChanged) if `desired.wanted_plan` is the digest of another plan.
        """
        limits = self._traversals.limits.for_project(project)
        nesting = NestedTemplates(
            desired.blueprint.files,
            limits.environment.files,
            limits.source,
            limits.resources,
            limits.nesting_depth,
        )
        stack_id = desired.stack_id if desired.number > 1 else None
        members, possible = ListedResources(limits.resources), ListedResources(limits.resources)
        target = StackContext(project, name, (), stack_id, members, possible, nesting, marks)
        preview = await self._preview_update(conn, desired, target)
        preview = replace(preview, digest=marks.cover(preview.digest))
        if desired.wanted_plan and desired.wanted_plan != preview.digest:
            raise Conflict(
                "the plan has changed since the dry run: the stack is different now",
                place="plan_digest",
                remedy="Do another dry run (--dry-run), check its plan and send its digest.",
                code="PlanChanged",
            )
        return preview

    async def _preview_update(
        self,
        conn: Connection,
        desired: DesiredState,
        target: StackContext,
    ) -> Preview:
        blueprint, registry = desired.blueprint, self._traversals.registry
        existing = desired.current.rows
        planned, warnings = await self._traversals.planner.plan_update(desired, target.project)
        definition, restricted = (
            blueprint.definition,
            blueprint.environment.registry.restrictions_of,
        )
        rows = await read_rows(conn, desired.stack_id, planned, definition) if existing else []
        rows = [_mark_row(row, target.marks) for row in rows]
        overrides = await overrides_of(conn, desired) if existing else {}
        possible = self._traversals.planner.possible_nodes(desired, target.project)
        found = await read_nested_stacks(conn, desired.stack_id) if existing else {}
        gone = {
            row.name
            for row in rows
            if row.replaced_by is None
            and row.physical_id is not None
            and row.physical_id not in found
            and registry.has_nested_stack(row.type)
            and (wanted := definition.resources.get(row.name)) is not None
            and wanted.external_id is None
        }
        previewer = PlanPreviewer(
            registry, planned, definition, restricted, existing, rows, overrides, possible, gone
        )
        shown = previewer.walk()
        nested: dict[str, Preview] = {}
        replaced: dict[str, Preview] = {}
        parsed = None
        if_enabled: dict[str, Preview] = {}
        undecided = definition.undecided_parameters.keys() | definition.undecided_groups.keys()
        for one in shown:
            child, preview = found.get(one.physical_id or ""), None
            if one.name in undecided:
                parsed = parsed or self._parsed_request(desired, target)
                owner = _Owner(desired, target, one, previewer, parsed)
                if (inside := await self._preview_possible(conn, owner, child)) is not None:
                    if_enabled[one.name] = inside
            if (
                one.kind not in ("unchanged", "deleted")
                and one.name in definition.resources
                and registry.has_nested_stack(one.type)
                and definition.resources[one.name].external_id is None  # adopted, not made
            ):
                parsed = parsed or self._parsed_request(desired, target)
                owner = _Owner(desired, target, one, previewer, parsed)
                kept = None if one.kind == "replaced" else child
                preview = await self._preview_nested(conn, owner, kept)
            if child is not None and one.kind == "replaced":
                # It stays if its policy retains it, or if resources that are out of date use it.
                kind = "deleted" if one.name in previewer.deleted else "unchanged"
                old = replace(one, kind=kind)
                replaced[one.name] = await self._preview_other(conn, target, old, child)
            elif child is not None and preview is None:
                preview = await self._preview_other(conn, target, one, child)
            if preview is None and one.name in undecided:
                preview = if_enabled.get(one.name)
            if preview is not None:
                nested[one.name] = preview
        types = blueprint.template.resources
        whole = replace(previewer.preview(nested, replaced, if_enabled), warnings=warnings)
        named = [
            replace(
                one,
                written_type=types[one.name].type if one.name in types else one.written_type,
                moved_from=desired.moved.get(one.name),
                kind="unchanged" if _only_reads(one, definition) else one.kind,
            )
            for one in whole.resources
        ]
        leftovers = [
            replace(one, nested=await self._preview_other(conn, target, one, child))
            if (child := found.get(one.physical_id or ""))
            else one
            for one in whole.leftovers
        ]
        return _with_stack(replace(whole, resources=named, leftovers=leftovers), target)

    async def _preview_possible(
        self, conn: Connection, owner: "_Owner", child: NestedStackName | None
    ) -> Preview | None:
        """The preview of the nested stack of a resource whose condition is not known yet, if it
        holds; None if its template has errors, which count only then, or if too many resources are
        listed: each nested stack may own several like itself."""
        stack = replace(owner.stack, is_possible=True)
        try:
            return await self._preview_nested(conn, replace(owner, stack=stack), child)
        except (Invalid, LimitReached):
            return None

    async def _preview_nested(
        self, conn: Connection, owner: "_Owner", child: NestedStackName | None
    ) -> Preview | None:
        """The preview of the nested stack of a resource that is created or updated; None if its
        resources are not known. child: None if the nested stack is new."""
        desired, one = owner.desired, owner.resource
        if owner.stack.is_possible and owner.stack.possible.left <= 0:
            return None  # before it is built, which costs as much as all that it contains
        stack_id = child.id if child else self._traversals.new_id()
        name = child.name if child else previewed_name(owner.stack.name, one.name)
        target = owner.stack.nested_context(one.name, name, child.id if child else None)
        current_child = await _read_child(conn, target, child) if child else None

        work = partial(self._command, owner, target, current_child)
        command, unknown = await self._traversals.thread_pool(work, owner.stack.project)
        if command is None:
            return None

        async def define(outputs: StackOutputs) -> Blueprint:
            work = partial(
                self._blueprint, owner, target, stack_id, current_child, command, unknown, outputs
            )
            return await self._traversals.thread_pool(work, owner.stack.project)

        read = partial(
            self._traversals.blueprints.read_stack_outputs,
            project=target.project,
            stack_id=desired.stack_id,
            conn=conn,
        )
        blueprint = await with_stack_outputs(define, read, desired.blueprint.stack_outputs)
        defined = blueprint.definition
        resources = len(defined.resources) + len(defined.undecided)
        expanded = resources - len(blueprint.template.resources)
        if target.is_possible and not target.possible.take(max(expanded, 0)):
            return None
        current = CurrentState()
        if child:
            current = await _read_state(conn, stack_id, blueprint, target.marks)
        inner = DesiredState(
            stack_id=stack_id,
            action=Action.UPDATE if child else Action.CREATE,
            number=1,
            version=1,
            blueprint=blueprint,
            current=current,
            requested_by=desired.requested_by,
            cleared_breakpoints=cleared_inside(desired.cleared_breakpoints, one.name),
            refuses=False,
        )
        preview = await self._preview_update(conn, inner, target)
        return preview if command.certain else uncertain_preview(preview)

    def _blueprint(
        self,
        owner: "_Owner",
        target: StackContext,
        stack_id: UUID,
        child: PreviewedChild | None,
        command: ReconcileNested,
        unknown: frozenset[str],
        outputs: StackOutputs,
    ) -> Blueprint:
        """command, unknown: see `_command`."""
        desired, name = owner.desired, owner.resource.name
        wanted = desired.blueprint.definition.resources.get(name)
        if wanted is None:  # its condition is not known yet
            resource = OwningResource(name, DeletionPolicy.DELETE, {}, {}, frozenset())
        else:
            resource = OwningResource(
                name,
                DeletionPolicy(wanted.deletion_policy),
                wanted.metadata if is_static(wanted.metadata) else {},
                wanted.update_policy or {} if is_static(wanted.update_policy) else {},
                owner.secret_parameters,
            )
        if target.stack_id is None:
            unknown |= PER_STACK
        breakpoints = desired.nested_context().nested_breakpoints
        return build_nested(
            owner.parsed,
            command,
            resource,
            NestedStack(stack_id, target.name, target.project, target.path, breakpoints),
            registry=self._traversals.registry,
            limits=self._traversals.limits.for_project(target.project),
            current_files=child.files if child and command.template is not None else {},
            unknown=unknown,
            stored=False,
            stack_outputs=outputs,
            admit=target.admit,
        )

    def _command(
        self, owner: "_Owner", target: StackContext, child: PreviewedChild | None
    ) -> tuple[ReconcileNested | None, frozenset[str]]:
        """What the type requests, and the names of parameters whose values are not known; None: the
        resources of the nested stack are not known."""
        definition = owner.desired.blueprint.definition
        if (parameters := definition.undecided_parameters.get(owner.resource.name)) is not None:
            return ReconcileNested(None, {}), parameters
        nested = definition.nested.get(owner.resource.name)
        if nested is not None:
            values, file = owner.values, ""
            if owner.resource.type == TEMPLATE_STACK:
                values, file = owner.parameters, nested.kind.file
            known = {key: value for key, value in values.items() if value is not UNKNOWN}
            names = nested.kind.schema.properties.keys()
            possible = names if "" in values else values.keys()
            unknown = frozenset(names & possible - known.keys())
            return ReconcileNested(None, known, file=file), unknown
        call = _preview_call(definition, owner.previewer, owner.resource, owner.stack)
        if call is None:
            return None, frozenset()
        type_ = self._traversals.registry.get(owner.resource.type)
        grouping = type_.schema.grouping
        size = None if grouping is None else grouping.size(call.properties)
        if target.is_possible and (size or 0) > target.possible.left:
            return None, frozenset()  # the size of a possible group was not checked
        command = type_.preview_nested(replace(call, child=child.child if child else None))
        if command is None or command.template is None:
            return None, frozenset()
        if not target.take_members(len(command.template["resources"])):
            return None, frozenset()
        return command, frozenset({UNKNOWN_VALUES})

    async def _preview_other(
        self, conn: Connection, parent: StackContext, one: PreviewedResource, child: NestedStackName
    ) -> Preview:
        """The nested stack of a resource that is deleted or unchanged."""
        target = parent.nested_context(one.name, child.name, child.id)
        existing = [target.marks.mark(row) for row in await read_existing(conn, child.id)]
        found = await read_nested_stacks(conn, child.id)
        planned = await self._traversals.planner.plan_delete(
            conn, target.project, child.id, target.path, existing if one.kind == "deleted" else []
        )
        rows = [
            _mark_row(row, target.marks) for row in await read_rows(conn, child.id, planned, EMPTY)
        ]
        registry = self._traversals.registry
        overrides = await read_overrides(conn, child.id)
        previewer = PlanPreviewer(
            registry, planned, EMPTY, _no_restrictions, existing, rows, overrides
        )
        nested = {
            each.name: await self._preview_other(conn, target, each, found[each.physical_id])
            for each in previewer.walk()
            if each.physical_id in found
        }
        return _with_stack(previewer.preview(nested), target)

    def _parsed_request(self, desired: DesiredState, target: StackContext) -> ParsedRequest:
        """The parent stack, from which nested stacks are built."""
        blueprint = desired.blueprint
        return ParsedRequest(
            blueprint.template,
            blueprint.environment,
            blueprint.files,
            target.nesting.of_next_stack(blueprint.files),
            hidden=blueprint.hidden,
        )


@dataclass(frozen=True, slots=True)
class _Owner:
    """A resource that owns a nested stack. stack: its own stack. parsed: the template and files of
    `stack`."""

    desired: DesiredState
    stack: StackContext
    resource: PreviewedResource
    previewer: PlanPreviewer
    parsed: ParsedRequest

    @property
    def values(self) -> Mapping[str, Json]:
        """The expected properties."""
        return self.previewer.values.get(self.resource.name, {})

    @property
    def secret(self) -> frozenset[str]:
        """Names of secret properties."""
        return self.previewer.secret.get(self.resource.name, frozenset())

    @property
    def parameters(self) -> Mapping[str, Json]:
        """The expected parameters of a nested stack whose template is at a URL, with UNKNOWN for
        unknown ones; "": any of them may be unknown."""
        values = self.values
        if values.get(PARAMETERS) is UNKNOWN:
            values = self.previewer.known_parts(self.resource.name) or values
        found = {"": UNKNOWN} if "" in values else stack_parameters(values)
        if not isinstance(found, Mapping):
            return {"": UNKNOWN}
        return {
            name: UNKNOWN if contains_unknown(value) else value for name, value in found.items()
        }

    @property
    def secret_parameters(self) -> frozenset[str]:
        """Names of secret parameters of the nested stack."""
        definition = self.desired.blueprint.definition
        wanted = definition.resources[self.resource.name]
        if wanted.type != TEMPLATE_STACK:
            return self.secret
        nested = definition.nested.get(wanted.name)
        names = frozenset(nested.kind.schema.properties) if nested else frozenset[str]()
        if PARAMETERS in self.secret and PARAMETERS not in wanted.secret_properties(()):
            return names
        return with_parameters_alone(wanted).secret_properties(names)


def _no_restrictions(name: str) -> frozenset[Restriction]:
    return frozenset()


def _only_reads(one: PreviewedResource, definition: StackDefinition) -> bool:
    """Whether a nested stack is updated only to read its data again."""
    wanted = definition.resources.get(one.name)
    if wanted is None or not wanted.reads_data or wanted.is_data or wanted.pauses_every_update:
        return False
    inside = one.nested.resources if one.nested else None
    return (
        one.kind == "updated"
        and not (one.changes or one.unknown)
        and inside is not None
        and all(each.kind == "unchanged" for each in inside)
    )


def _with_stack(preview: Preview, target: StackContext) -> Preview:
    """The preview with its stack, and with a digest that covers the nested previews."""
    combined = sha256(preview.digest.encode())
    changed = [one for one in preview.resources if one.nested and one.kind != KINDS[None]]
    for one in changed:
        combined.update(f"\n{one.name} {one.nested.digest if one.nested else None}".encode())
    digest = combined.hexdigest() if changed else preview.digest
    return replace(
        preview, digest=digest, name=target.name, path=target.path, stack_id=target.stack_id
    )


async def _read_state(
    conn: Connection, stack_id: UUID, blueprint: Blueprint, marks: DriftMarks
) -> CurrentState:
    current = await read_whole_state(conn, stack_id, blueprint)
    return replace(current, rows=[marks.mark(row) for row in current.rows])


def _mark_row(row: PlannedRecord, marks: DriftMarks) -> PlannedRecord:
    if (action := marks.actions.get(row.id)) is None:
        return row
    return replace(row, action=action, status=Status.FAILED, tainted=True)


def _mark_member(row: MemberRecord, stack_id: UUID, marks: DriftMarks) -> MemberRecord:
    if (action := marks.by_name.get((stack_id, row.name))) is None:
        return row
    return replace(row, action=action, status=Status.FAILED, marked=True)


async def _read_child(
    conn: Connection, target: StackContext, nested: NestedStackName
) -> PreviewedChild:
    """The nested stack without its outputs. target: its context. Raises DecryptionFailed."""
    stack = await find_stack(conn, target.project, nested.id, "")
    stored = await read_template(conn, nested.id, stack.version if stack else 0)
    found = await read_members(conn, nested.id)
    rows = [_mark_member(row, nested.id, target.marks) for row in found]
    members = [
        Member(**asdict(row) | {"secret_attributes": row.secret_attributes or ()}) for row in rows
    ]
    child = Child(
        StackId(nested.id),
        nested.name,
        "",
        TraversalState.COMPLETE,
        "",
        members,
        template=stored.template,
        parameters=stored.parameters,
    )
    return PreviewedChild(child, stored.files)


def _preview_call(
    definition: StackDefinition,
    previewer: PlanPreviewer,
    resource: PreviewedResource,
    stack: StackContext,
) -> Call | None:
    """The argument of `ResourceType.preview_nested`; None if too little is known."""
    wanted = definition.resources.get(resource.name)
    policy = None if wanted is None else wanted.update_policy
    properties = previewer.known_parts(resource.name)
    if properties is None or "" in properties or not is_static(policy):
        return None
    return Call(
        project=stack.project,
        stack_id=StackId(NO_ID),
        stack_name=stack.name,
        resource_id=ResourceId(NO_ID),
        resource_name=resource.name,
        operation_key=NO_ID,
        now=datetime.min.replace(tzinfo=UTC),
        properties=properties,
        physical_id=resource.physical_id,
        update_policy=policy or {},
        referenced=previewer.referenced_parts(resource.name),
        has_secrets=previewer.has_secrets(resource.name),
    )
