"""The schema of OS::Heat::Stack."""

from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.credentials import CONSTRAINT as CREDENTIAL
from engine.types.remote_stack.endpoints import CONSTRAINT as REGION

SCHEMA = TypeSchema(
    "OS::Heat::Stack",
    description="A stack of another Headgate or Heat server.",
    properties={
        "context": Property(
            Kind.MAP,
            "Endpoint and credential.",
            update_allowed=True,
            fields={
                "region_name": Property(
                    Kind.STRING,
                    "Name of a configured endpoint; a change replaces the resource.",
                    constraints=(Constraint("custom_constraint", name=REGION),),
                ),
                "credential_secret_id": Property(
                    Kind.STRING,
                    "Name of a credential that the operator configures.",
                    update_allowed=True,
                    constraints=(Constraint("custom_constraint", name=CREDENTIAL),),
                ),
                "ca_cert": Property(
                    Kind.STRING, "CA certificate in PEM form.", update_allowed=True
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
            "Timeout of the remote stack in minutes.",
            update_allowed=True,
            constraints=(Constraint("range", min=1, max=525_600),),
        ),
        "parameters": Property(Kind.MAP, "Its parameters.", default={}, update_allowed=True),
    },
    attributes={
        "stack_name": Attribute(Kind.STRING, "Name of the remote stack."),
        "outputs": Attribute(Kind.MAP, "Outputs of the remote stack, by name."),
    },
    snapshots=True,
)
