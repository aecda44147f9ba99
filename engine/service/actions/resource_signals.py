"""Signals: data sent to a resource (a wait condition, a scaling policy). Answers are in hooks/."""

from collections.abc import Callable
from uuid import UUID

import orjson

from engine.errors import Finding, Invalid, LimitReached, NotFound
from engine.principal import Principal
from engine.service.actions.scaling import Requester, Scaling
from engine.service.traversals.start import Traversals
from engine.store.database import Database
from engine.store.hooks import record_events
from engine.store.resource_signals import Target, insert_signal, target
from engine.words import Json


class ResourceSignals:
    def __init__(
        self, database: Database, traversals: Traversals, wake: Callable[[], None]
    ) -> None:
        self._database = database
        self._traversals = traversals
        self._scaling = Scaling(traversals)
        self._wake = wake

    async def send(
        self,
        project: str | None,
        stack_id: UUID,
        to: str | UUID,
        data: Json,
        by: Principal,
        *,
        credential: str = "",
    ) -> None:
        """Store the data for a resource, also before its operation has begun. A signal to a scaling
        policy scales its group instead.

        project: None if the resource's own token authenticated the request. to: the resource's name
        or its id. credential: the cloud credential that the scaling uses.
        Raises NotFound; Invalid if the type rejects the data, with the code
        ResourceActionNotSupported if it takes no signals; LimitReached.
        """
        limits = self._traversals.limits
        size = len(orjson.dumps(data))
        if size > limits.signal_bytes:
            raise LimitReached(
                f"the data has {size} bytes",
                remedy=f"The most is {limits.signal_bytes}; the operator sets it in [quotas].",
                code="RequestLimitExceeded",
            )
        async with self._database.transaction("accept") as conn:
            locked = await self._traversals.lock(conn, project, stack_id)
            found = await target(conn, stack_id, to)
            if found is None:
                raise NotFound(f"The Resource ({to}) could not be found.", code="EntityNotFound")
            signal = self._validated(found, data)
            scaled = await self._scaling.adjust(conn, locked, found, Requester(by, credential))
            if scaled is None:
                await insert_signal(conn, stack_id, found, signal, by.name)
            await record_events(conn, [_event(stack_id, found, scaled or f"{by} sent it a signal")])
        self._wake()

    def _validated(self, found: Target, data: Json) -> Json:
        type_ = self._traversals.registry.get(found.type)
        if not type_.schema.signals:
            reason = "signal is not supported for resource."
            remedy = 'To answer a waiting hook, send its point: {"unset_hook": "pre-create"}.'
            raise Invalid([Finding("", reason, remedy, "ResourceActionNotSupported")])
        most = self._traversals.limits.signals
        if found.kept >= most:
            raise LimitReached(
                f'"{found.name}" already has {found.kept} signals',
                remedy=f"The most is {most}; the operator sets it in [quotas].",
                code="RequestLimitExceeded",
            )
        return type_.accept_signal(data, found.kept + 1)


def _event(stack_id: UUID, found: Target, reason: str) -> Json:
    return {
        "stack_id": stack_id,
        "type": "headgate.resource.signal.completed",
        "resource_name": found.name,
        "resource_type": found.type,
        "physical_id": found.physical_id,
        "action": found.action,
        "status": found.status,
        "reason": reason,
        "data": {"operation": "signal"},
    }
