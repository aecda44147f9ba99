"""The schemas of the types of Keystone, as in Heat 27."""

from typing import Final

from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)


def _custom(constraint: str) -> tuple[Constraint, ...]:
    return (Constraint("custom_constraint", name=constraint),)


def _name_of(what: str) -> Property:
    return updatable(Kind.STRING, f"Name of the {what}; the default is derived from the stack.")


_DOMAIN: Final = updatable(
    Kind.STRING,
    "Name or ID of the domain. A change replaces the object.",
    default="default",
    constraints=_custom("keystone.domain"),
)
_DESCRIPTION: Final = updatable(Kind.STRING, "Description.", default="")
_NULLABLE_DESCRIPTION: Final = updatable(Kind.STRING, "Description.")
_ENABLED: Final = updatable(Kind.BOOLEAN, "Whether it is enabled.", default=True)
ROLES: Final = updatable(
    Kind.LIST,
    "Roles, each in a project or in a domain.",
    items=Property(
        Kind.MAP,
        fields={
            "role": Property(
                Kind.STRING,
                "Name or ID of the role.",
                required=True,
                constraints=_custom("keystone.role"),
            ),
            "project": Property(
                Kind.STRING, "Name or ID of the project.", constraints=_custom("keystone.project")
            ),
            "domain": Property(
                Kind.STRING, "Name or ID of the domain.", constraints=_custom("keystone.domain")
            ),
        },
    ),
)

PROJECT: Final = TypeSchema(
    "OS::Keystone::Project",
    description="A project.",
    properties={
        "name": _name_of("project"),
        "domain": _DOMAIN,
        "description": _DESCRIPTION,
        "enabled": _ENABLED,
        "parent": Property(
            Kind.STRING,
            "Name or ID of the parent project.",
            constraints=_custom("keystone.project"),
        ),
        "tags": updatable(Kind.LIST, "Tags; they replace all others.", default=[]),
    },
    attributes={
        "name": Attribute(Kind.STRING, "Name."),
        "parent_id": Attribute(Kind.STRING, "ID of the parent project."),
        "domain_id": Attribute(Kind.STRING, "ID of the domain."),
        "enabled": Attribute(Kind.BOOLEAN, "Whether it is enabled."),
        "is_domain": Attribute(Kind.BOOLEAN, "Whether the project is a domain, too."),
    },
)
USER: Final = TypeSchema(
    "OS::Keystone::User",
    description="A user, with groups and roles.",
    properties={
        "name": _name_of("user"),
        "domain": _DOMAIN,
        "description": _DESCRIPTION,
        "enabled": _ENABLED,
        "email": updatable(Kind.STRING, "E-mail address."),
        "password": updatable(Kind.STRING, "Password.", hidden=True),
        "default_project": updatable(
            Kind.STRING,
            "Name or ID of the default project.",
            constraints=_custom("keystone.project"),
        ),
        "groups": updatable(
            Kind.LIST,
            "Names or IDs of the groups that the user belongs to.",
            items=Property(Kind.STRING, constraints=_custom("keystone.group")),
        ),
        "roles": ROLES,
    },
    attributes={
        "name": Attribute(Kind.STRING, "Name."),
        "default_project_id": Attribute(Kind.STRING, "ID of the default project.", public=True),
        "domain_id": Attribute(Kind.STRING, "ID of the domain.", public=True),
        "enabled": Attribute(Kind.BOOLEAN, "Whether it is enabled.", public=True),
        "password_expires_at": Attribute(Kind.STRING, "When the password expires.", public=True),
    },
)
GROUP: Final = TypeSchema(
    "OS::Keystone::Group",
    description="A group of users, with roles.",
    properties={
        "name": _name_of("group"),
        "domain": _DOMAIN,
        "description": _DESCRIPTION,
        "roles": ROLES,
    },
)
ROLE: Final = TypeSchema(
    "OS::Keystone::Role",
    description="A role, of the cloud or of a domain.",
    properties={
        "name": _name_of("role"),
        "domain": Property(
            Kind.STRING, "Name or ID of the domain.", constraints=_custom("keystone.domain")
        ),
    },
)
DOMAIN: Final = TypeSchema(
    "OS::Keystone::Domain",
    description="A domain. Its delete deletes everything in the domain.",
    properties={
        "name": _name_of("domain"),
        "description": _NULLABLE_DESCRIPTION,
        "enabled": _ENABLED,
    },
)
REGION: Final = TypeSchema(
    "OS::Keystone::Region",
    description="A region of the service catalog.",
    properties={
        "id": Property(Kind.STRING, "ID of the region; the default is derived from the stack."),
        "parent_region": updatable(
            Kind.STRING, "ID of the parent region.", constraints=_custom("keystone.region")
        ),
        "description": _NULLABLE_DESCRIPTION,
        "enabled": _ENABLED,
    },
)
SERVICE: Final = TypeSchema(
    "OS::Keystone::Service",
    description="A service of the service catalog.",
    properties={
        "name": _name_of("service"),
        "description": _NULLABLE_DESCRIPTION,
        "type": updatable(Kind.STRING, "Type, such as compute.", required=True),
        "enabled": _ENABLED,
    },
)
ENDPOINT: Final = TypeSchema(
    "OS::Keystone::Endpoint",
    description="A URL of a service.",
    properties={
        "name": _name_of("endpoint"),
        "region": updatable(
            Kind.STRING, "ID of the region.", constraints=_custom("keystone.region")
        ),
        "service": updatable(
            Kind.STRING,
            "Name or ID of the service.",
            required=True,
            constraints=_custom("keystone.service"),
        ),
        "interface": updatable(
            Kind.STRING,
            "Who uses the URL.",
            required=True,
            constraints=(Constraint("allowed_values", allowed=("public", "internal", "admin")),),
        ),
        "url": updatable(Kind.STRING, "URL.", required=True),
        "enabled": _ENABLED,
    },
)
USER_ROLE_ASSIGNMENT: Final = TypeSchema(
    "OS::Keystone::UserRoleAssignment",
    description="Roles of a user.",
    properties={
        "user": updatable(
            Kind.STRING,
            "Name or ID of the user.",
            required=True,
            constraints=_custom("keystone.user"),
        ),
        "roles": ROLES,
    },
)
GROUP_ROLE_ASSIGNMENT: Final = TypeSchema(
    "OS::Keystone::GroupRoleAssignment",
    description="Roles of a group.",
    properties={
        "group": updatable(
            Kind.STRING,
            "Name or ID of the group.",
            required=True,
            constraints=_custom("keystone.group"),
        ),
        "roles": ROLES,
    },
)
