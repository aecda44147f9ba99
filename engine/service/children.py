"""The stacks inside of resources, as the operations of these see them."""

from collections.abc import Mapping
from dataclasses import asdict
from uuid import UUID

from engine.errors import NotFound
from engine.hot.effort import at_once
from engine.hot.expression import decode
from engine.hot.resolve import evaluate_output
from engine.hot.versions import date_of
from engine.store import nested
from engine.store.advance import Work
from engine.store.database import Database
from engine.store.nested import ChildRecord
from engine.store.read import read_shown, read_template
from engine.store.scaling import named_by
from engine.types.contract import Call, Child, Member
from engine.types.registry import Registry
from engine.words import Json, StackId, TraversalState
from engine.work.prepare import Inputs, Prepared


class Children:
    def __init__(self, database: Database, registry: Registry) -> None:
        self._database = database
        self._registry = registry

    async def find(self, work: Work, call: Call) -> ChildRecord | None:
        """Deleted ones only if this very operation has deleted them."""
        async with self._database.connection() as conn:
            found = await nested.find_child(
                conn, work.key.stack_id, call.resource_id, call.physical_id
            )
        gone = found is not None and found.deleted and found.parent_key != call.operation_key
        return None if gone else found

    async def seen(self, child: ChildRecord, key: UUID) -> Child:
        """key: of the operation that looks."""
        async with self._database.connection() as conn:
            rows = await nested.members(conn, child.id)
            shown = await read_shown(conn, child.id, child.version)
            stored = await read_template(conn, child.id, child.version)
        view = Inputs({row.name: [row.reference, row.attributes] for row in rows})
        effort = at_once()
        outputs: dict[str, Json] = {}
        for one in shown.outputs if child.state == TraversalState.COMPLETE else ():
            value = decode(one["value"], date_of(shown.written_in))
            outputs[one["key"]], _ = evaluate_output(value, view, effort)
        return Child(
            StackId(child.id),
            child.name,
            (child.step or "") if child.parent_key == key else "",
            TraversalState(child.state),
            child.reason,
            [Member(**asdict(row), secret=self._has_secrets(row.type)) for row in rows],
            outputs,
            stored.template,
            stored.parameters,
        )

    async def named(self, prepared: Prepared) -> Mapping[str, Json] | None:
        """The resource that this one names to its type, if it names any."""
        reference = prepared.type.names(prepared.properties)
        if reference is None:
            return None
        async with self._database.connection() as conn:
            return await named_by(conn, prepared.work.key.stack_id, reference)

    def _has_secrets(self, type_name: str) -> bool:
        try:
            return self._registry.get(type_name).schema.has_secrets()
        except NotFound:
            return True
