"""OS::Heat::Stack as data: its properties and attributes."""

from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.credentials import CONSTRAINT as CREDENTIAL
from engine.types.remote_stack.endpoints import CONSTRAINT as REGION

SCHEMA = TypeSchema(
    "OS::Heat::Stack",
    description="A stack at another endpoint of the Orchestration API.",
    properties={
        "context": Property(
            Kind.MAP,
            "Where, and as whom.",
            update_allowed=True,
            fields={
                "region_name": Property(
                    Kind.STRING,
                    "Name of an endpoint of the operator's; another one replaces.",
                    constraints=(Constraint("custom_constraint", name=REGION),),
                ),
                "credential_secret_id": Property(
                    Kind.STRING,
                    "Name of a credential of the operator's.",
                    update_allowed=True,
                    constraints=(Constraint("custom_constraint", name=CREDENTIAL),),
                ),
                "ca_cert": Property(
                    Kind.STRING, "An authority to trust, as PEM text.", update_allowed=True
                ),
                "insecure": Property(
                    Kind.BOOLEAN,
                    "Skip the verification of the TLS certificate.",
                    default=False,
                    update_allowed=True,
                ),
            },
        ),
        "template": Property(
            Kind.STRING, "The template, as text.", required=True, update_allowed=True
        ),
        "timeout": Property(
            Kind.INTEGER,
            "Minutes that the other side may work on it.",
            update_allowed=True,
            constraints=(Constraint("range", min=1, max=525_600),),
        ),
        "parameters": Property(Kind.MAP, "Its parameters.", default={}, update_allowed=True),
    },
    attributes={
        "stack_name": Attribute(Kind.STRING, "Its name over there."),
        "outputs": Attribute(Kind.MAP, "What it puts out, by name."),
    },
    snapshots=True,
)
