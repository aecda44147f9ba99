"""The schemas of the types of Mistral, as Heat has them, without signals of workflows."""

from typing import Final

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.openstack.neutron.lookups import custom, one_of

_IS_WORKFLOW: Final = custom("mistral.workflow")
#: What both a task and the defaults of tasks have.
_OF_TASKS: Final = {
    "on_success": Property(Kind.LIST, "Tasks that follow a task that has succeeded."),
    "on_error": Property(Kind.LIST, "Tasks that follow a task that has failed."),
    "on_complete": Property(Kind.LIST, "Tasks that follow a task that has ended."),
    "requires": Property(
        Kind.LIST, "Tasks that come before a task; in workflows of the type reverse."
    ),
    "retry": Property(Kind.MAP, "How a task that fails is repeated."),
    "wait_before": Property(Kind.INTEGER, "Seconds to wait before a task."),
    "wait_after": Property(Kind.INTEGER, "Seconds to wait after a task."),
    "pause_before": Property(Kind.BOOLEAN, "Whether the workflow pauses before a task."),
    "timeout": Property(Kind.INTEGER, "Seconds after which a task fails."),
    "concurrency": Property(
        Kind.INTEGER, "Actions of one task that run at the same time, with with_items."
    ),
}
_TASK: Final = {
    "name": Property(Kind.STRING, "Name of the task.", required=True),
    "description": Property(Kind.STRING, "Description."),
    "input": Property(Kind.MAP, "Input of the action or workflow."),
    "action": Property(Kind.STRING, "Action that the task carries out."),
    "workflow": Property(
        Kind.STRING, "Name of the workflow that the task runs.", constraints=_IS_WORKFLOW
    ),
    "publish": Property(Kind.MAP, "Variables of the workflow that the task sets."),
    "with_items": Property(Kind.STRING, "List for whose items the task is repeated."),
    "keep_result": Property(Kind.BOOLEAN, "Whether results are kept after the task."),
    "target": Property(Kind.STRING, "Executor that carries out the action."),
    "join": Property(Kind.STRING, "How many tasks before this one must have ended: all, or N."),
    **_OF_TASKS,
}

WORKFLOW_TYPE: Final = TypeSchema(
    "OS::Mistral::Workflow",
    description="A workflow: tasks in an order.",
    properties={
        "name": Property(Kind.STRING, "Name; by default derived from the stack."),
        "type": updatable(
            Kind.STRING,
            "Whether tasks name those that follow them, or those that come before.",
            required=True,
            constraints=one_of("direct", "reverse"),
        ),
        "description": updatable(Kind.STRING, "Description."),
        "tags": updatable(Kind.LIST, "Tags."),
        "input": updatable(Kind.MAP, "Input of the workflow: names with defaults."),
        "output": updatable(Kind.MAP, "Output of the workflow, with expressions."),
        "params": updatable(
            Kind.MAP, "Parameters of executions; for the type reverse, it has task_name."
        ),
        "task_defaults": updatable(Kind.MAP, "What all tasks have.", fields=_OF_TASKS),
        "use_request_body_as_input": updatable(
            Kind.BOOLEAN, "Of signals, which Headgate does not send to workflows."
        ),
        "tasks": updatable(
            Kind.LIST,
            "Tasks.",
            required=True,
            constraints=(Constraint("length", min=1),),
            items=Property(Kind.MAP, "Task.", fields=_TASK),
        ),
    },
    attributes={
        "data": Attribute(Kind.MAP, "Name and input of the workflow."),
        "executions": Attribute(Kind.LIST, "Executions of the workflow."),
    },
)

CRON_TRIGGER: Final = TypeSchema(
    "OS::Mistral::CronTrigger",
    description="Runs a workflow at certain times.",
    properties={
        "name": Property(Kind.STRING, "Name; by default derived from the stack."),
        "pattern": Property(
            Kind.STRING, "When, as an expression of cron.", constraints=custom("cron_expression")
        ),
        "workflow": Property(
            Kind.MAP,
            "What to run.",
            required=True,
            fields={
                "name": Property(
                    Kind.STRING,
                    "Name or ID of the workflow.",
                    required=True,
                    constraints=_IS_WORKFLOW,
                ),
                "input": Property(Kind.MAP, "Input of the workflow."),
            },
        ),
        "first_time": Property(Kind.STRING, "When it runs first: YYYY-MM-DD HH:MM."),
        "count": Property(Kind.INTEGER, "How often it runs; by default without an end."),
    },
    attributes={
        "next_execution_time": Attribute(Kind.STRING, "When it runs next."),
        "remaining_executions": Attribute(Kind.INTEGER, "How often it still runs."),
    },
)


def _action(when: str) -> Property:
    return Property(
        Kind.MAP,
        f"Workflow that runs {when}.",
        fields={
            "workflow": Property(
                Kind.STRING, "Name or ID of the workflow.", required=True, constraints=_IS_WORKFLOW
            ),
            "params": Property(Kind.MAP, "Parameters of the execution.", default={}),
        },
    )


EXTERNAL_RESOURCE: Final = TypeSchema(
    "OS::Mistral::ExternalResource",
    description="An object that workflows create, update and delete.",
    properties={
        "actions": Property(
            Kind.MAP,
            "The workflow of each operation; one without a workflow does nothing.",
            required=True,
            fields={
                "CREATE": _action("to create the object"),
                "UPDATE": _action("to update it"),
                "SUSPEND": _action("to suspend it"),
                "RESUME": _action("to resume it"),
                "DELETE": _action("to delete it"),
            },
        ),
        "input": updatable(Kind.MAP, "Input of the workflows.", default={}),
        "description": Property(
            Kind.STRING, "Description of the executions.", default="Heat managed"
        ),
        "replace_on_change_inputs": Property(
            Kind.LIST, "Names of the input whose change replaces the object.", default=[]
        ),
        "always_update": Property(
            Kind.BOOLEAN, "Whether each update runs the workflow.", default=False
        ),
    },
    attributes={
        "output": Attribute(Kind.MAP, "Output of all executions, the last one first."),
    },
)
