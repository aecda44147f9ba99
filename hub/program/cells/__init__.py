"""Serves several cells in one process: one set of services for each, which is connected whenever
its database is available.

The program starts `running_cells` (running.py). The API asks `ServedCells` (served_cells.py), whose
parts each use only those above them:

- cell_states.py: which cells respond now;
- project_moves.py: what this process has read about projects that move between cells;
- placement_agreement.py: which cells a project can be in, by settings to which all cells agreed;
- project_directory.py: the cell of a project;
- token_sharing.py: the same tokens in all cells;
- cell_connection.py: connects a cell, again whenever its database returns.

A cell that is away makes only its own projects unavailable. The process ends at start if the
settings contradict what the cells have stored.
"""
