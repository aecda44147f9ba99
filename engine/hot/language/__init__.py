"""Versions of the template language and their dialects (HOT and CFN)."""
