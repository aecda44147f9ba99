"""Names of queues, which are their IDs. Pure."""

import re
from typing import Final

from engine.types.custom_constraints import CustomConstraint, ValidationContext
from engine.words import Json

#: Characters of a name.
MAX_NAME: Final = 64
_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME}}}")
_OTHERS = re.compile(r"[^a-zA-Z0-9_-]+")


def reason_against(name: Json) -> str | None:
    """Why Zaqar refuses a name; None: it does not."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return None
    return f"the name of a queue has 1 to {MAX_NAME} letters, digits, hyphens and underscores"


def fitting_name(name: str) -> str:
    """The end of a name, as the name of a queue."""
    return _OTHERS.sub("-", name)[-MAX_NAME:]


class QueueConstraint(CustomConstraint):
    """The value is the name of a queue. It need not exist: Zaqar creates queues when a client uses
    them."""

    name = "zaqar.queue"

    def validate(self, value: Json, context: ValidationContext) -> str | None:
        return reason_against(value)
