"""The interface of the engine for hub."""

from engine.hooks.answers import Answer
from engine.service.engine import Engine
from engine.service.requests.blueprint import Limits
from engine.service.requests.requests import Move, Output, StackRequest, StackValues, check_tags

__all__ = [
    "Answer",
    "Engine",
    "Limits",
    "Move",
    "Output",
    "StackRequest",
    "StackValues",
    "check_tags",
]
