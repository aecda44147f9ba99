"""The worker: it claims nodes, executes them, and writes their steps."""
