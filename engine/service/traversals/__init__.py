"""Traversals of stacks and nested stacks, from their start to their end."""
