"""Listeners, connections, outbound requests and certificates."""
