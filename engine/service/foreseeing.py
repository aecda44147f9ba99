"""What a change would do, in its stack and in those inside: told before any of it is done.

A stack inside is planned as the one around it, as far as what it is given is known now. What is
inside of a type that makes up its own templates is not known before it is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from uuid import UUID

from engine.errors import Conflict
from engine.hooks.matching import cleared_inside
from engine.hot.definition import OF_ONE_STACK, Definition
from engine.hot.expression import is_static
from engine.hot.nesting import Nesting
from engine.hot.resolve import MASK
from engine.plan.draft import Existing
from engine.plan.predict import UNKNOWN
from engine.service.blueprint import Blueprint
from engine.service.goals import Found, Goal, live_breakpoints, read_meant
from engine.service.inside import Inside, Resource, build_inside, name_inside
from engine.service.prediction import KINDS, Prediction, Preview, Previewed
from engine.service.traversals import Traversals
from engine.service.viewing import rows_of
from engine.service.written import Written
from engine.store.connection import Connection
from engine.store.existing import read_existing
from engine.store.nested import ThereRecord, children
from engine.types.contract import Toward
from engine.words import Action, DeletionPolicy, Json, Restriction

#: What a delete wants.
NOTHING = Definition("", "", {}, {}, {}, {}, frozenset(), (), {})


@dataclass(frozen=True, slots=True)
class Around:
    """A stack of which something is told. path: of the resources that lead to it. stack_id: None
    for one that is not there yet."""

    project: str
    name: str
    path: Sequence[str]
    stack_id: UUID | None

    def inside(self, resource: str, name: str, stack_id: UUID | None) -> "Around":
        return Around(self.project, name, [*self.path, resource], stack_id)


class Foreseeing:
    def __init__(self, traversals: Traversals) -> None:
        self._traversals = traversals

    async def foresee(
        self, conn: Connection, goal: Goal, here: Around, existing: Sequence[Existing]
    ) -> Preview:
        """What a change toward a blueprint does. existing: the stack's rows.

        Raises what the change itself would; Conflict (PlanChanged) when its author saw another.
        """
        preview = await self._toward(conn, goal, here, existing)
        if goal.wanted_plan and goal.wanted_plan != preview.digest:
            raise Conflict(
                "the plan is not the one that was looked at: the stack has moved since",
                place="plan_digest",
                remedy="Look at the plan again (--dry-run), and send its digest.",
                code="PlanChanged",
            )
        return preview

    async def _toward(
        self, conn: Connection, goal: Goal, here: Around, existing: Sequence[Existing]
    ) -> Preview:
        blueprint, registry = goal.blueprint, self._traversals.registry
        planned, _ = self._traversals.plan_toward(goal)
        definition, restricted = blueprint.definition, blueprint.environment.registry.restricted
        rows = await rows_of(conn, goal.stack_id, planned, definition) if existing else []
        prediction = Prediction(registry, planned, definition, restricted, existing, rows)
        shown = prediction.walk()
        found = await children(conn, goal.stack_id) if existing else {}
        inside: dict[str, Preview] = {}
        written = None
        for one in shown:
            there = found.get(one.physical_id or "")
            if one.name in definition.nested and one.kind not in ("unchanged", "deleted"):
                written = written or self._written(goal, here)
                told = _Told(goal, here, one, prediction.values.get(one.name, {}), written)
                kept = None if one.kind == "replaced" else there
                inside[one.name] = await self._changed(conn, told, kept)
            elif there is not None:
                inside[one.name] = await self._left(conn, here, one, there)
        return _whole(prediction.preview(inside), here)

    async def _changed(self, conn: Connection, told: "_Told", there: ThereRecord | None) -> Preview:
        """The stack inside of a resource that is made or updated."""
        goal, one = told.goal, told.resource
        stack_id = there.id if there else self._traversals.new_id()
        name = there.name if there else name_inside(told.here.name, one.name, stack_id)
        here = told.here.inside(one.name, name, there.id if there else None)
        blueprint = await self._traversals.aside(partial(self._blueprint, told, here, stack_id))
        existing = await read_existing(conn, stack_id) if there else []
        live = await live_breakpoints(conn, stack_id) if there else []
        inside = await read_meant(conn, stack_id, blueprint) if there else ()
        inner = Goal(
            stack_id=stack_id,
            action=Action.UPDATE if there else Action.CREATE,
            number=1,
            version=1,
            blueprint=blueprint,
            found=Found(existing, live=live, inside=inside),
            requested_by=goal.requested_by,
            cleared=cleared_inside(goal.cleared, one.name),
            refuses=False,
        )
        return await self._toward(conn, inner, here, existing)

    def _blueprint(self, told: "_Told", here: Around, stack_id: UUID) -> Blueprint:
        goal, name = told.goal, told.resource.name
        definition = goal.blueprint.definition
        wanted, kind = definition.resources[name], definition.nested[name].kind
        known = {key: value for key, value in told.values.items() if value is not UNKNOWN}
        masked = wanted.masked_properties or {}
        resource = Resource(
            name,
            DeletionPolicy(wanted.deletion_policy),
            wanted.metadata if is_static(wanted.metadata) else {},
            wanted.update_policy or {} if is_static(wanted.update_policy) else {},
            frozenset(key for key, value in masked.items() if MASK in str(value)),
        )
        given = kind.schema.properties if "" in told.values else told.values
        unknown = frozenset(kind.schema.properties.keys() & given.keys() - known.keys())
        if here.stack_id is None:
            unknown |= OF_ONE_STACK
        asked = goal.below().asked
        return build_inside(
            told.written,
            Toward(None, known),
            resource,
            Inside(stack_id, here.name, here.project, here.path, asked),
            registry=self._traversals.registry,
            limits=self._traversals.limits.of(here.project),
            unknown=unknown,
        )

    async def _left(
        self, conn: Connection, around: Around, one: Previewed, there: ThereRecord
    ) -> Preview:
        """The stack inside of a resource that goes, or that is left alone."""
        here = around.inside(one.name, there.name, there.id)
        existing = await read_existing(conn, there.id)
        found = await children(conn, there.id)
        planned = await self._traversals.plan_away(
            conn, here.project, there.id, here.path, existing if one.kind == "deleted" else []
        )
        rows = await rows_of(conn, there.id, planned, NOTHING)
        registry = self._traversals.registry
        prediction = Prediction(registry, planned, NOTHING, _unrestricted, existing, rows)
        inside = {
            each.name: await self._left(conn, here, each, found[each.physical_id])
            for each in prediction.walk()
            if each.physical_id in found
        }
        return _whole(prediction.preview(inside), here)

    def _written(self, goal: Goal, here: Around) -> Written:
        """The stack, for those inside of it to be read from."""
        limits, blueprint = self._traversals.limits.of(here.project), goal.blueprint
        nesting = Nesting(
            blueprint.files, limits.environment.files, limits.source, limits.resources
        )
        return Written(blueprint.template, blueprint.environment, blueprint.files, nesting)


@dataclass(frozen=True, slots=True)
class _Told:
    """A resource that holds a stack, and what it would give to that. written: of the stack around,
    which is `here`."""

    goal: Goal
    here: Around
    resource: Previewed
    values: Mapping[str, Json]
    written: Written


def _unrestricted(name: str) -> frozenset[Restriction]:
    return frozenset()


def _whole(preview: Preview, here: Around) -> Preview:
    """With its place, and a digest that stands for what is inside, too."""
    told = sha256(preview.digest.encode())
    changed = [one for one in preview.resources if one.inside and one.kind != KINDS[None]]
    for one in changed:
        told.update(f"\n{one.name} {one.inside.digest if one.inside else None}".encode())
    digest = told.hexdigest() if changed else preview.digest
    return replace(preview, digest=digest, name=here.name, path=here.path, stack_id=here.stack_id)
