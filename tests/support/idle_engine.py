"""An engine without workers: the work that it accepts stays until a test claims it."""

import random
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

from engine.service import Engine
from engine.store.database import Database
from engine.types.contract import ResourceType
from engine.types.registry import TypeRegistry, built_in
from engine.work.nodes.operation_call import OperationRetries
from hub.program.wiring import make_limits
from hub.settings.settings import QuotasSection, Settings

#: Accepts templates of ten thousand resources.
LARGE = Settings(quotas=QuotasSection(template_bytes=8_000_000))
NO_BACK_OFF = OperationRetries(
    limit=3, first=timedelta(seconds=1), max_pause=timedelta(seconds=1), random=lambda: 0.0
)


def make_registry(*types: ResourceType) -> TypeRegistry:
    return built_in(random.Random(0), *types)


def idle_engine(
    database: Database, *types: ResourceType, new_id: Callable[[], UUID] = uuid4
) -> Engine:
    return Engine(database, make_registry(*types), make_limits(LARGE), new_id=new_id)
