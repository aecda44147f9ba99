"""The metrics of a process that serves cells."""

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from hub.metrics import Metrics
from hub.metrics_exchange import MetricsExchange, merge_labelled
from hub.program.cells.cell_states import CellStates
from hub.program.cells.project_moves import ProjectMoves


class CellsMetrics(Metrics):
    """Those of the services of a cell have the label `cell`."""

    def __init__(self, cells: CellStates, moves: ProjectMoves, exchange: MetricsExchange) -> None:
        super().__init__(None, None, exchange)
        self._cells, self._moves = cells, moves

    def render_own(self) -> bytes:
        up = CollectorRegistry()
        gauge = Gauge("headgate_cell_up", "1 if the cell is available", ("cell",), registry=up)
        moving = Gauge(
            "headgate_projects_moving", "projects that move from a cell", ("cell",), registry=up
        )
        for name, count in self._moves.count_moving().items():
            moving.labels(name).set(count)
        twice = Gauge("headgate_projects_in_two_cells", "projects in two cells", registry=up)
        twice.set(len(self._moves.twice()))
        texts: dict[str, bytes] = {}
        for state in self._cells.states.values():
            gauge.labels(state.name).set(state.available is not None)
            if state.loops is not None:
                texts[state.name] = state.loops.metrics.render_own()
        own = super().render_own() + generate_latest(up)
        return merge_labelled(texts, "cell", own)
