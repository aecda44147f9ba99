"""The event stream: server-sent events with resume."""
