"""The schemas of the types of Zaqar, as Heat has them."""

from typing import Final

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.openstack.neutron.lookups import between, custom, one_of
from engine.types.openstack.zaqar.queue_names import MAX_NAME

#: Seconds until the year 9000, the default of Heat.
NEVER: Final = 220_367_260_800

QUEUE: Final = TypeSchema(
    "OS::Zaqar::Queue",
    description="A queue of messages.",
    properties={
        "name": Property(
            Kind.STRING,
            "Name; by default derived from the stack.",
            constraints=(Constraint("length", max=MAX_NAME),),
        ),
        "metadata": updatable(
            Kind.MAP, "Facts about the queue. Names that begin with _ are settings of Zaqar."
        ),
    },
    attributes={"href": Attribute(Kind.ANY, "URL of the queue.", public=True)},
)

_QUEUE_NAME: Final = Property(
    Kind.STRING, "Name of the queue.", required=True, constraints=custom("zaqar.queue")
)
_LIFETIME: Final = updatable(
    Kind.INTEGER,
    "Seconds until Zaqar deletes the subscription.",
    default=NEVER,
    constraints=between(60),
)

SUBSCRIPTION: Final = TypeSchema(
    "OS::Zaqar::Subscription",
    description="A subscriber that gets each message of a queue.",
    properties={
        "queue_name": _QUEUE_NAME,
        "subscriber": updatable(
            Kind.STRING,
            "URI that gets the messages, of the scheme http, https, mailto, trust+http or "
            "trust+https.",
            required=True,
        ),
        "ttl": _LIFETIME,
        "options": updatable(Kind.MAP, "How the subscriber gets the messages."),
    },
    attributes={},
)

MISTRAL_TRIGGER: Final = TypeSchema(
    "OS::Zaqar::MistralTrigger",
    description="Runs a workflow for each message of a queue.",
    properties={
        "queue_name": _QUEUE_NAME,
        "ttl": _LIFETIME,
        "workflow_id": updatable(
            Kind.STRING,
            "ID of the workflow.",
            required=True,
            constraints=custom("mistral.workflow"),
        ),
        "params": updatable(
            Kind.MAP,
            "Parameters of the executions. Their environment has the message as `notification`.",
            default={},
        ),
        "input": updatable(Kind.MAP, "Input of the workflow.", default={}),
    },
    attributes={},
)

SIGNED_URL: Final = TypeSchema(
    "OS::Zaqar::SignedQueueURL",
    description="A signature with which a client without a token uses a queue.",
    properties={
        "queue": Property(Kind.STRING, "Name of the queue.", required=True),
        "paths": Property(
            Kind.LIST, "What the signature allows to use, such as messages; by default that."
        ),
        "ttl": Property(Kind.INTEGER, "Seconds for which it is valid; by default one day."),
        "methods": Property(
            Kind.LIST,
            "HTTP methods that it allows; by default GET.",
            items=Property(
                Kind.STRING,
                "HTTP method.",
                constraints=one_of("GET", "DELETE", "PATCH", "POST", "PUT"),
            ),
        ),
    },
    attributes={
        "signature": Attribute(Kind.ANY, "Signature.", secret=True),
        "expires": Attribute(Kind.ANY, "When it ends.", public=True),
        "paths": Attribute(Kind.ANY, "Paths that it allows to use.", public=True),
        "methods": Attribute(Kind.ANY, "HTTP methods that it allows.", public=True),
        "project": Attribute(Kind.ANY, "ID of the queue's project.", public=True),
        "query_str": Attribute(
            Kind.ANY,
            "All of these as the query of a URL, such as zaqar://?QUERY.",
            secret=True,
        ),
    },
)
