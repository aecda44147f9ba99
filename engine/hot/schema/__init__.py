"""Schemas of resource types, properties and parameters, and checks of values against them."""
