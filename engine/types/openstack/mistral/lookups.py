"""The workflows that templates name, and the constraint on such names."""

from typing import Final

from engine.types.openstack.cloud import Cloud
from engine.types.openstack.names import ID, Lookup, ObjectConstraint
from engine.types.openstack.services import WORKFLOW
from engine.words import Json

WORKFLOWS: Final = Lookup("workflow", WORKFLOW, "/workflows", "workflows")


def workflow_constraint(cloud: Cloud) -> ObjectConstraint:
    return ObjectConstraint("mistral.workflow", WORKFLOWS, cloud)


def workflow_fields(value: Json) -> dict[str, str]:
    """The field of a request that refers to a workflow by its ID or name."""
    text = str(value)
    return {"workflow_id" if ID.fullmatch(text) else "workflow_name": text}
