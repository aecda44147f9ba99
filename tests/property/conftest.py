"""Loads the settings of hypothesis."""

from tests.support import hypothesis_profile as hypothesis_profile
