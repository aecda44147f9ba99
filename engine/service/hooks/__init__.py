"""Answers to hooks, and breakpoints on running stacks."""
