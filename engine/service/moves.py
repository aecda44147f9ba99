"""`moved:` in an update: a resource takes another name, or comes from another stack of the project.

All of it happens in the update's own transaction. The stack that a resource leaves gets a version
of its template without it, reached at once; so neither stack would make or delete it again.
"""

from collections.abc import Sequence
from uuid import UUID

from engine.errors import Conflict, Findings, Invalid, nearest
from engine.hot.template import without
from engine.service.blueprint import Blueprint
from engine.service.goals import Goal, find
from engine.service.outermost import check_outermost
from engine.service.requests import Move, StackRequest
from engine.service.traversals import UNDER_WAY, Traversals
from engine.store import accept, moves, nested
from engine.store.accept import Locked
from engine.store.connection import Connection
from engine.store.read import read_template
from engine.words import Action, ResourceAction


class Moves:
    def __init__(self, traversals: Traversals) -> None:
        self._traversals = traversals

    async def lock(
        self, conn: Connection, project: str, stack_id: UUID, moved: Sequence[Move]
    ) -> None:
        """Lock all stacks that take part, and those inside, in the order of their ids."""
        if moved:
            others = {one.from_stack for one in moved if one.from_stack}
            await nested.lock_trees(conn, project, [str(stack_id), *sorted(others)])

    async def carry_out(
        self,
        conn: Connection,
        project: str,
        locked: Locked,
        request: StackRequest,
        blueprint: Blueprint,
    ) -> None:
        """Rename and take over; the stack's own traversal has been superseded already.

        Raises Invalid, with every move that cannot be; Conflict when the other stack is busy.
        """
        if not request.moved:
            return
        others = {one.from_stack for one in request.moved if one.from_stack}
        known = await accept.lock_stacks(conn, project, sorted(others)) if others else {}
        findings = Findings()
        leaving: dict[UUID, list[str]] = {}
        for index, one in enumerate(request.moved):
            place = f"moved[{index}]"
            source = known.get(one.from_stack) if one.from_stack else locked.id
            if source is None:
                findings.add(f"{place}.from", f'there is no stack "{one.from_stack}"')
                continue
            if not self._may_arrive(one, blueprint, source == locked.id, place, findings):
                continue
            if await self._move(conn, one, source, locked, blueprint, place, findings):
                leaving.setdefault(source, []).append(one.name)
        findings.raise_if_any()
        leaving.pop(locked.id, None)
        for source, names in leaving.items():
            await self._let_go(conn, project, source, names, request.requested_by)

    def _may_arrive(
        self, one: Move, blueprint: Blueprint, renames: bool, place: str, findings: Findings
    ) -> bool:
        resources = blueprint.definition.resources
        before = len(findings.all)
        if one.to not in resources:
            remedy = nearest(one.to, list(resources)) or "Write it into the template."
            findings.add(f"{place}.to", f'"{one.to}" is not in the template', remedy)
        if renames and one.name in resources:
            reason = f'"{one.name}" is still in the template'
            findings.add(f"{place}.from", reason, "Take it out: it has another name now.")
        return len(findings.all) == before

    async def _move(
        self,
        conn: Connection,
        one: Move,
        source: UUID,
        locked: Locked,
        blueprint: Blueprint,
        place: str,
        findings: Findings,
    ) -> bool:
        found = await moves.movable(conn, source, one.name)
        if found is None or found.action == ResourceAction.INIT:
            findings.add(f"{place}.from", f'there is no resource "{one.name}" to move')
            return False
        if found.busy:
            reason = f'an operation runs on "{one.name}"'
            findings.add(f"{place}.from", reason, "Move it when that has ended.")
            return False
        wanted = blueprint.definition.resources[one.to].type
        if found.type != wanted:
            reason = f'"{one.name}" is a {found.type}, and "{one.to}" is to be a {wanted}'
            findings.add(f"{place}.to", reason, "A move changes no type.")
            return False
        if found.nests and source != locked.id:
            reason = f'"{one.name}" holds a stack, which stays inside of the stack that made it'
            findings.add(f"{place}.from", reason, "Another name it may have, but no other stack.")
            return False
        there = await moves.movable(conn, locked.id, one.to)
        if there is not None:
            reason = f'there is a resource "{one.to}" already'
            findings.add(f"{place}.to", reason, "Move or remove that one first.")
            return False
        await moves.move(conn, source, found.id, locked.id, one.to)
        way = moves.Way(source, one.name, locked.id, one.to)
        if source == locked.id:
            said = f"renamed from {one.name}"
        else:
            said = f"moved from {one.name} of stack {one.from_stack}"
            left = f"moved to {one.to} of stack {locked.name}"
            await moves.record_moved(conn, source, one.name, found, left, way)
        await moves.record_moved(conn, locked.id, one.to, found, said, way)
        return True

    async def _let_go(
        self, conn: Connection, project: str, stack_id: UUID, names: Sequence[str], by: str
    ) -> None:
        """Bring a stack to a version without these resources."""
        locked = await self._traversals.lock(conn, project, stack_id)
        check_outermost(locked, "changed by a move")
        if locked.state in UNDER_WAY:
            raise Conflict(
                f"Stack {locked.name} already has an action ({locked.action}) in progress.",
                place="moved",
                remedy="Move resources out of it when that has ended.",
                code="ActionInProgress",
            )
        stored = await read_template(conn, stack_id, locked.version)
        left = without(stored.template, names)
        request = StackRequest(template=left, existing=True, requested_by=by)
        try:
            blueprint = await self._traversals.build(
                request, stored, project=project, stack_id=stack_id, name=locked.name
            )
        except Invalid as error:
            findings = Findings()
            for one in error.findings:
                where = f"stack {locked.name}: {one.place}" if one.place else f"stack {locked.name}"
                findings.add(where, one.reason, "Update that stack first, so that it lets go.")
            raise Invalid(findings.all) from error
        goal = Goal(
            stack_id=stack_id,
            action=Action.UPDATE,
            number=locked.traversal + 1,
            version=locked.newest + 1,
            blueprint=blueprint,
            found=await find(conn, stack_id, blueprint),
            requested_by=by,
        )
        await self._traversals.toward(conn, goal)
