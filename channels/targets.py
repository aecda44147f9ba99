"""Targets of subscriptions without secrets. Pure."""


def shown_target(target: str) -> str:
    """A target without path, query and credentials, which may contain secrets."""
    scheme, separator, rest = target.partition("://")
    if not separator:
        return target
    return f"{scheme}://{rest.partition('/')[0].partition('?')[0].rpartition('@')[2]}"
