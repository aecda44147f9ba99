"""Observes physical resources, and reacts to what differs from the recorded state."""
