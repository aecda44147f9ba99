"""What the types of Keystone have in common.

Each object is created under a name of its own, by which a repeated create finds it, and gets the
name of the template in a second request.
"""

from collections.abc import Collection, Mapping
from typing import Final

from engine.types.contract import Call
from engine.types.openstack.cloud import Session
from engine.types.openstack.live_values import LiveProperties
from engine.types.openstack.object_type import NAME, Mark, RepairedType
from engine.words import Json

DOMAIN: Final = "domain"
#: The length limit of the names of projects, groups and domains.
MAX_NAME: Final = 64


def own_name(call: Call) -> str:
    return call.own_name[-MAX_NAME:]


def _is_other_domain(call: Call) -> bool:
    """Whether the domain is not given as the ID of the domain that the object is in. A name counts
    as another domain, because it is not looked up."""
    recorded = call.attributes.get("show")
    domain_id = recorded.get("domain_id") if isinstance(recorded, Mapping) else None
    return domain_id is None or call.properties.get(DOMAIN) != domain_id


class KeystoneType(RepairedType):
    """A type of Keystone. Another domain replaces the object: Keystone does not move it.

    The list has the objects of all projects, but not all objects, such as roles of domains.
    """

    importable = True
    lists_all = True

    def needs_replace(self, call: Call) -> bool:
        known = self.schema.properties
        return any(
            _is_other_domain(call) if name == DOMAIN else not known[name].update_allowed
            for name in call.changed
        )

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        sent = [name for name in names if name != DOMAIN]
        return await super().fields_for_update(call, session, sent)

    def mark(self, call: Call) -> Mark:
        name = own_name(call)
        return Mark({NAME: name}, {NAME: name}, renames=call.properties.get(NAME) is not None)

    def cleared_value(self, call: Call, name: str) -> Json:
        return own_name(call) if name == NAME else super().cleared_value(call, name)

    def is_field(self, name: str) -> bool:
        return name not in self.row.separate

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        if domain := call.properties.get(DOMAIN):
            query = {**mark.query, "domain_id": await self.value_of(call, session, DOMAIN, domain)}
            mark = Mark(mark.fields, query, mark.renames)
        return await super().find_created(call, session, path, mark)

    async def live_properties(
        self, session: Session, found: Mapping[str, Json], imported: Collection[str]
    ) -> LiveProperties:
        """Keystone leaves out fields without a value. The parent of a project at the top of a
        domain is the domain, and not given."""
        live = await super().live_properties(session, found, imported)
        live.reasons.clear()
        if live.values.get("parent") == found.get("domain_id"):
            live.values.pop("parent", None)
        return live
