"""What `user:` in a rule may name in mode tokens. Pure."""

import re
from uuid import UUID

#: Follows the name of an account of every project.
AT_EVERYWHERE = "@*"
#: Names that could be read as an ID.
ID = re.compile(r"[0-9a-fA-F-]{32,64}")


def is_reissuable(name: str) -> bool:
    """Whether an admin of a project can issue the name again, to another person, after revoking it.

    They cannot issue an account of every project, nor a token or password with an ID of before.
    """
    return not (name.endswith(AT_EVERYWHERE) or _is_id(name))


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
