"""OS::Trove::Cluster: several database servers with the same data. Nothing of it changes in place.

A cluster cannot be renamed, and its name is not unique: a create with a name of the template first
saves which clusters have it, so that it finds none of them after an interruption.
"""

from collections.abc import Mapping
from typing import Final

from engine.errors import Findings
from engine.types.contract import Call, Outcome, Wait
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.object_type import NAME, Mark, ObjectRow
from engine.types.openstack.services import DATABASE
from engine.types.openstack.trove.lookups import FLAVORS, check_interfaces, interface_of
from engine.types.openstack.trove.schema import CLUSTER
from engine.types.openstack.trove.trove_type import BUSY, FAILED, TYPE, VERSION, TroveType
from engine.words import Json

INSTANCES: Final = "instances"
#: In the progress and the mark of a create: the IDs of the clusters that had its name before.
BEFORE: Final = "before"
#: Names of tasks.
_TASKS: Final = frozenset(
    {
        "BUILDING", "DELETING", "ADDING_SHARD", "GROWING_CLUSTER", "SHRINKING_CLUSTER",
        "UPGRADING_CLUSTER", "RESTARTING_CLUSTER", "UPDATING_CLUSTER",
    }
)  # fmt: skip
_NO_TASK: Final = "NONE"


class DatabaseCluster(TroveType):
    saved_first = TroveType.saved_first | {BEFORE}

    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "database cluster", DATABASE, "/clusters", "cluster", "clusters",
            marked=False, busy=BUSY | _TASKS, failed=FAILED,
        )  # fmt: skip
        super().__init__(CLUSTER, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        for number, one in enumerate(properties.get(INSTANCES) or ()):
            at = f"{place}.{INSTANCES}.{number}.networks"
            check_interfaces(one.get("networks") or (), at, findings)

    def status(self, found: Mapping[str, Json]) -> str:
        """That of its instances, if Trove shows it, and of its task. The task of a cluster that has
        failed never ends."""
        states = {str(one["status"]) for one in found.get(INSTANCES) or () if one.get("status")}
        if failed := states & FAILED:
            return min(failed)
        task = found.get("task")
        name = task.get(NAME) if isinstance(task, Mapping) else None
        if name and name != _NO_TASK:
            return str(name)
        return min(states & BUSY, default="ACTIVE")

    async def failure_reason(self, session: Session, found: Mapping[str, Json]) -> str:
        """The faults of its instances."""
        reasons = [self.status(found)]
        for one in found.get(INSTANCES) or ():
            if one.get("status") in FAILED:
                path = f"/clusters/{self.id_of(found)}/instances/{one.get('id')}"
                alone = await session.find(DATABASE, path, "instance", "read the instance")
                fault = (alone or {}).get("fault")
                message = fault.get("message") if isinstance(fault, Mapping) else None
                reasons += [f"{one.get(NAME)}: {message}"] if message else []
        return ": ".join((reasons[0], "; ".join(reasons[1:]))) if reasons[1:] else reasons[0]

    def delete_remedy(self) -> str:
        return (
            "Trove deletes a cluster that it could not create only after an administrator has "
            "reset its status: `openstack database cluster reset status`."
        )

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        known = await super().attributes_of(session, found)
        instances = [one.get("id") for one in found.get(INSTANCES) or ()]
        return {**known, INSTANCES: instances}

    # ---- create

    def mark(self, call: Call) -> Mark:
        name = call.properties.get(NAME)
        if not name:
            return super().mark(call)
        before = (call.progress or {}).get(BEFORE) or []
        return Mark({NAME: name}, {BEFORE: before})

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        former = mark.query.get(BEFORE) or ()
        found = await session.list(DATABASE, path, self.row.list_key)
        same = (one for one in found if mark.is_on(one))
        return next((one for one in same if self.id_of(one) not in former), None)

    async def _create(self, call: Call, session: Session) -> Outcome:
        progress = dict(call.progress or {})
        if call.properties.get(NAME) and "id" not in progress and BEFORE not in progress:
            found = await session.list(DATABASE, self.row.path, self.row.list_key)
            same = [one for one in found if one.get(NAME) == call.properties[NAME]]
            return Wait(call.now, {**progress, BEFORE: [self.id_of(one) for one in same]})
        return await super()._create(call, session)

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        given = call.properties
        instances = [await self._instance(call, session, one) for one in given[INSTANCES]]
        return {
            "datastore": {"type": given[TYPE], "version": given[VERSION]},
            INSTANCES: instances,
        }

    async def _instance(
        self, call: Call, session: Session, given: Mapping[str, Json]
    ) -> dict[str, Json]:
        fields: dict[str, Json] = {
            "flavorRef": await FLAVORS.find_id(session, given["flavor"], call.project),
            "volume": {"size": given["volume_size"]},
        }
        if given.get("availability_zone"):
            fields["availability_zone"] = given["availability_zone"]
        if networks := given.get("networks"):
            fields["nics"] = [await interface_of(session, one, call.project) for one in networks]
        return fields
