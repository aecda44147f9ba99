"""An engine without workers: what it accepts stays where it is until a test takes it up."""

import random
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

from engine.service import Engine
from engine.store.database import Database
from engine.types.contract import ResourceType
from engine.types.registry import Registry, built_in
from engine.work.retries import Retrying
from hub.program.wiring import make_limits
from hub.settings.settings import Quotas, Settings

#: Templates of ten thousand resources are accepted.
LARGE = Settings(quotas=Quotas(template_bytes=8_000_000))
NO_PAUSE = Retrying(
    limit=3, first=timedelta(seconds=1), longest=timedelta(seconds=1), random=lambda: 0.0
)


def a_registry(*types: ResourceType) -> Registry:
    return built_in(random.Random(0), *types)


def a_front(database: Database, *types: ResourceType, new_id: Callable[[], UUID] = uuid4) -> Engine:
    return Engine(database, a_registry(*types), make_limits(LARGE), new_id=new_id)
