"""Headgate's own routes, beside the Orchestration API."""

from hub.api.headgate import (
    breakpoints,
    graph,
    health,
    history,
    hooks,
    metrics,
    pins,
    quotas,
    schemas,
    server_metadata,
    sessions,
    signals,
    stream,
    subscriptions,
    tokens,
    trail,
)

ROUTES = (
    *health.ROUTES,
    *metrics.ROUTES,
    *hooks.ROUTES,
    *breakpoints.ROUTES,
    *trail.ROUTES,
    *subscriptions.ROUTES,
    *stream.ROUTES,
    *schemas.ROUTES,
    *graph.ROUTES,
    *history.ROUTES,
    *sessions.ROUTES,
    *tokens.ROUTES,
    *quotas.ROUTES,
    *pins.ROUTES,
    *signals.ROUTES,
    *server_metadata.ROUTES,
)
