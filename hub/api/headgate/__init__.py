"""Headgate's own routes, beside the Orchestration API."""

from hub.api.headgate import graph, health, history, hooks, stream, subscriptions

ROUTES = (
    *health.ROUTES,
    *hooks.ROUTES,
    *subscriptions.ROUTES,
    *stream.ROUTES,
    *graph.ROUTES,
    *history.ROUTES,
)
