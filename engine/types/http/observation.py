"""Compares an object in a response with the resource, and finds objects in lists. Pure."""

import hashlib
from collections.abc import Mapping
from urllib.parse import urljoin

import orjson

from engine.hot.expressions.masking import MASK
from engine.types.http.json_paths import first_value
from engine.types.http.remote_object import Readiness, differing_paths, readiness
from engine.types.http.requests import address, origin
from engine.types.http_client import ServiceError
from engine.types.observation import PRESENT, Difference, Observation
from engine.types.text_cleaning import as_text
from engine.words import Json, ObservedState

#: Maximum number of pages of a list.
MAX_PAGES = 1_000


def list_key(properties: Mapping[str, Json]) -> str:
    """The same text for all resources whose `list` sends the same request. It has no secret."""
    listing = properties["list"]
    parts = [address(properties, listing), listing, properties.get("headers"),
             properties.get("credential")]  # fmt: skip
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_page(listing: Mapping[str, Json], content: Json) -> dict[str, Json]:
    """The items of a page by ID. Raises ServiceError if the response has no such list."""
    found = first_value(listing["items"], content)
    if found is None or not isinstance(found[0], list):
        reason = f"list: the response has no list at {listing['items']}"
        raise ServiceError(reason, public="list: the response has no list")
    items: dict[str, Json] = {}
    for item in found[0]:
        item_id = first_value(listing["id"], item)
        if item_id is None or item_id[0] in (None, ""):
            reason = f"list: an item has no ID at {listing['id']}"
            raise ServiceError(reason, public="list: an item has no ID")
        items[as_text(item_id[0])] = item
    return items


def next_page(listing: Mapping[str, Json], content: Json, url: str) -> str | None:
    """The URL of the next page; None: this is the last one. url: of this page.

    Raises ServiceError if it is on another server.
    """
    path = listing.get("next")
    found = first_value(path, content) if path else None
    if found is None or found[0] in (None, ""):
        return None
    following = urljoin(url, as_text(found[0]))
    if origin(following) != origin(url):
        reason = "list: the next page is on another server"
        raise ServiceError(reason, public=reason)
    return following


def observe_object(properties: Mapping[str, Json], content: Json) -> Observation:
    """Compare a response with `ready` and `compare`. Raises InvalidPath."""
    compare = properties.get("compare") or {}
    how, state = readiness(properties.get("ready"), content)
    if how is not Readiness.READY:
        public = "the object has failed" if how is Readiness.FAILED else "the object is not ready"
        return Observation(ObservedState.DEGRADED, (), f"{public}: {state}", public)
    attributes = properties.get("attributes") or {}
    hidden = {attributes.get(name) for name in properties.get("hidden") or []}
    differences = [
        Difference(
            path,
            compare[path],
            MASK if path in hidden else (first_value(path, content) or (None,))[0],
        )
        for path in differing_paths(compare, content)
    ]
    return Observation(ObservedState.CHANGED, differences) if differences else PRESENT
