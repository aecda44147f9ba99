"""The types of resources as their templates write them, before the environment maps them.

The row of a resource has the type that the environment led to. The API shows the written one, as
Heat does, and the other beside it.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from engine.errors import Invalid
from engine.hot.environment.environment import parse_environment
from engine.hot.environment.registry import CircularAlias, ResolvedType, ResourceRegistry
from engine.hot.syntax.keyed_names import base_name, possible_names
from engine.service.requests.blueprint import Limits
from engine.store.connection import Connection
from engine.store.stacks.templates import StackTypes, read_written_types
from engine.types.registry import TypeRegistry as Types


class WrittenTypes:
    """Written types of the stacks whose environment maps any.

    by_stack: stack -> resource -> resolved type -> written type. It has only types that differ.
    """

    __slots__ = ("by_stack",)

    def __init__(self, by_stack: Mapping[UUID, Mapping[str, Mapping[str, str]]]) -> None:
        self.by_stack = by_stack

    def find(self, stack_id: UUID, name: str, resolved: str) -> str:
        """The written type; the resolved one if the resource's current template writes it, or if it
        does not lead there any more."""
        stack = self.by_stack.get(stack_id, {})
        known = stack.get(name) or stack.get(base_name(name) or name) or {}
        return known.get(resolved, resolved)


async def written_types(
    conn: Connection, stacks: Sequence[UUID], limits: Limits, types: Types, name: str | None = None
) -> WrittenTypes:
    """Read the written types of stacks. name: only of this resource; of one with `for_each`, of
    all, because the template has it without its key."""
    operator = limits.environment.registry
    written_name = None if name is None or base_name(name) else name
    found = await read_written_types(
        conn, stacks, written_name, always=bool(operator.mapped or operator.by_resource)
    )
    return WrittenTypes({one.stack_id: _differing(one, operator, types) for one in found})


def _differing(
    stack: StackTypes, operator: ResourceRegistry, types: Types
) -> dict[str, dict[str, str]]:
    try:
        document = {"resource_registry": stack.registry} if stack.registry else {}
        registry = parse_environment(document, operator).registry
    except Invalid:  # an earlier version accepted it
        return {}
    installed = types.schemas()
    cache: dict[str, ResolvedType | None] = {}
    differing: dict[str, dict[str, str]] = {}
    keyed = {
        name: stack.types[base]
        for entry in registry.by_resource
        for name in possible_names(entry)
        if (base := base_name(name) or name) != name and base in stack.types
    }
    for name, written in {**stack.types, **keyed}.items():
        own = registry.own_name(name)
        try:
            if own is not None or written not in cache:
                found = registry.find(written, own or name, installed)
            else:
                found = cache[written]
        except CircularAlias:
            found = None
        if own is None:
            cache[written] = found
        if found is not None and found.type != written:
            differing[name] = {found.type: written}
    return differing
