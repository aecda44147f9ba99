"""Reads the nested stack of a resource for the resource's operations."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from engine.errors import NotFound
from engine.hot.evaluation.resolver import evaluate_output
from engine.hot.expressions.expression import decode
from engine.hot.expressions.member_attributes import ALL_SECRET
from engine.hot.functions.cost_budget import resolution_budget
from engine.hot.language.versions import date_of
from engine.service.requests.secret_outputs import secret_outputs
from engine.store import nested_stacks
from engine.store.advance import Work
from engine.store.database import Database
from engine.store.encryption import Sealed
from engine.store.nested_stacks import ChildRecord, MemberRecord
from engine.store.scaling import named_by
from engine.store.stack_queries import read_shown, read_template
from engine.types.contract import Call, Child, Member
from engine.types.registry import Registry
from engine.words import Json, StackId, TraversalState
from engine.work.prepare import Inputs, Prepared


class Children:
    def __init__(self, database: Database, registry: Registry) -> None:
        self._database = database
        self._registry = registry

    async def find(self, work: Work, call: Call) -> ChildRecord | None:
        """The nested stack of a resource; a deleted one only if this operation deleted it."""
        async with self._database.connection() as conn:
            found = await nested_stacks.find_child(
                conn, work.key.stack_id, call.resource_id, call.physical_id
            )
        gone = found is not None and found.deleted and found.parent_key != call.operation_key
        return None if gone else found

    async def read(self, child: ChildRecord, key: UUID) -> Child:
        """The nested stack as the type's operation receives it. key: of that operation.

        Raises Sealed (Undecryptable).
        """
        async with self._database.connection() as conn:
            rows = await nested_stacks.members(conn, child.id)
            shown = await read_shown(conn, child.id, child.version)
            stored = await read_template(conn, child.id, child.version)
        if shown.undecryptable:
            raise Sealed(shown.undecryptable, code="Undecryptable")
        secrets = {row.name: self._secrets(row) for row in rows}
        view = Inputs({
            row.name: [row.reference, row.attributes, secrets[row.name]] for row in rows
        })  # fmt: skip
        budget = resolution_budget()
        outputs: dict[str, Json] = {}
        for one in shown.outputs if child.state == TraversalState.COMPLETE else ():
            value = decode(one["value"], date_of(shown.written_in))
            outputs[one["key"]], _ = evaluate_output(value, view, budget)
        secret = secret_outputs(shown, view, outputs, stored)
        return Child(
            StackId(child.id),
            child.name,
            (child.step or "") if child.parent_key == key else "",
            TraversalState(child.state),
            child.reason,
            [Member(**asdict(row) | {"secret": secrets[row.name]}) for row in rows],
            outputs,
            stored.template,
            stored.parameters,
            secret,
        )

    async def read_referenced(self, prepared: Prepared) -> Mapping[str, Json] | None:
        """The resource that the type's `names` refers to; None if it refers to none."""
        reference = prepared.type.referenced_resource(prepared.properties)
        if reference is None:
            return None
        async with self._database.connection() as conn:
            return await named_by(conn, prepared.work.key.stack_id, reference)

    def _secrets(self, row: MemberRecord) -> Sequence[str]:
        """Names of a member's secret attributes. Rows of earlier releases do not have them: all
        attributes are secret if the type has secrets or is unknown."""
        if row.secret is not None:
            return row.secret
        try:
            return ALL_SECRET if self._registry.get(row.type).schema.has_secrets() else ()
        except NotFound:
            return ALL_SECRET
