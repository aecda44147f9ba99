"""The Orchestration API v1."""

from hub.api.orchestration import (
    actions,
    api_versions,
    events,
    previews,
    resource_types,
    resources,
    snapshots,
    software_configs,
    software_deployments,
    stack_list,
    stacks,
    template_functions,
    validation,
)

ROUTES = (
    # Before the short path of a stack, which matches them, too.
    *previews.STACK_ROUTES,
    *stack_list.ROUTES,
    *stacks.ROUTES,
    *resources.ROUTES,
    *events.ROUTES,
    *actions.ROUTES,
    *previews.ROUTES,
    *snapshots.ROUTES,
    *validation.ROUTES,
    *resource_types.ROUTES,
    *template_functions.ROUTES,
    *software_configs.ROUTES,
    *software_deployments.ROUTES,
    *api_versions.ROUTES,
)
