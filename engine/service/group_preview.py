"""What a group's type needs to compute its members for a dry run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from engine.hot.definition.stack import ResourceDefinition
from engine.hot.expressions.expression import is_static
from engine.service.prediction import Prediction, PreviewedResource
from engine.store.connection import Connection
from engine.store.nested_stacks import NestedStackName, read_members
from engine.store.stacks import find_stack
from engine.store.templates import read_template
from engine.types.contract import Call, Child, Member
from engine.words import ResourceId, StackId, TraversalState

NO_ID = UUID(int=0)


class Stack(Protocol):
    """The stack of a group."""

    @property
    def project(self) -> str: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class PreviewedChild:
    """The nested stack of a group, and the files of its version."""

    child: Child
    files: Mapping[str, str]


async def read_child(conn: Connection, project: str, nested: NestedStackName) -> PreviewedChild:
    """The nested stack without its outputs. Raises DecryptionFailed."""
    stack = await find_stack(conn, project, nested.id, "")
    stored = await read_template(conn, nested.id, stack.version if stack else 0)
    rows = await read_members(conn, nested.id)
    members = [
        Member(**asdict(row) | {"secret_attributes": row.secret_attributes or ()}) for row in rows
    ]
    child = Child(
        StackId(nested.id),
        nested.name,
        "",
        TraversalState.COMPLETE,
        "",
        members,
        template=stored.template,
        parameters=stored.parameters,
    )
    return PreviewedChild(child, stored.files)


def preview_call(
    wanted: ResourceDefinition,
    prediction: Prediction,
    resource: PreviewedResource,
    stack: Stack,
    *,
    has_secrets: bool,
) -> Call | None:
    """The argument of `ResourceType.preview_nested`; None if too little is known."""
    properties = prediction.known_parts(wanted.name)
    if properties is None or "" in properties or not is_static(wanted.update_policy):
        return None
    return Call(
        project=stack.project,
        stack_id=StackId(NO_ID),
        stack_name=stack.name,
        resource_id=ResourceId(NO_ID),
        resource_name=wanted.name,
        operation_key=NO_ID,
        now=datetime.min.replace(tzinfo=UTC),
        properties=properties,
        physical_id=resource.physical_id,
        update_policy=wanted.update_policy or {},
        referenced=prediction.referenced_parts(wanted.name),
        has_secrets=has_secrets,
    )
