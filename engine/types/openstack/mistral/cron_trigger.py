"""OS::Mistral::CronTrigger: runs a workflow at certain times. Its name is its ID.

Mistral deletes a trigger that has run as often as it should, so that its end is no failure.
"""

from collections.abc import Mapping
from dataclasses import replace

from engine.errors import Findings
from engine.types.contract import Call, Done, Outcome
from engine.types.observation import PRESENT
from engine.types.observed_list import ObservedList
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.mistral.lookups import workflow_fields
from engine.types.openstack.mistral.named_type import NamedType
from engine.types.openstack.mistral.schema import CRON_TRIGGER
from engine.types.openstack.object_type import NAME, Mark, ObjectRow
from engine.types.openstack.services import WORKFLOW
from engine.words import Json

PATTERN, FIRST_TIME, COUNT = "pattern", "first_time", "count"


class CronTrigger(NamedType):
    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "cron trigger", WORKFLOW, "/cron_triggers", "", "cron_triggers",
            fields={FIRST_TIME: "first_execution_time", COUNT: "remaining_executions"},
            marked=False,
        )  # fmt: skip
        super().__init__(CRON_TRIGGER, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if PATTERN not in properties and FIRST_TIME not in properties:
            findings.add(place, "has neither pattern nor first_time", "Set one of them.")

    def mark(self, call: Call) -> Mark:
        """A name of the template is no mark, because another client can have used it."""
        if call.properties.get(NAME):
            return Mark({}, {})
        return Mark({NAME: call.own_name}, {NAME: call.own_name})

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        return await self.find(session, path, self.name_of(call))

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        workflow = call.properties["workflow"]
        names = (NAME, PATTERN, FIRST_TIME, COUNT)
        given = {name: one for name in names if (one := call.properties.get(name)) is not None}
        return {
            **{self.field_of(name): one for name, one in given.items()},
            **workflow_fields(workflow[NAME]),
            "workflow_input": workflow.get("input") or {},
        }

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        return await session.create(WORKFLOW, path, "", "create the cron trigger", fields)

    async def _check(self, call: Call, session: Session) -> Outcome:
        if _may_have_ended(call):
            found = await self.find(session, self.row.path, str(call.physical_id))
            if found is None:
                return Done(call.physical_id, call.attributes, call.data)
        return await super()._check(call, session)

    # ---- observation

    def is_observed(self, name: str) -> bool:
        """Mistral shows the other ones in another form, or counts them down."""
        return name == PATTERN

    def observed_list(self, call: Call) -> ObservedList:
        listed = super().observed_list(call)
        return replace(
            listed, missing=lambda one: PRESENT if _may_have_ended(one) else listed.missing(one)
        )


def _may_have_ended(call: Call) -> bool:
    """Whether the trigger runs a limited number of times."""
    return call.properties.get(COUNT) is not None or call.properties.get(PATTERN) is None
