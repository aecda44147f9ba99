"""Dry runs: the plan of a change without applying it."""
