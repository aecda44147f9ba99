"""Figures, printed: `make bench`. Nothing here passes or fails on time."""
