"""Stack definitions: a template with its environment and parameters, checked."""
