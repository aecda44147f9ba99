"""How hypothesis state machines on the real store are run."""

import asyncio
import os
from collections import Counter
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from engine.store.database import Database, open_database
from tests.support.keys import KEYRING

#: A longer hunt: HEADGATE_STATEFUL=20 makes twenty times as many examples.
TIMES = int(os.environ.get("HEADGATE_STATEFUL", "1"))


class StoreMachine(RuleBasedStateMachine):
    """runner, database: of all examples; counts: what happened in them."""

    runner: ClassVar[asyncio.Runner]
    database: ClassVar[Database]
    counts: ClassVar[Counter[str]]

    def wait(self, coming: Any) -> Any:
        return self.runner.run(coming)


def run_machine(machine: type[StoreMachine], url: str, *, examples: int, steps: int) -> None:
    """Run it on an empty database, always in the same way unless the hunt is a longer one."""
    with asyncio.Runner() as runner:
        machine.runner = runner
        machine.database = runner.run(open_database(url, size=4, keyring=KEYRING))
        machine.counts = Counter()
        try:
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=examples,
                    stateful_step_count=steps,
                    deadline=None,
                    derandomize=TIMES == 1,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(machine.database.close())
    print(", ".join(f"{count} {what}" for what, count in sorted(machine.counts.items())))
