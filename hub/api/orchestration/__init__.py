"""The Orchestration API v1, a file for each noun."""

from hub.api.orchestration import (
    events,
    resources,
    stack_parts,
    stacks,
    unavailable,
    validation,
    versions,
)

ROUTES = (
    *stacks.ROUTES,
    *stack_parts.ROUTES,
    *resources.ROUTES,
    *events.ROUTES,
    *validation.ROUTES,
    *versions.ROUTES,
    *unavailable.ROUTES,
)
