"""Libraries that take long to load, and that help needs nothing of.

`libraries.asyncio` loads asyncio when a command runs. `import asyncio` at the beginning of a module
would load it for each help page as well.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio as asyncio

LIBRARIES = ("asyncio",)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in LIBRARIES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(name)
