"""Patroni replaces the primary under load: nothing acknowledged is lost or doubled.

`make test-failover` runs these tests; `make test` does not, because they take minutes.
"""

import time
from collections.abc import Awaitable, Callable

import pytest

from tests.fault.failover_load import running_servers
from tests.support.patroni import PatroniCluster, PatroniNode, running_patroni

Fault = Callable[[PatroniCluster, PatroniNode], Awaitable[None]]


async def _kill(_: PatroniCluster, primary: PatroniNode) -> None:
    primary.kill()


async def _partition(_: PatroniCluster, primary: PatroniNode) -> None:
    """Its clients, its replicas and etcd get no packets from it."""
    primary.isolate()


async def _switch_over(cluster: PatroniCluster, primary: PatroniNode) -> None:
    await cluster.switch_over(primary)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("replace", [_switch_over, _kill, _partition])
async def test_nothing_acknowledged_is_lost_or_doubled(replace: Fault) -> None:
    async with running_patroni() as cluster:
        former = await cluster.primary()
        async with running_servers(cluster.url) as load:
            await load.begin()
            began = time.monotonic()
            await replace(cluster, former)
            await cluster.next_primary(former)
            await load.until_next_create()
            seconds = load.longest_pause(since=began)
            former.rejoin()
            assert await cluster.primary() is not former
            await load.end()
            print(f"{replace.__name__}: {seconds:.1f} s without a 201; {load}")
            assert load.problems == []
            assert load.held == load.answered > 0
