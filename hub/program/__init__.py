"""Assembles the processes of a server: application, loops, resource types."""
