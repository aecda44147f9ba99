"""Waiting for an event for a bounded time."""

from engine.loops import wait_at_most

__all__ = ["wait_at_most"]
