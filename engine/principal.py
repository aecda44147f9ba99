"""Principals: a stable identity for decisions, and a display name.

Display names are not unique: rules, approvals and the audit log compare `Principal.id`.
"""

from collections.abc import Collection
from dataclasses import dataclass

#: The prefix of an ID that is only a name: in mode none, and in rows of earlier releases.
BY_NAME = "name:"
#: The prefix of the ID of a user of Keystone, ``keystone:ID@DOMAIN``.
OF_KEYSTONE = "keystone:"


@dataclass(frozen=True, slots=True)
class Principal:
    """id: stable and unique on this server; "": unknown. name: for display.

    aliases: their names after `user:` in a rule, unique in the stack's project. roles: including
    implied ones. token_id: of the token that authenticated them, or ""; it is not secret.
    """

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    token_id: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def key(self) -> str:
        """The unique key: the ID or, if that is unknown, the name."""
        return self.id or BY_NAME + self.name

    def is_in(self, keys: Collection[str]) -> bool:
        """Return whether one of the keys is theirs, also a recorded name without an ID."""
        known = {_without_domain(one) for one in keys}
        return _without_domain(self.key) in known or BY_NAME + self.name in known

    @property
    def rule_names(self) -> tuple[str, ...]:
        """All their names in rules: ``user:NAME`` and ``role:NAME``."""
        return (*(f"user:{one}" for one in self.aliases), *(f"role:{one}" for one in self.roles))


def _without_domain(key: str) -> str:
    """A key without the domain of a user of Keystone, whose ID is unique in all domains. The domain
    in settings may be wrong."""
    return key.rpartition("@")[0] or key if key.startswith(OF_KEYSTONE) else key


def principal_of_name(name: str, roles: tuple[str, ...] = ()) -> Principal:
    """Return a principal that is known only by name."""
    return Principal(BY_NAME + name, name, (name,), roles)


def internal(name: str) -> Principal:
    """Return the principal of a part of the engine, such as the deadline loop."""
    return Principal(f"headgate:{name}", name)


#: For rows that record no principal.
UNKNOWN_PRINCIPAL = Principal("", "")
