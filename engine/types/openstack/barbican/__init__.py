"""The resource types of Barbican."""

from engine.types.contract import ResourceType
from engine.types.openstack.barbican.container import container_types
from engine.types.openstack.barbican.order import Order
from engine.types.openstack.barbican.references import secret_constraints
from engine.types.openstack.barbican.secret import StoredSecret
from engine.types.openstack.cloud import Cloud


def barbican_types(cloud: Cloud) -> list[ResourceType]:
    """The types; the first one has the custom constraints of all."""
    types: list[ResourceType] = [StoredSecret(cloud), Order(cloud), *container_types(cloud)]
    types[0].constraints = tuple(secret_constraints(cloud))
    return types
