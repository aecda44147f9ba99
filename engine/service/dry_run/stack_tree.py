"""Dry runs of a change in a stack and its nested stacks.

A nested stack is planned like its parent, as far as its parameter values are known. The nested
stacks of types that generate their own templates are not known before the change runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from uuid import UUID

from engine.errors import Conflict
from engine.hooks.rule_matching import cleared_inside
from engine.hot.definition.stack import PER_STACK, StackDefinition
from engine.hot.expressions.expression import is_static
from engine.hot.nested.nested_templates import NestedTemplates
from engine.plan.draft import Existing
from engine.plan.dry_run import UNKNOWN
from engine.service.plan_view.gate_view import rows_of
from engine.service.plan_view.prediction import KINDS, Prediction, Preview, PreviewedResource
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.change import (
    CurrentState,
    DesiredState,
    live_breakpoints,
    read_matchable,
)
from engine.service.requests.nested_stack import NestedStack, Resource, build_nested, nested_name
from engine.service.requests.parsing import ParsedRequest
from engine.service.traversals.start import Traversals
from engine.store.connection import Connection
from engine.store.current_resources import read_existing
from engine.store.nested_stacks import ThereRecord, children
from engine.types.contract import ReconcileNested
from engine.words import Action, DeletionPolicy, Json, Restriction

#: The definition that a delete has as its target.
EMPTY = StackDefinition("", "", {}, {}, {}, {}, frozenset(), (), {})


@dataclass(frozen=True, slots=True)
class StackContext:
    """A stack of a dry run. path: names of the resources from the root stack. stack_id: None if the
    stack does not exist yet."""

    project: str
    name: str
    path: Sequence[str]
    stack_id: UUID | None

    def nested(self, resource: str, name: str, stack_id: UUID | None) -> "StackContext":
        """The context of the nested stack of a resource."""
        return StackContext(self.project, name, [*self.path, resource], stack_id)


class TreeDryRun:
    def __init__(self, traversals: Traversals) -> None:
        self._traversals = traversals

    async def dry_run(
        self,
        conn: Connection,
        desired: DesiredState,
        target: StackContext,
        existing: Sequence[Existing],
    ) -> Preview:
        """The preview of a create or update. existing: the stack's rows.

        Raises what the change itself would raise; Conflict (PlanChanged) if the requester has seen
        another plan.
        """
        preview = await self._preview_update(conn, desired, target, existing)
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
        existing: Sequence[Existing],
    ) -> Preview:
        blueprint, registry = desired.blueprint, self._traversals.registry
        planned, _ = self._traversals.plan_update(desired)
        definition, restricted = (
            blueprint.definition,
            blueprint.environment.registry.restrictions_of,
        )
        rows = await rows_of(conn, desired.stack_id, planned, definition) if existing else []
        prediction = Prediction(registry, planned, definition, restricted, existing, rows)
        shown = prediction.walk()
        found = await children(conn, desired.stack_id) if existing else {}
        nested: dict[str, Preview] = {}
        parsed = None
        for one in shown:
            child = found.get(one.physical_id or "")
            if one.name in definition.nested and one.kind not in ("unchanged", "deleted"):
                parsed = parsed or self._parsed(desired, target)
                values = prediction.values.get(one.name, {})
                secret = prediction.secret.get(one.name, frozenset())
                owner = _Owner(desired, target, one, values, secret, parsed)
                kept = None if one.kind == "replaced" else child
                nested[one.name] = await self._preview_nested(conn, owner, kept)
            elif child is not None:
                nested[one.name] = await self._preview_other(conn, target, one, child)
        return _located(prediction.preview(nested), target)

    async def _preview_nested(
        self, conn: Connection, owner: "_Owner", child: ThereRecord | None
    ) -> Preview:
        """The nested stack of a resource that is created or updated. child: None for a new one."""
        desired, one = owner.desired, owner.resource
        stack_id = child.id if child else self._traversals.new_id()
        name = child.name if child else nested_name(owner.stack.name, one.name, stack_id)
        target = owner.stack.nested(one.name, name, child.id if child else None)
        blueprint = await self._traversals.thread_pool(
            partial(self._blueprint, owner, target, stack_id), owner.stack.project
        )
        existing = await read_existing(conn, stack_id) if child else []
        live = await live_breakpoints(conn, stack_id) if child else []
        nested = await read_matchable(conn, stack_id, blueprint) if child else ()
        inner = DesiredState(
            stack_id=stack_id,
            action=Action.UPDATE if child else Action.CREATE,
            number=1,
            version=1,
            blueprint=blueprint,
            current=CurrentState(existing, live=live, nested=nested),
            requested_by=desired.requested_by,
            cleared=cleared_inside(desired.cleared, one.name),
            refuses=False,
        )
        return await self._preview_update(conn, inner, target, existing)

    def _blueprint(self, owner: "_Owner", target: StackContext, stack_id: UUID) -> Blueprint:
        desired, name = owner.desired, owner.resource.name
        definition = desired.blueprint.definition
        wanted, kind = definition.resources[name], definition.nested[name].kind
        known = {key: value for key, value in owner.values.items() if value is not UNKNOWN}
        resource = Resource(
            name,
            DeletionPolicy(wanted.deletion_policy),
            wanted.metadata if is_static(wanted.metadata) else {},
            wanted.update_policy or {} if is_static(wanted.update_policy) else {},
            owner.secret,
        )
        given = kind.schema.properties if "" in owner.values else owner.values
        unknown = frozenset(kind.schema.properties.keys() & given.keys() - known.keys())
        if target.stack_id is None:
            unknown |= PER_STACK
        asked = desired.nested_context().asked
        return build_nested(
            owner.parsed,
            ReconcileNested(None, known),
            resource,
            NestedStack(stack_id, target.name, target.project, target.path, asked),
            registry=self._traversals.registry,
            limits=self._traversals.limits.of(target.project),
            unknown=unknown,
        )

    async def _preview_other(
        self, conn: Connection, parent: StackContext, one: PreviewedResource, child: ThereRecord
    ) -> Preview:
        """The nested stack of a resource that is deleted or unchanged."""
        target = parent.nested(one.name, child.name, child.id)
        existing = await read_existing(conn, child.id)
        found = await children(conn, child.id)
        planned = await self._traversals.plan_delete(
            conn, target.project, child.id, target.path, existing if one.kind == "deleted" else []
        )
        rows = await rows_of(conn, child.id, planned, EMPTY)
        registry = self._traversals.registry
        prediction = Prediction(registry, planned, EMPTY, _unrestricted, existing, rows)
        nested = {
            each.name: await self._preview_other(conn, target, each, found[each.physical_id])
            for each in prediction.walk()
            if each.physical_id in found
        }
        return _located(prediction.preview(nested), target)

    def _parsed(self, desired: DesiredState, target: StackContext) -> ParsedRequest:
        """The parent stack, from which nested stacks are built."""
        limits, blueprint = self._traversals.limits.of(target.project), desired.blueprint
        nesting = NestedTemplates(
            blueprint.files, limits.environment.files, limits.source, limits.resources
        )
        return ParsedRequest(blueprint.template, blueprint.environment, blueprint.files, nesting)


@dataclass(frozen=True, slots=True)
class _Owner:
    """A resource that owns a nested stack. stack: its own stack. values: its predicted properties.
    secret: names of secret values. parsed: the template and files of `stack`."""

    desired: DesiredState
    stack: StackContext
    resource: PreviewedResource
    values: Mapping[str, Json]
    secret: frozenset[str]
    parsed: ParsedRequest


def _unrestricted(name: str) -> frozenset[Restriction]:
    return frozenset()


def _located(preview: Preview, target: StackContext) -> Preview:
    """The preview with its stack, and with a digest that covers the nested previews."""
    combined = sha256(preview.digest.encode())
    changed = [one for one in preview.resources if one.nested and one.kind != KINDS[None]]
    for one in changed:
        combined.update(f"\n{one.name} {one.nested.digest if one.nested else None}".encode())
    digest = combined.hexdigest() if changed else preview.digest
    return replace(
        preview, digest=digest, name=target.name, path=target.path, stack_id=target.stack_id
    )
