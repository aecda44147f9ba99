"""Text to documents: YAML, JSON and glob patterns."""
