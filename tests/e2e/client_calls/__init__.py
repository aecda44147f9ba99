"""The calls of OpenStack clients to the whole API, for any way to authenticate."""
