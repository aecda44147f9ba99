"""The zones that templates name, and the constraint on such names."""

from typing import Final

from engine.types.openstack.cloud import Cloud
from engine.types.openstack.names import Lookup, ObjectConstraint
from engine.types.openstack.services import DNS

ZONES: Final = Lookup("zone", DNS, "/zones", "zones")


def zone_constraint(cloud: Cloud) -> ObjectConstraint:
    return ObjectConstraint("designate.zone", ZONES, cloud)
