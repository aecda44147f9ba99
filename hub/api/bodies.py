"""Request bodies as pydantic models."""

from typing import TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError

from engine.errors import Finding, Invalid, nearest
from hub.api.parts import body_of
from hub.validation_messages import describe


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


Sent = TypeVar("Sent", bound=BaseModel)


async def read(request: web.Request, kind: type[Sent]) -> Sent:
    """The body as this model. Raises Invalid with all findings, which contain no values."""
    body = await body_of(request)
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        known = list(kind.model_fields)
        found = []
        for one in error.errors(include_url=False, include_input=False):
            place = ".".join(str(part) for part in one["loc"])
            unknown = one["type"] == "extra_forbidden"
            reason = "is not a known key" if unknown else describe(one)
            remedy = nearest(place, known) or f"Known: {', '.join(known)}." if unknown else ""
            found.append(Finding(place, reason, remedy, "Invalid"))
        raise Invalid(found) from None
