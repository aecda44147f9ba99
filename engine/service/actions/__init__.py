"""Actions on existing stacks and resources besides create, update and delete."""
