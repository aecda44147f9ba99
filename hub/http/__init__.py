"""Network plumbing: listeners, connections, outbound requests, certificates."""
