"""Templates that import existing resources."""
