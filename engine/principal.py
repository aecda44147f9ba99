"""Who acts: a stable identity for decisions, beside a name for people.

Display names are not unique: rules, approvals and the audit log compare `Principal.id`.
"""

from collections.abc import Collection
from dataclasses import dataclass

#: The prefix of an id that is only a name: of mode none, and of rows of earlier versions.
BY_NAME = "name:"


@dataclass(frozen=True, slots=True)
class Principal:
    """id: stable and unique on this server; "": unknown. name: for display.

    aliases: what `user:` in a rule may call them: each is theirs alone in the stack's project.
    roles: with those that they imply. token_id: of the token that authenticated them; "" where
    there is none. It is no secret.
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
        """What tells them from others: the id, or where that is unknown, the name."""
        return self.id or BY_NAME + self.name

    def is_in(self, keys: Collection[str]) -> bool:
        """Whether one of these keys is theirs; a name alone matches, where no more was recorded."""
        return self.key in keys or BY_NAME + self.name in keys

    @property
    def written(self) -> tuple[str, ...]:
        """All that `user:` and `role:` may call them by."""
        return (*(f"user:{one}" for one in self.aliases), *(f"role:{one}" for one in self.roles))


def named(name: str, roles: tuple[str, ...] = ()) -> Principal:
    """Someone whose name is all there is to know of them."""
    return Principal(BY_NAME + name, name, (name,), roles)


def internal(name: str) -> Principal:
    """A part of the engine that acts by itself, such as a timeout."""
    return Principal(f"headgate:{name}", name)


NOBODY = Principal("", "")
