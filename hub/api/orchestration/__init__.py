"""The Orchestration API v1, a file for each noun."""

from hub.api.orchestration import events, resources, stack_parts, stacks, versions

ROUTES = (
    *stacks.ROUTES,
    *stack_parts.ROUTES,
    *resources.ROUTES,
    *events.ROUTES,
    *versions.ROUTES,
)
