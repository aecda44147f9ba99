"""Roles, and what each may do: one table."""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Right(StrEnum):
    """What a route needs of whoever asks."""

    NOTHING = "nothing"
    """Whoever comes."""
    READ = "read"
    WRITE = "write"
    """Make, change and delete stacks, subscriptions and breakpoints."""
    ANSWER = "answer"
    """Decide hooks by right of one's role."""
    MONITOR = "monitor"
    """Read the metrics of the server."""
    OPERATE = "operate"
    """See what belongs to the whole server, or keep things from being cleared away."""
    ADMINISTER = "administer"
    """Make and revoke tokens."""


class Role(StrEnum):
    READER = "reader"
    AUTHOR = "author"
    APPROVER = "approver"
    MONITOR = "monitor"
    OPERATOR = "operator"
    ADMIN = "admin"


#: An approver need not be an author, nor an author an approver.
IMPLIED: Mapping[Role, tuple[Role, ...]] = {
    Role.READER: (),
    Role.AUTHOR: (Role.READER,),
    Role.APPROVER: (Role.READER,),
    Role.MONITOR: (),
    Role.OPERATOR: (Role.AUTHOR, Role.APPROVER, Role.READER, Role.MONITOR),
    Role.ADMIN: (Role.OPERATOR, Role.AUTHOR, Role.APPROVER, Role.READER, Role.MONITOR),
}
RIGHTS: Mapping[str, Right] = {
    Role.READER: Right.READ,
    Role.AUTHOR: Right.WRITE,
    Role.APPROVER: Right.ANSWER,
    Role.MONITOR: Right.MONITOR,
    Role.OPERATOR: Right.OPERATE,
    Role.ADMIN: Right.ADMINISTER,
}
#: Who has it, for who lacks it.
HOLDERS: Mapping[Right, str] = {right: role for role, right in RIGHTS.items()}
EVERYTHING = frozenset(Right)


def with_implied(said: Iterable[str]) -> tuple[str, ...]:
    """Roles with those that they imply, each once. Others than ours, such as ``dba``, are kept:
    rules may name them in `answer_by`."""
    found: dict[str, None] = {}
    for role in said:
        found[str(role)] = None
        if role in IMPLIED:
            found |= {str(one): None for one in IMPLIED[Role(role)]}
    return tuple(found)


def rights_of(roles: Iterable[str]) -> frozenset[Right]:
    """roles: with those that they imply."""
    return frozenset({Right.NOTHING, *(RIGHTS[role] for role in roles if role in RIGHTS)})
