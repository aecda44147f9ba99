"""Objects by name or ID: their lookup, and the custom constraints that use it.

A type refers to another object by its ID or name, as in Heat. `Lookup` describes the collection
that has the objects, and `find_id` returns the ID. `ObjectConstraint` validates a value before
anything is stored::

    NETWORKS = Lookup("network", NETWORK, "/networks", "networks")
    constraints = (ObjectConstraint("neutron.network", NETWORKS, cloud),)

A type of another service adds a subclass of `Lookup` if its API finds objects in another way.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from engine.errors import nearest
from engine.ttl_cache import TtlCache
from engine.types.custom_constraints import CustomConstraint, ValidationContext
from engine.types.openstack.cloud import Cloud, Session, id_of, segment
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import Service
from engine.words import Json

#: The form of the IDs of Neutron, Nova, Cinder and Glance.
ID: Final = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
#: Names that a message about an unknown one chooses from.
MAX_NAMES: Final = 500
#: Seconds for which a constraint remembers that an object exists.
REMEMBER: Final = 10.0


class UnknownObject(CloudError):
    """There is no object with a name or ID, or several have the name."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A collection of objects that have names.

    what: one object, as in messages: `network`. path, key: of the list. query: a filter of all its
    requests. filters: whether the list can be filtered by name.
    """

    what: str
    service: Service
    path: str
    key: str
    query: tuple[tuple[str, str], ...] = ()
    filters: bool = True

    async def find_id(self, session: Session, value: str, project: str = "") -> str:
        """The ID of the object with this ID or name; an ID is not verified.

        project: whose object is meant if several have the name. Raises UnknownObject, CloudError.
        """
        if ID.fullmatch(value):
            return value
        return self._choose(
            value, await self.find_named(session, value), project
        ) or await self._by_id(session, value)

    async def verify(self, session: Session, value: str, project: str = "") -> str:
        """As `find_id`, and the object exists."""
        if ID.fullmatch(value) and await self.exists(session, value):
            return value
        found = self._choose(value, await self.find_named(session, value), project)
        return found or await self._by_id(session, value)

    async def exists(self, session: Session, object_id: str) -> bool:
        try:
            path = f"{self.path}/{segment(object_id)}"
            await session.request(self.service, "GET", path, f"read the {self.what}")
        except CloudError as error:
            if error.is_missing or error.status in (400, 403):
                return False
            raise
        return True

    async def find_named(self, session: Session, name: str) -> Sequence[Mapping[str, Json]]:
        """The objects with this name."""
        query = {**dict(self.query), **({"name": name} if self.filters else {})}
        found = await session.list(self.service, self.path, self.key, query)
        return [one for one in found if self.name_of(one) == name]

    def name_of(self, found: Mapping[str, Json]) -> str:
        return str(found.get("name") or "")

    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(self.service, found)

    def _choose(self, name: str, found: Sequence[Mapping[str, Json]], project: str) -> str | None:
        own = [one for one in found if project and project == one.get("project_id")]
        chosen = own if len(found) > 1 and own else found
        if len(chosen) > 1:
            ids = ", ".join(self.id_of(one) for one in chosen)
            reason = f"{len(chosen)} objects have the {self.what} name '{name}': {ids}"
            raise UnknownObject(
                f"{reason}. Use the ID of one.", public=f"several objects have the {self.what} name"
            )
        return self.id_of(chosen[0]) if chosen else None

    async def _by_id(self, session: Session, value: str) -> str:
        """For services whose IDs have any form. Raises UnknownObject."""
        if not ID.fullmatch(value) and await self.exists(session, value):
            return value
        raise await self.unknown(session, value)

    async def unknown(self, session: Session, value: str) -> UnknownObject:
        """The error about an object that does not exist, with the nearest names."""
        remedy = ""
        async for page in session.pages(
            self.service, self.path, self.key, dict(self.query), page=MAX_NAMES
        ):
            names = [name for one in page if (name := self.name_of(one))]
            remedy = nearest(value, sorted(set(names)))
            break
        reason = f"Unable to find {self.what} with name or id '{value}'"
        return UnknownObject(
            f"{reason}. {remedy}" if remedy else reason,
            status=404,
            public=f"there is no such {self.what}",
        )


class ObjectConstraint(CustomConstraint):
    """The value is the name or ID of an object that the requester can read."""

    def __init__(self, name: str, lookup: Lookup, cloud: Cloud) -> None:
        self.name = name
        self._lookup = lookup
        self._cloud = cloud
        self._known: TtlCache[tuple[str, str, str], bool] = TtlCache()

    async def validate(self, value: Json, context: ValidationContext) -> str | None:
        if not context.credential:
            return None  # a request of the engine itself, for a template that was validated before
        if not isinstance(value, str):
            return f"it is not the name or ID of a {self._lookup.what}"
        place = context.credential, context.region, value
        if self._known.get(place, monotonic()):
            return None
        session = self._cloud.session(context)
        try:
            await self._lookup.verify(session, value, context.project)
        except UnknownObject as error:
            return str(error)
        except CloudError as error:
            return f"{error}; send the request again" if error.retry else str(error)
        self._known.keep(place, True, monotonic() + REMEMBER)
        return None
