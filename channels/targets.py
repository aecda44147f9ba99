"""Targets of subscriptions as people may see them. Pure."""


def shown_target(target: str) -> str:
    """A target for the eyes of people: no path, query or account, which may hold secrets."""
    scheme, separator, rest = target.partition("://")
    if not separator:
        return target
    return f"{scheme}://{rest.partition('/')[0].partition('?')[0].rpartition('@')[2]}"
