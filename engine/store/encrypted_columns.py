"""The tables with encrypted columns: keys of their rows, and the scopes of their values."""

from typing import NamedTuple


class Key(NamedTuple):
    """A column of a primary key."""

    name: str
    type: str = "uuid"

    @property
    def lowest(self) -> str:
        """Below every value that there is."""
        return "'00000000-0000-0000-0000-000000000000'" if self.type == "uuid" else "-1"


class EncryptedTable(NamedTuple):
    """keys: the primary key; the first names the owner, which is a stack where of_stack. columns:
    jsonb. sealed: bytea."""

    name: str
    keys: tuple[Key, ...]
    columns: tuple[str, ...]
    sealed: tuple[str, ...] = ()
    of_stack: bool = True


_STACK, _ID = Key("stack_id"), Key("id")
TABLES = (
    EncryptedTable("template", (_STACK, Key("version", "integer")),
                   ("environment", "files", "parameters", "outputs")),
    EncryptedTable("node", (_STACK, Key("traversal", "integer"), Key("id", "integer")),
                   ("definition", "progress", "patched")),
    EncryptedTable("resource", (_STACK, _ID),
                   ("reference", "properties", "attributes", "data", "metadata")),
    EncryptedTable("resource_snapshot",
                   (_STACK, Key("traversal", "integer"), Key("resource_id")),
                   ("properties", "metadata", "data")),
    EncryptedTable("credential", (_STACK, Key("traversal", "integer")), (), ("sealed",)),
    EncryptedTable("subscription", (_ID,), ("secrets",), of_stack=False),
    EncryptedTable("software_config", (_ID,), ("config", "inputs", "outputs", "options"),
                   of_stack=False),
    EncryptedTable("software_deployment", (_ID,), ("input_values", "output_values"),
                   of_stack=False),
)  # fmt: skip
