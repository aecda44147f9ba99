"""Read-only views of stacks, resources, graphs and the audit log."""
