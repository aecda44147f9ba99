"""Observes resources that own nested stacks, by what the database says about these."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from engine.hot.schema.type_schema import TypeSchema
from engine.store.connection import Connection
from engine.store.observer.nested_states import OwnedState, read_states
from engine.store.observer.observations import RecordedResource
from engine.types.observation import Observation
from engine.types.registry import TypeRegistry
from engine.work.observer.endpoint_back_off import Endpoint
from engine.work.observer.type_faults import TypeFaults

#: No provider is asked.
NO_ENDPOINT: Endpoint = ("", "", "")


class NestedObserver:
    def __init__(self, registry: TypeRegistry, faults: TypeFaults) -> None:
        self._registry = registry
        self._faults = faults

    def split(
        self, page: Iterable[RecordedResource]
    ) -> tuple[list[RecordedResource], list[RecordedResource]]:
        """The resources that own nested stacks, and the others."""
        owners: list[RecordedResource] = []
        others: list[RecordedResource] = []
        for one in page:
            (owners if self._registry.has_nested_stack(one.type) else others).append(one)
        return owners, others

    def schema_of(self, one: RecordedResource) -> TypeSchema:
        """The schema of the type of a resource that owns a nested stack."""
        return self._registry.get(one.type).schema

    async def observe(
        self, conn: Connection, owners: Sequence[RecordedResource]
    ) -> dict[UUID, Observation | None]:
        """The observations of resources that own nested stacks, by ID, without those that have
        changed since they were read, or on which an operation has begun. None: the stack does not
        own the nested stack, so nothing is known about it."""
        states = await read_states(conn, [(one.stack_id, one.id) for one in owners])
        return {
            one.id: self._judge(one, state)
            for one in owners
            if (state := states.get((one.stack_id, one.id))) is not None
            and state.updated_at == one.updated_at
        }

    def _judge(self, one: RecordedResource, state: OwnedState) -> Observation | None:
        """An error of the type is one of this resource alone."""
        if state.external:
            return None
        type_ = self._registry.get(one.type)
        try:
            found = type_.observe_nested(one.properties or {}, state.nested)
        except Exception as error:
            return self._faults.report(type_, error)
        return self._faults.check(type_, found)
