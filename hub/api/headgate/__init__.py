"""Headgate's own routes, beside the Orchestration API."""

from collections.abc import Sequence
from dataclasses import replace

from hub.api.headgate import (
    audit_log,
    breakpoints,
    change_reports,
    cli_logins,
    drift,
    events,
    graph,
    hooks,
    id_prefixes,
    imports,
    monitoring,
    observation_credentials,
    oidc,
    overview,
    pins,
    quotas,
    resource_details,
    resource_signals,
    server_metadata,
    sessions,
    slack,
    stack_dependencies,
    subscriptions,
    template_schema,
    tokens,
    usage,
    versions,
)
from hub.api.query_parameters import with_checked_query
from hub.api.routes import Route

#: Their clients may send further query parameters: probes, and programs that have only a URL. Their
#: handlers refuse a request without a required one.
UNCHECKED: tuple[Route, ...] = (
    *monitoring.ROUTES,
    *resource_signals.ROUTES,
    *server_metadata.ROUTES,
    *slack.ROUTES,
    *oidc.CALLBACK_ROUTES,
)
CHECKED: tuple[Route, ...] = (
    *breakpoints.ROUTES,
    *audit_log.ROUTES,
    *subscriptions.ROUTES,
    *events.ROUTES,
    *overview.ROUTES,
    *id_prefixes.ROUTES,
    *graph.ROUTES,
    *drift.ROUTES,
    *change_reports.ROUTES,
    *stack_dependencies.ROUTES,
    *resource_details.ROUTES,
    *versions.ROUTES,
    *sessions.ROUTES,
    *oidc.ROUTES,
    *cli_logins.ROUTES,
    *tokens.ROUTES,
    *quotas.ROUTES,
    *usage.ROUTES,
    *observation_credentials.ROUTES,
    *template_schema.ROUTES,
    *imports.ROUTES,
    *pins.ROUTES,
)


def _with_checked_queries(routes: Sequence[Route]) -> tuple[Route, ...]:
    return tuple(
        replace(route, handler=with_checked_query(route.handler, route.query)) for route in routes
    )


#: Hooks, which programs list and answer all the time.
HOOK_ROUTES = _with_checked_queries(hooks.ROUTES)
ROUTES = (*UNCHECKED, *HOOK_ROUTES, *_with_checked_queries(CHECKED))
