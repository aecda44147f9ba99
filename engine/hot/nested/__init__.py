"""Templates as resource types (providers), and members of groups."""
