"""The table of what is open: limits for all processes, and columns of processes that have ended."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from hub.api.client_limits import OpenCount
from hub.auth.shared_counts import SET
from hub.auth.shared_open_counts import ProcessCounts, SharedOpenCounts

LIMIT = 3


def column(table: SharedOpenCounts, pid: int, running: set[int]) -> ProcessCounts:
    added = table.add_process(pid, running.__contains__)
    assert added is not None
    return added


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([1, 2, 3]), st.integers(0, 2))))
def test_all_processes_count_within_one_limit(events: list[tuple[str, int, int]]) -> None:
    """Events: one is opened, one is closed, or the process is killed and started again."""
    table = SharedOpenCounts(processes=3, rows=SET)
    running = {1, 2, 3}
    columns = {pid: column(table, pid, running) for pid in running}
    model: Counter[tuple[str, int]] = Counter()
    for client, pid, event in events:
        if event == 0:
            total = sum(number for (one, _), number in model.items() if one == client)
            assert columns[pid].enter(client, LIMIT) == (total < LIMIT)
            model[client, pid] += total < LIMIT
        elif event == 1 and model[client, pid]:
            columns[pid].leave(client)
            model[client, pid] -= 1
        elif event == 2:
            columns[pid] = column(table, pid + 10, running - {pid} | {pid + 10})
            columns[pid] = column(table, pid, running)
            model = Counter({key: number for key, number in model.items() if key[1] != pid})


def test_a_process_keeps_its_column() -> None:
    table = SharedOpenCounts(processes=2)
    first = column(table, 1, {1})
    assert first.enter("a", 1)
    assert column(table, 1, {1}) == first
    assert not column(table, 2, {1, 2}).enter("a", 1)
    assert table.add_process(3, {1, 2}.__contains__) is None
    assert column(table, 3, {2}).enter("a", 1)


def test_without_a_limit_all_are_counted() -> None:
    one = column(SharedOpenCounts(), 1, {1})
    assert all(one.enter("many", 0) for _ in range(100))
    assert not one.enter("many", 100)


def test_a_client_without_a_row_counts_in_its_process_alone() -> None:
    """And leaves the rows of the others as they are."""
    table = SharedOpenCounts(processes=2, rows=SET)
    first, second = (
        OpenCount(1, "streams", "streams_per_user", column(table, pid, {1, 2})) for pid in (1, 2)
    )
    clients = [str(number) for number in range(SET)]
    assert all(first.enter(client) for client in clients)
    assert not any(second.enter(client) for client in clients)
    assert first.enter("other") and not first.enter("other")
    assert second.enter("other") and not second.enter("other")
    first.leave("other")
    assert first.enter("other") and not second.enter("other")
    assert not any(second.enter(client) for client in clients)
    first.leave(clients[0])
    assert second.enter(clients[0]) and not first.enter(clients[0])
