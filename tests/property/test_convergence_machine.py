"""Real and desired state as a Hypothesis state machine, on the real store and a real service.

Objects of the service are deleted, changed, lose a value and are created again under another ID,
the service fails and throttles, and the template changes, in any order. The observer looks whenever
the machine says so, and its policy repairs. At the end nothing changes any more, and the observer
looks until it is quiet: then the recorded, the desired and the real state agree, and objects that
the stack does not own are as they were.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from engine.plan.convergence import PolicyRules
from engine.types.registry import TypeRegistry
from engine.work.observer.observer import Observer
from tests.property.machines import TIMES
from tests.support.changes import put
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.program import Json, Program, program

EXAMPLES, STEPS = 30 * TIMES, 15
#: More observations than any history here can need until nothing differs.
ROUNDS = 6
NAMES = "abcd"
#: What happens in the examples, each at least a few times.
OFTEN = ("deleted", "changed", "removed", "recreated", "observations")
POLICY: Json = {
    "convergence": {"observe": {"every": "10m"}, "on_drift": "repair", "repairs_per_day": 1000}
}
#: Makes all observations due, and ends the pauses of the service.
DUE = (
    "update observation_schedule set next_at = now() - interval '1s' where next_at is not null",
    "delete from provider_failure",
    "delete from failed_request",
)


class ConvergenceMachine(RuleBasedStateMachine):
    """runner, run, things, registry: of all examples; counts: what happened in them."""

    runner: ClassVar[asyncio.Runner]
    run: ClassVar[Program]
    things: ClassVar[Things]
    registry: ClassVar[TypeRegistry]
    counts: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.counts["examples"] += 1
        self.name = f"s{self.counts['examples']}"
        self.things.objects.clear()
        self.things.faults = []
        #: The desired size of each resource.
        self.sizes: dict[str, int] = {}
        #: Objects that the stack does not own.
        self.foreign: dict[str, Json] = {}

    def wait(self, coming: Any) -> Any:
        return self.runner.run(coming)

    def resources(self) -> Json:
        return {name: thing(self.things, size) for name, size in self.sizes.items()}

    @initialize(sizes=st.dictionaries(st.sampled_from(NAMES), st.integers(1, 4), min_size=1))
    def create(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.wait(self._create())

    async def _create(self) -> None:
        await self.run.create(self.name, self.resources(), environment=POLICY)
        assert await self.run.until_ended(self.name) == "CREATE_COMPLETE"

    # -- the desired state

    @rule(name=st.sampled_from(NAMES), size=st.one_of(st.none(), st.integers(1, 4)))
    def change_the_template(self, name: str, size: int | None) -> None:
        """size: None: the resource is removed."""
        wanted = {key: one for key, one in self.sizes.items() if key != name}
        if size is not None:
            wanted[name] = size
        if not wanted:
            return
        self.sizes = wanted
        self.counts["updates"] += 1
        self.wait(self._update())

    async def _update(self) -> None:
        self.things.faults = []  # an operation would wait until the service answers
        await put(self.run, self.name, self.resources(), environment=POLICY)
        status = await self.run.until_ended(self.name)
        # An update of an object that is gone fails.
        self.counts[status] += 1

    # -- the real state, behind Headgate's back

    def _owned(self, which: int) -> str | None:
        owned = sorted(set(self.things.objects) - set(self.foreign))
        return owned[which % len(owned)] if owned else None

    @rule(which=st.integers(0, 9))
    def delete_an_object(self, which: int) -> None:
        if (one := self._owned(which)) is not None:
            del self.things.objects[one]
            self.counts["deleted"] += 1

    @rule(which=st.integers(0, 9))
    def remove_a_value(self, which: int) -> None:
        if (one := self._owned(which)) is not None:
            self.things.objects[one].pop("size", None)
            self.counts["removed"] += 1

    @rule(which=st.integers(0, 9), size=st.integers(5, 9))
    def change_an_object(self, which: int, size: int) -> None:
        if (one := self._owned(which)) is not None:
            self.things.objects[one]["size"] = size
            self.counts["changed"] += 1

    @rule(which=st.integers(0, 9))
    def create_an_object_again(self, which: int) -> None:
        if (one := self._owned(which)) is not None:
            other = f"other-{one}"
            self.foreign[other] = self.things.objects.pop(one) | {"id": other}
            self.things.objects[other] = dict(self.foreign[other])
            self.counts["recreated"] += 1

    @rule(fault=st.sampled_from([[], [], [503], [429], ["{}"]]))
    def let_the_service_fail(self, fault: list[int | str]) -> None:
        self.things.faults = fault

    # -- the observer

    @rule()
    def observe(self) -> None:
        self.wait(self._observe())
        self.counts["observations"] += 1

    async def _observe(self) -> None:
        for statement in DUE:
            await self.run.database.pool.execute(statement)
        await self._observer().observe_due()
        await self.run.until_ended(self.name)

    @asynccontextmanager
    async def _observing(self) -> AsyncIterator[None]:
        """Observe as soon as an observation is requested."""

        async def keep_observing() -> None:
            while True:
                await self._observer().observe_due()
                await asyncio.sleep(0.01)

        task = asyncio.create_task(keep_observing())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _observer(self) -> Observer:
        repair = self.run.engine.repairs.start
        return Observer(self.run.database, self.registry, PolicyRules(), repair=repair)

    @invariant()
    def objects_of_others_are_left_alone(self) -> None:
        assert {one: self.things.objects.get(one) for one in self.foreign} == self.foreign

    def teardown(self) -> None:
        if self.sizes:
            self.wait(self._converge_until_quiet())

    async def _converge_until_quiet(self) -> None:
        self.things.faults = []
        for statement in DUE:
            await self.run.database.pool.execute(statement)
        if (await self.run.stack(self.name))["stack_status"].endswith("_FAILED"):
            # A repair starts only after a change that is complete.
            async with self._observing():
                await self.run.update(self.name, converge=True)
            assert await self.run.until_ended(self.name) == "UPDATE_COMPLETE"
        before = -1
        for _ in range(ROUNDS):
            await self._observe()
            changes = len(
                (await self.run.stack_request("GET", self.name, "/versions"))["traversals"]
            )
            if changes == before:
                break
            before = changes
        else:
            raise AssertionError("it is never quiet")
        assert (await self.run.stack_request("GET", self.name, "/drift"))["resources"] == []
        found = await self.run.resources(self.name)
        owned = {key: one["physical_resource_id"] for key, one in found.items()}
        real = {key: self.things.objects[one]["size"] for key, one in owned.items()}
        assert real == self.sizes
        assert set(self.things.objects) == {*owned.values(), *self.foreign}
        await self.run.stack_request("DELETE", self.name)

        while (await self.run.call("GET", f"/stacks/{self.name}"))[0] != 404:
            await asyncio.sleep(0.01)
        assert set(self.things.objects) == set(self.foreign)


@asynccontextmanager
async def opened(url: str, registries: list[TypeRegistry]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        ConvergenceMachine.things = await stack.enter_async_context(serve_things())
        ConvergenceMachine.run = await stack.enter_async_context(program(url, HTTP_SETTINGS))
        ConvergenceMachine.registry = registries[0]
        yield


def test_real_and_desired_state_agree_once_nothing_changes(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registries: list[TypeRegistry] = []

    async def keep(self: Observer, stop: asyncio.Event) -> None:
        registries.append(self.registry)
        await stop.wait()

    monkeypatch.setattr(Observer, "run", keep)  # the machine has its own
    ConvergenceMachine.counts = Counter()
    with asyncio.Runner() as runner:
        ConvergenceMachine.runner = runner
        service = opened(database_url, registries)
        runner.run(service.__aenter__())
        try:
            run_state_machine_as_test(
                ConvergenceMachine,
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=STEPS,
                    deadline=None,
                    derandomize=TIMES == 1,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(service.__aexit__(None, None, None))
    counts = ConvergenceMachine.counts
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    assert min(counts[one] for one in OFTEN) > 5
