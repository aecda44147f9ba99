"""Evaluation of conditions and functions, at definition and after operations."""
