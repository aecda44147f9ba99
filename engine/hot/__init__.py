"""The template language: reading, checking and resolving templates and environments. Pure."""
