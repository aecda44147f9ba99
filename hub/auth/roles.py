"""Roles and their rights."""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Right(StrEnum):
    """The right that a route requires."""

    NOTHING = "nothing"
    """For everyone."""
    READ = "read"
    WRITE = "write"
    """Create, change and delete stacks, subscriptions and breakpoints."""
    REPORT = "report"
    """Report changes of physical resources."""
    ANSWER = "answer"
    """Answer hooks."""
    MONITOR = "monitor"
    """Read the metrics of the server."""
    OPERATE = "operate"
    """See the state of the whole server, and pin stacks."""
    ADMINISTER = "administer"
    """Create and revoke tokens."""


class Role(StrEnum):
    READER = "reader"
    AUTHOR = "author"
    REPORTER = "reporter"
    APPROVER = "approver"
    MONITOR = "monitor"
    OPERATOR = "operator"
    ADMIN = "admin"


#: Authors are not approvers, nor approvers authors.
IMPLIED: Mapping[Role, tuple[Role, ...]] = {
    Role.READER: (),
    Role.AUTHOR: (Role.READER, Role.REPORTER),
    Role.REPORTER: (),
    Role.APPROVER: (Role.READER,),
    Role.MONITOR: (),
    Role.OPERATOR: (Role.AUTHOR, Role.APPROVER, Role.READER, Role.REPORTER, Role.MONITOR),
    Role.ADMIN: (
        Role.OPERATOR,
        Role.AUTHOR,
        Role.APPROVER,
        Role.READER,
        Role.REPORTER,
        Role.MONITOR,
    ),
}
RIGHTS: Mapping[str, Right] = {
    Role.READER: Right.READ,
    Role.AUTHOR: Right.WRITE,
    Role.REPORTER: Right.REPORT,
    Role.APPROVER: Right.ANSWER,
    Role.MONITOR: Right.MONITOR,
    Role.OPERATOR: Right.OPERATE,
    Role.ADMIN: Right.ADMINISTER,
}
#: The role that has a right, for error messages.
HOLDERS: Mapping[Right, str] = {right: role for role, right in RIGHTS.items()}
EVERYTHING = frozenset(Right)


def with_implied(roles: Iterable[str]) -> tuple[str, ...]:
    """Roles with those that they imply, without duplicates. Other roles, such as ``dba``, are kept
    for `answer_by` of rules."""
    found: dict[str, None] = {}
    for role in roles:
        found[str(role)] = None
        if role in IMPLIED:
            found |= {str(one): None for one in IMPLIED[Role(role)]}
    return tuple(found)


def rights_of(roles: Iterable[str]) -> frozenset[Right]:
    """roles: with those that they imply."""
    return frozenset({Right.NOTHING, *(RIGHTS[role] for role in roles if role in RIGHTS)})
