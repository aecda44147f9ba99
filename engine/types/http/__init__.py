"""Headgate::HTTP: a resource that HTTP requests to a service create, update and delete."""

from engine.types.http.http import PERHAPS_SAME_OBJECT, SAME_OBJECT, Http
from engine.types.http.service import HttpSettings

__all__ = ["PERHAPS_SAME_OBJECT", "SAME_OBJECT", "Http", "HttpSettings"]
