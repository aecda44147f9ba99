"""`moved:` in an update: renames a resource, or takes it over from another stack of the project.

The moves run in the transaction of the update. The stack that a resource leaves gets a new template
version without the resource, so that no later update of either stack creates or deletes it.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from uuid import UUID

from engine.errors import Findings, Invalid, nearest
from engine.hot.syntax.keyed_names import find_name, possible_names
from engine.hot.template.moved_and_imported import MovedResource
from engine.hot.template.template import without_resources
from engine.principal import Principal
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.desired_state import DesiredState, read_current_state
from engine.service.requests.requests import Move, StackRequest
from engine.service.requests.stack_region import is_same_region, shown_region
from engine.service.traversals.start import Traversals, action_in_progress
from engine.store.connection import Connection
from engine.store.resources import resource_rows
from engine.store.stacks import stack_locks, stack_rows
from engine.store.stacks.stack_locks import LockedStack
from engine.store.stacks.templates import read_template
from engine.words import UNDER_WAY, Action, ResourceAction


def _refuse_plain_names(
    moved: Sequence[MovedResource], possible: Mapping[str, Sequence[str]], leaving: Collection[str]
) -> None:
    """Raise Invalid for earlier names that are the plain name of a resource. possible: the names
    that each can mean. leaving: the existing resources that the template does not have."""
    findings = Findings()
    sources = {one.name for one in moved}
    for one in moved:
        meant = find_name(one.name, [name for name in possible[one.name] if name in leaving])
        if meant is not None and meant != one.name and meant not in sources:
            reason = f'"{one.name}" is the name of the resource {meant} for Heat\'s clients.'
            findings.add(f"{one.place}.from", reason, f"Write its own name: '{meant}'.")
    findings.raise_if_any()


class Moves:
    def __init__(self, traversals: Traversals) -> None:
        self._traversals = traversals

    async def lock(
        self,
        conn: Connection,
        project: str,
        stack_id: UUID,
        moved: Sequence[Move],
        *,
        whole_tree: bool = False,
    ) -> None:
        """Lock all stacks of the moves and their nested stacks, in the order of their ids.
        whole_tree: lock the stack with its nested stacks even without moves in the request."""
        if moved or whole_tree:
            others = {one.from_stack for one in moved if one.from_stack}
            await stack_locks.lock_trees(conn, project, [str(stack_id), *sorted(others)])

    async def apply(
        self,
        conn: Connection,
        project: str,
        locked: LockedStack,
        request: StackRequest,
        blueprint: Blueprint,
    ) -> dict[str, str]:
        """Rename resources or take them over, as the request and the template demand. Return the
        earlier names by the new ones. locked: the stack that receives them, whose traversal was
        superseded.

        Raises Invalid with all moves that are not possible; Conflict (ActionInProgress) if the
        other stack has a traversal under way.
        """
        moves = [
            *request.moved,
            *await self.of_template(conn, locked.id, request, blueprint),
        ]
        if not moves:
            return {}
        others = {one.from_stack for one in moves if one.from_stack}
        known = (
            await stack_locks.lock_stacks_by_name(conn, project, sorted(others)) if others else {}
        )
        findings = Findings()
        regions = await stack_rows.read_regions(conn, [*known.values()]) if known else {}
        leaving: dict[UUID, list[str]] = {}
        for index, one in enumerate(moves):
            place = f"moved[{index}]"
            source = known.get(one.from_stack) if one.from_stack else locked.id
            if source is None:
                findings.add(
                    f"{place}.from",
                    f'there is no stack "{one.from_stack}"',
                    "Write the name or ID of a stack of this project.",
                )
                continue
            if self._is_elsewhere(regions.get(source), blueprint.region, place, findings):
                continue
            if not self._check_target(one, blueprint, source == locked.id, place, findings):
                continue
            if await self._move(conn, one, source, locked, blueprint, place, findings):
                leaving.setdefault(source, []).append(one.name)
        findings.raise_if_any()
        leaving.pop(locked.id, None)
        for source, names in leaving.items():
            await self._remove_from_source(conn, project, source, names, request.requested_by)
        return {one.to: "/".join(filter(None, (one.from_stack, one.name))) for one in moves}

    async def of_template(
        self, conn: Connection, stack_id: UUID, request: StackRequest, blueprint: Blueprint
    ) -> list[Move]:
        """The moves of the template's section `moved` that are still to be done: the resource of
        the earlier name exists. Raises Invalid if an earlier name is the plain name of a resource
        with a key that the update would delete."""
        moved = blueprint.definition.moved
        if not moved:
            return []
        possible = {one.name: possible_names(one.name) for one in moved}
        asked = dict.fromkeys(chain.from_iterable(possible.values()))
        names = await resource_rows.existing_names(conn, stack_id, [*asked])
        _refuse_plain_names(moved, possible, names.difference(blueprint.definition.resources))
        requested = {one.name for one in request.moved if not one.from_stack}
        return [
            Move(one.name, one.to)
            for one in moved
            if one.name in names and one.name not in requested
        ]

    def _is_elsewhere(
        self, region: str | None, wanted: str, place: str, findings: Findings
    ) -> bool:
        """Whether the other stack is in another region. region: its region; None: it is the same
        stack. wanted: the region of this stack after the update."""
        configured = self._traversals.limits.region
        if region is None or is_same_region(region, wanted, configured):
            return False
        here, there = (shown_region(one, configured) for one in (wanted, region))
        reason = f"the other stack is in {there}, and this one in {here}"
        findings.add(f"{place}.from", reason, "Move resources between stacks of the same region.")
        return True

    def _check_target(
        self, one: Move, blueprint: Blueprint, renames: bool, place: str, findings: Findings
    ) -> bool:
        resources = blueprint.definition.resources
        before = len(findings.all)
        if one.to not in resources:
            remedy = nearest(one.to, list(resources)) or "Add it to the template."
            findings.add(f"{place}.to", f'"{one.to}" is not in the template', remedy)
        if renames and one.name in resources:
            reason = f'"{one.name}" is still in the template'
            findings.add(
                f"{place}.from", reason, "Remove it from the template: it has another name now."
            )
        return len(findings.all) == before

    async def _move(
        self,
        conn: Connection,
        one: Move,
        source: UUID,
        locked: LockedStack,
        blueprint: Blueprint,
        place: str,
        findings: Findings,
    ) -> bool:
        found = await resource_rows.find_resource(conn, source, one.name)
        if found is None or found.action == ResourceAction.INIT:
            findings.add(
                f"{place}.from",
                f'there is no resource "{one.name}" to move',
                "Write the name of a resource that the source stack has.",
            )
            return False
        if found.busy:
            reason = f'"{one.name}" has an operation in progress'
            findings.add(f"{place}.from", reason, "Move it after the operation has ended.")
            return False
        wanted = blueprint.definition.resources[one.to].type
        if found.type != wanted:
            reason = f'"{one.name}" is a {found.type}, but "{one.to}" is declared as a {wanted}'
            findings.add(
                f"{place}.to", reason, "Declare both with the same type: a move cannot change it."
            )
            return False
        if found.has_nested_stack and source != locked.id:
            reason = f'"{one.name}" has a nested stack, which cannot be moved to another parent'
            findings.add(f"{place}.from", reason, "Rename it within its stack instead.")
            return False
        occupied = await resource_rows.find_resource(conn, locked.id, one.to)
        if occupied is not None:
            reason = f'the resource "{one.to}" already exists'
            findings.add(f"{place}.to", reason, "Move or remove that one first.")
            return False
        await resource_rows.move(conn, source, found.id, locked.id, one.to)
        way = resource_rows.ResourceMove(source, one.name, locked.id, one.to)
        if source == locked.id:
            reason = f"renamed from {one.name}"
        else:
            reason = f"moved from {one.name} of stack {one.from_stack}"
            left = f"moved to {one.to} of stack {locked.name}"
            await resource_rows.record_move(conn, source, one.name, found, left, way)
        await resource_rows.record_move(conn, locked.id, one.to, found, reason, way)
        return True

    async def _remove_from_source(
        self, conn: Connection, project: str, stack_id: UUID, names: Sequence[str], by: Principal
    ) -> None:
        """Start a traversal of a source stack toward a version without the moved resources.

        Raises Invalid; Conflict (ActionInProgress) while a traversal of it is under way.
        """
        locked = await self._traversals.lock_root(conn, project, stack_id, "changed by a move")
        if locked.state in UNDER_WAY:
            remedy = "Move resources out of it after that has ended."
            raise action_in_progress(locked, remedy, "moved")
        stored = await read_template(conn, stack_id, locked.version)
        left = without_resources(stored.template, names)
        request = StackRequest(template=left, existing=True, requested_by=by)
        try:
            blueprint = await self._traversals.blueprints.build_for(
                locked, request, stored, conn=conn, known=stored.read_outputs()
            )
        except Invalid as error:
            findings = Findings()
            for one in error.findings:
                where = f"stack {locked.name}: {one.place}" if one.place else f"stack {locked.name}"
                findings.add(
                    where,
                    one.reason,
                    "Update that stack first, so that its template is valid without the resource.",
                )
            raise Invalid(findings.all) from error
        desired = DesiredState(
            stack_id=stack_id,
            action=Action.UPDATE,
            number=locked.traversal + 1,
            version=locked.newest + 1,
            blueprint=blueprint,
            current=await read_current_state(conn, stack_id, blueprint),
            requested_by=by,
        )
        await self._traversals.start_update(conn, desired)
