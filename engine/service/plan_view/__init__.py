"""The plan of a change for users and plug-ins: the effect of each node."""
