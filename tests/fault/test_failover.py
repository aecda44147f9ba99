"""The primary of a replicated database is lost, and its replica is promoted under load.

`make test-failover` does more, with three servers that Patroni manages.
"""

from tests.fault.failover_load import FailoverLoad, running_servers
from tests.support.replication import running_pair


async def test_a_failover_with_synchronous_replication_loses_nothing() -> None:
    """The primary is still running, but drops all packets."""
    async with running_pair(synchronous=True) as pair, running_servers(pair.url) as load:
        await load.begin()
        pair.first.relay.silence()
        status, headers = await load.until_refused()
        assert (status, int(headers["Retry-After"]) > 0) == (503, True)
        await pair.second.promote()
        seconds = await load.until_next_create()
        await load.end()
        print(f"{seconds:.1f} s until the next 201; {load}")
        assert load.problems == []
        assert load.held == load.answered > 0


def test_the_load_counts_lost_and_doubled_stacks() -> None:
    load = FailoverLoad.__new__(FailoverLoad)
    load.created, load.problems = {"a", "b"}, []
    load.compare(["a", "a"])
    assert load.problems == ["b was created and is gone", "a exists 2 times"]
