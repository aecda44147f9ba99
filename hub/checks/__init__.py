"""Checks of an installation: doctor, backup check."""
