"""Data for resources that wait for it: early, in time or late. Not to be mixed up with answers."""

from collections.abc import Callable
from uuid import UUID

import orjson

from engine.errors import Finding, Invalid, LimitReached, NotFound
from engine.service.scaling import Asker, Scaling
from engine.service.traversals import Traversals
from engine.store.database import Database
from engine.store.hooks import record_events
from engine.store.signals import Target, insert_signal, target
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
        by: str,
        *,
        credential: str = "",
    ) -> None:
        """Keep data for a resource, also before its operation has begun; or scale a group, where
        that is what the resource is for.

        project: None: by right of the resource's own token. to: its name or its id. credential: to
        scale with in the cloud.
        NotFound; Invalid when the data is not as its type takes it, with the code
        ResourceActionNotSupported when that takes none; LimitReached.
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
            taken = self._taken(found, data)
            said = await self._scaling.adjust(conn, locked, found, Asker(by, credential))
            if said is None:
                await insert_signal(conn, stack_id, found, taken, by)
            await record_events(conn, [_event(stack_id, found, said or f"{by} sent it a signal")])
        self._wake()

    def _taken(self, found: Target, data: Json) -> Json:
        type_ = self._traversals.registry.get(found.type)
        if not type_.schema.signals:
            reason = "signal is not supported for resource."
            remedy = 'A waiting hook is cleared with {"unset_hook": "pre-create"} or the like.'
            raise Invalid([Finding("", reason, remedy, "ResourceActionNotSupported")])
        most = self._traversals.limits.signals
        if found.kept >= most:
            raise LimitReached(
                f'"{found.name}" has {found.kept} signals already',
                remedy=f"The most is {most}; the operator sets it in [quotas].",
                code="RequestLimitExceeded",
            )
        return type_.take_signal(data, found.kept + 1)


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
