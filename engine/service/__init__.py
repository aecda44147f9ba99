"""The interface of the engine for hub."""

from engine.service.engine import Engine
from engine.service.requests.blueprint import Limits
from engine.service.requests.requests import Answer, Move, Output, StackRequest, StackView

__all__ = ["Answer", "Engine", "Limits", "Move", "Output", "StackRequest", "StackView"]
