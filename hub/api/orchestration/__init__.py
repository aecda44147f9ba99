"""The Orchestration API v1, a file for each noun."""

from hub.api.orchestration import (
    actions,
    events,
    exports,
    previews,
    resources,
    snapshots,
    stack_parts,
    stacks,
    validation,
    versions,
)

ROUTES = (
    *previews.STACK_ROUTES,
    *stacks.ROUTES,
    *stack_parts.ROUTES,
    *resources.ROUTES,
    *events.ROUTES,
    *actions.ROUTES,
    *previews.ROUTES,
    *snapshots.ROUTES,
    *exports.ROUTES,
    *validation.ROUTES,
    *versions.ROUTES,
)
