"""The collections in which Nova, Glance, Cinder and Keystone have named objects, and the custom
constraints that look there."""

from collections.abc import Mapping
from typing import Final

from engine.types.custom_constraints import CustomConstraint
from engine.types.openstack.cloud import Cloud, Session, segment
from engine.types.openstack.names import Lookup, ObjectConstraint
from engine.types.openstack.services import COMPUTE, IDENTITY, IMAGE
from engine.types.openstack.services import VOLUME as CINDER
from engine.words import Json


class _KeyPairLookup(Lookup):
    """The name of a key pair is its ID, and each entry of the list is a map of one entry."""

    def name_of(self, found: Mapping[str, Json]) -> str:
        return str((found.get("keypair") or {}).get("name") or "")

    def id_of(self, found: Mapping[str, Json]) -> str:
        return self.name_of(found)


FLAVORS: Final = Lookup("flavor", COMPUTE, "/flavors", "flavors", filters=False)
SERVERS: Final = Lookup("server", COMPUTE, "/servers", "servers")
KEY_PAIRS: Final = _KeyPairLookup("key pair", COMPUTE, "/os-keypairs", "keypairs", filters=False)
IMAGES: Final = Lookup("image", IMAGE, "/images", "images")
VOLUMES: Final = Lookup("volume", CINDER, "/volumes", "volumes")
SNAPSHOTS: Final = Lookup("volume snapshot", CINDER, "/snapshots", "snapshots")
BACKUPS: Final = Lookup("volume backup", CINDER, "/backups", "backups")
VOLUME_TYPES: Final = Lookup("volume type", CINDER, "/types", "volume_types", filters=False)
QOS_SPECS: Final = Lookup("QoS specs", CINDER, "/qos-specs", "qos_specs", filters=False)
USERS: Final = Lookup("user", IDENTITY, "/users", "users")


def compute_constraints(cloud: Cloud) -> list[CustomConstraint]:
    return [
        ObjectConstraint("nova.flavor", FLAVORS, cloud),
        ObjectConstraint("nova.server", SERVERS, cloud),
        ObjectConstraint("nova.keypair", KEY_PAIRS, cloud),
        ObjectConstraint("glance.image", IMAGES, cloud),
    ]


def volume_constraints(cloud: Cloud) -> list[CustomConstraint]:
    return [
        ObjectConstraint("cinder.volume", VOLUMES, cloud),
        ObjectConstraint("cinder.snapshot", SNAPSHOTS, cloud),
        ObjectConstraint("cinder.backup", BACKUPS, cloud),
        ObjectConstraint("cinder.vtype", VOLUME_TYPES, cloud),
        ObjectConstraint("cinder.qos_specs", QOS_SPECS, cloud),
    ]


async def find_flavor(session: Session, name_or_id: str) -> Mapping[str, Json]:
    """The flavor, with `id` and `name`. Raises UnknownObject, CloudError."""
    flavor_id = await FLAVORS.find_id(session, name_or_id)
    path = f"/flavors/{segment(flavor_id)}"
    found = await session.find(COMPUTE, path, "flavor", "read the flavor")
    if found is None:
        raise await FLAVORS.unknown(session, name_or_id)
    return found
