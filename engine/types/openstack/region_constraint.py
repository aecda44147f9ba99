"""The custom constraint that the requester's service catalog has a region."""

from engine.errors import nearest
from engine.types.custom_constraints import CustomConstraint, ValidationContext
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.service_errors import CloudError
from engine.types.regions import REGION_CONSTRAINT
from engine.words import Json


class RegionConstraint(CustomConstraint):
    """The value is the ID of a region in which the requester has services."""

    name = REGION_CONSTRAINT

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def validate(self, value: Json, context: ValidationContext) -> str | None:
        if not context.credential:
            return None  # a request of the engine itself, for a stack that was validated before
        try:
            known = await self._cloud.session(context).regions("read the service catalog")
        except CloudError as error:
            return f"{error}; send the request again" if error.retry else str(error)
        if value in known:
            return None
        reason = f'your service catalog has no region "{value}"'
        available = f"Available regions: {', '.join(known) or 'none'}"
        near = nearest(str(value), known)
        return f"{reason}. {near} {available}" if near else f"{reason}. {available}"
