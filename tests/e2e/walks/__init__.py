"""Walks of real clients through the whole API, each over a way in that it is given."""
