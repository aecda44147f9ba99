"""Arbitrary orders of costly requests."""

from hypothesis import given
from hypothesis import strategies as st

from engine.fair_queue import FairQueue
from tests.unit.hub.api.test_costly_requests import Job

NAMES = st.sampled_from("abc")


@given(st.lists(st.tuples(NAMES, NAMES)), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_every_job_runs_once_and_within_the_bounds(
    jobs: list[tuple[str, str]], places: int, per_project: int, per_user: int
) -> None:
    queue: FairQueue[Job] = FairQueue(places, per_project, per_user)
    wanted = [Job(project, user, number) for number, (project, user) in enumerate(jobs)]
    for job in wanted:
        queue.add(job)
    running: list[Job] = []
    ended: list[Job] = []
    while len(queue) or running:
        while (next_job := queue.take()) is not None:
            running.append(next_job)
        assert 0 < len(running) <= places
        assert all([j.group for j in running].count(j.group) <= per_project for j in running)
        assert all(
            [(j.group, j.member) for j in running].count((j.group, j.member)) <= per_user
            for j in running
        )
        ended.append(running.pop(0))
        queue.release(ended[-1])
    assert sorted(ended, key=lambda job: job.number) == wanted
