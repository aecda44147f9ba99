"""The Orchestration API v1, a file for each noun."""

from hub.api.orchestration import (
    actions,
    events,
    exports,
    previews,
    resource_types,
    resources,
    snapshots,
    software_configs,
    software_deployments,
    stack_list,
    stack_parts,
    stacks,
    template_versions,
    validation,
    versions,
)

ROUTES = (
    # Before the short path of a stack, which would match these, too.
    *previews.STACK_ROUTES,
    *stack_list.ROUTES,
    *stacks.ROUTES,
    *stack_parts.ROUTES,
    *resources.ROUTES,
    *events.ROUTES,
    *actions.ROUTES,
    *previews.ROUTES,
    *snapshots.ROUTES,
    *exports.ROUTES,
    *validation.ROUTES,
    *resource_types.ROUTES,
    *template_versions.ROUTES,
    *software_configs.ROUTES,
    *software_deployments.ROUTES,
    *versions.ROUTES,
)
