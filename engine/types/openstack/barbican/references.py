"""References to objects of Barbican, which are URLs, and the constraints on them.

Only the ID at the end of a URL is used: requests go to the Barbican of the service catalog.
"""

from collections.abc import Mapping
from typing import Final

from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.names import ID, Lookup, ObjectConstraint, UnknownObject
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import KEY_MANAGER
from engine.words import Json


def id_in(reference: Json) -> str:
    """The ID of the object that a URL or an ID refers to. Raises CloudError."""
    object_id = str(reference or "").rstrip("/").rpartition("/")[2]
    if not ID.fullmatch(object_id):
        public = "a reference to an object of Barbican does not end with an ID"
        raise CloudError(f"{public}: {reference}", status=404, public=public)
    return object_id


async def reference_to(session: Session, path: str, reference: Json) -> str:
    """The URL that Barbican accepts: an ID becomes one. path: of the collection."""
    text = str(reference)
    if not ID.fullmatch(text):
        return text
    endpoint = await session.endpoint(KEY_MANAGER, "refer to an object")
    return f"{endpoint}{path}/{text}"


def mapping_in(found: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """A field of an answer that is a map; else an empty one."""
    value = found.get(name)
    return value if isinstance(value, Mapping) else {}


def entries_in(found: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    """The maps in a field of an answer that is a list."""
    value = found.get(name)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def secrets_in(container: Mapping[str, Json]) -> dict[str, Json]:
    """The URLs of the secrets in a container, by name."""
    entries = entries_in(container, "secret_refs")
    return {str(one.get("name")): one.get("secret_ref") for one in entries}


class ReferenceLookup(Lookup):
    """Names are not unique in Barbican; objects are named by their URL or ID only."""

    async def verify(self, session: Session, value: str, project: str = "") -> str:
        try:
            object_id = id_in(value)
        except CloudError:
            object_id = ""
        if object_id and await self.exists(session, object_id):
            return value
        reason = f"Unable to find {self.what} with the reference '{value}'"
        remedy = f"Use the URL that `openstack secret {self._listing}list` shows."
        raise UnknownObject(
            f"{reason}. {remedy}", status=404, public=f"there is no such {self.what}"
        )

    @property
    def _listing(self) -> str:
        return "" if self is SECRETS else f"{self.what} "


SECRETS: Final = ReferenceLookup("secret", KEY_MANAGER, "/secrets", "secrets")
CONTAINERS: Final = ReferenceLookup("container", KEY_MANAGER, "/containers", "containers")


def secret_constraints(cloud: Cloud) -> list[ObjectConstraint]:
    return [
        ObjectConstraint("barbican.secret", SECRETS, cloud),
        ObjectConstraint("barbican.container", CONTAINERS, cloud),
    ]
