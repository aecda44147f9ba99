"""Errors in templates, environments and parameters."""

from engine.errors import Invalid
from hub.error_types.error_type import ErrorType

TYPES = (
    ErrorType(
        "StackValidationFailed", Invalid,
        "The template, the environment or a parameter is not valid. `error.findings` lists all"
        " errors, with file, line and column.",
        "Correct them. [Check templates](../how-to/check-templates.md) in your editor to see errors"
        " while you type.",
        "resources.web.properties", "Unknown Property lenght", 'Did you mean "length"?',
        as_heat=True,
    ),
    ErrorType(
        "InvalidTemplateVersion", Invalid,
        "`heat_template_version` is missing or unknown.",
        "Use one of the versions that the remedy lists.",
        "", "The template version is invalid: Template version was not provided",
        'Begin with "heat_template_version: 2021-04-16".', as_heat=True,
    ),
    ErrorType(
        "InvalidTemplateReference", Invalid,
        "`depends_on` or a reference names a resource that the template does not have.",
        "Correct the name. The remedy suggests a similar one.",
        "resources.web.depends_on", 'The specified reference "netwrok" (in web) is incorrect.',
        'Did you mean "network"?', as_heat=True,
    ),
    ErrorType(
        "CircularDependencyException", Invalid,
        "Resources depend on each other in a circle, which the message shows. The status is 409 if"
        " two stacks would read outputs of each other.",
        "Remove one of the references.",
        "", "Circular Dependency Found: web -> db -> web",
        "Remove one of these references: depends_on, get_resource or get_attr.", as_heat=True,
    ),
    ErrorType(
        "UserParameterMissing", Invalid,
        "A parameter without a default has no value.",
        "Give it a value with `-P NAME=VALUE` or in an environment.",
        "", "The Parameter (size) was not provided.",
        "Give it a value, or a default in the template.", as_heat=True,
    ),
    ErrorType(
        "UnknownUserParameter", Invalid,
        "A value is given for a parameter that the template does not declare.",
        "Correct the name, or leave the value out.",
        "", "The Parameter (siez) was not defined in template.", 'Did you mean "size"?',
        as_heat=True,
    ),
    ErrorType(
        "ImmutableParameterModified", Invalid,
        "The update changes a parameter that the template declares as `immutable`.",
        "Leave its value as it is, or create a new stack.",
        "", "The following parameters are immutable and may not be updated: network",
        "Leave their values as they are, or create a new stack.", as_heat=True,
    ),
    ErrorType(
        "InvalidSchemaError", Invalid,
        "The declaration of a parameter is not valid, for example because its default violates one"
        " of its constraints.",
        "Correct the declaration.",
        "parameters.size.default", "Parameter 'size' is invalid: Invalid default 50 (50 is out of"
        " range (min: 1, max: 10))",
        "", as_heat=True,
    ),
    ErrorType(
        "ConditionFailed", Invalid,
        "A rule, a precondition or a postcondition of the template is not met. Its own message"
        " gives the reason.",
        "Change the values that the condition reads.",
        "resources.db.preconditions.0", "precondition failed: a production database has a replica",
        "", as_heat=True,
    ),
    ErrorType(
        "ConflictingMergeStrategyForParam", Invalid,
        "Two environment files name different merge strategies for one parameter.",
        "Name the same strategy in all files.",
        "parameter_merge_strategies.zones",
        "Conflicting merge strategy 'overwrite' for parameter 'zones' in file 'prod.yaml'.",
        "The first file that has it merges it by merge; name one strategy in all.", as_heat=True,
    ),
    ErrorType(
        "InvalidMergeStrategyForParam", Invalid,
        "The merge strategy does not fit the type of the parameter.",
        "Use the strategy that the remedy names.",
        "parameter_merge_strategies.size", "Invalid merge strategy 'merge' for parameter 'size'.",
        "A number can only be replaced: use overwrite.", as_heat=True,
    ),
    ErrorType(
        "InvalidRestrictedAction", Invalid,
        "`restricted_actions` contains a word that is neither `update` nor `replace`.",
        "Correct the word.",
        "resource_registry.resources.db.restricted_actions",
        'Invalid restricted_action type "delete" for resource, acceptable restricted_action types'
        " are: ('update', 'replace')",
        "Known: update, replace.", as_heat=True,
    ),
    ErrorType(
        "InvalidTarget", Invalid,
        "Headgate may not connect to the address of a subscription, template or file. Private and"
        " loopback addresses need the permission of the operator.",
        "Correct the address, or ask the operator to permit it, for example in `[channels.webhook]"
        " allow`.",
        "target", "contains a user or password",
        "Remove it: targets are visible to readers.",
    ),
)  # fmt: skip
