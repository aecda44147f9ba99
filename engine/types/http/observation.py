"""Compares an object in a response with the resource, and finds objects in lists. Pure."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urljoin

import orjson

from engine.hot.expressions.masking import MASK, MAX_SECRETS, iterate_texts, leaks_secret
from engine.types.http.json_paths import first_value, limited_together
from engine.types.http.remote_object import (
    Readiness,
    RemoteObject,
    absent_paths,
    describes,
    differing_paths,
    may_describe,
    other_object,
    readiness,
)
from engine.types.http.requests import address, origin
from engine.types.http_client import ServiceError
from engine.types.observation import (
    PRESENT,
    Difference,
    Observation,
    hash_values,
    join_paths,
    shorten,
)
from engine.types.text_cleaning import as_text
from engine.words import Json, ObservedState

_LACKS = "the response has no value"
_NOT_EVIDENT = (
    "the response may be an error: it has neither the ID of the object, nor a value that `compare`"
    " or `ready` names"
)
#: Maximum number of pages of a list.
MAX_PAGES = 1_000


def list_key(properties: Mapping[str, Json]) -> str:
    """The same text for all resources whose `list` sends the same request. It has no secret."""
    listing = properties["list"]
    parts = [address(properties, listing), listing, properties.get("headers"),
             properties.get("credential")]  # fmt: skip
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_page(listing: Mapping[str, Json], content: Json) -> Iterator[tuple[str, Json]]:
    """Yield the ID of each item of a page, and the item. Raises ServiceError if the response has no
    such list.
    """
    found = first_value(listing["items"], content)
    if found is None or not isinstance(found[0], list):
        reason = f"list: the response has no list at {listing['items']}"
        raise ServiceError(reason, public="list: the response has no list")
    for item in found[0]:
        item_id = first_value(listing["id"], item)
        if item_id is None or item_id[0] in (None, ""):
            reason = f"list: an item has no ID at {listing['id']}"
            raise ServiceError(reason, public="list: an item has no ID")
        yield as_text(item_id[0]), item


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


@limited_together()
def observation_of(
    properties: Mapping[str, Json],
    content: Json,
    secrets: Collection[str] = (),
    own: RemoteObject | None = None,
) -> Observation:
    """Compare a response with `ready` and `compare`. Raises InvalidPath.

    own: the object, if the response is to a request about it alone. A response about another
    object, or one that may be an error, says nothing. If it describes the object, a value that it
    lacks does not exist. Every other response without a value says nothing about it: it may be an
    entry of a list that has few fields. Secrets and hidden attributes are masked wherever the
    response or `compare` repeats them.
    """
    compare, ready = properties.get("compare") or {}, properties.get("ready")
    hidden = _HiddenValues.collect(properties, content, secrets)
    if own is not None and (other := other_object(own, properties, content)) is not None:
        masked = replace(other, id=hidden.mask(other.id), own_id=hidden.mask(other.own_id))
        return Observation.lacking(masked.reason, other.public)
    how, state = readiness(ready, content)
    if ready and how is Readiness.NOT_YET and _value_at(ready["path"], content) is None:
        return Observation.lacking(f"{_LACKS} at {ready['path']}, the path of `ready`", _LACKS)
    is_about = own is None or may_describe(own, properties, content)
    if how is not Readiness.READY:
        public = "the object has failed" if how is Readiness.FAILED else "the object is not ready"
        reason = f"{public}: {hidden.mask(state)}"
        if is_about:
            return Observation(ObservedState.DEGRADED, (), reason, public)
        return Observation.lacking(
            f"{_NOT_EVIDENT}; its state is {hidden.mask(state)}", _NOT_EVIDENT
        )
    absent = absent_paths(compare, content, null=not is_about)
    lacks = f"{_LACKS} at {join_paths(absent)}" if absent else ""
    removed = bool(absent) and own is not None and describes(own, properties, content)
    differences = [
        hidden.difference(path, compare[path], _value_at(path, content))
        for path in differing_paths(compare, content)
        if removed or path not in absent
    ]
    if differences:
        reason, public = (lacks, _LACKS) if removed else ("", "")
        incomplete = bool(absent) and not removed
        return Observation(
            ObservedState.CHANGED, differences, reason, public, incomplete=incomplete,
            absent=absent,
        )  # fmt: skip
    if absent:
        return Observation.lacking(f"{lacks}, which `compare` names", _LACKS, absent)
    return PRESENT


def _value_at(path: str, content: Json) -> Json:
    return (first_value(path, content) or (None,))[0]


@dataclass(frozen=True, slots=True)
class _HiddenValues:
    """What must not be shown of a response. paths: of hidden attributes. parts: IDs of the maps and
    lists at these paths. texts: secrets."""

    paths: frozenset[str]
    parts: frozenset[int]
    texts: set[str]

    @classmethod
    def collect(
        cls, properties: Mapping[str, Json], content: Json, secrets: Collection[str]
    ) -> "_HiddenValues":
        attributes, names = properties.get("attributes") or {}, properties.get("hidden") or []
        paths = frozenset(str(attributes[name]) for name in names if name in attributes)
        found = [one[0] for path in paths if (one := first_value(path, content)) is not None]
        parts = frozenset(id(one) for one in found if isinstance(one, dict | list))
        return cls(paths, parts, set(iterate_texts(found)).union(secrets))

    def difference(self, path: str, desired: Json, observed: Json) -> Difference:
        """Return a difference that shows nothing hidden. A desired value can be one, too: that of a
        hidden attribute, or the same text elsewhere."""
        if path in self.paths:
            return Difference(path, MASK, MASK, hash_values(desired, observed))
        shown = self.mask(desired), self.mask(observed)
        whole = shown[0] is desired and shown[1] is observed
        exact = None if whole else hash_values(desired, observed)
        return Difference(path, *shown, exact)

    def mask(self, value: Json) -> Json:
        """Return the value, shortened; a mask if it has a hidden part. So has a longer value,
        because not all of it is compared."""
        shown = shorten(value)
        if not (self.paths or self.texts):
            return shown
        longer = shown is not value or len(self.texts) > MAX_SECRETS
        return MASK if longer or self._has_part(value) or leaks_secret(value, self.texts) else value

    def _has_part(self, value: Json) -> bool:
        if not isinstance(value, dict | list):
            return False
        below = value.values() if isinstance(value, dict) else value
        return id(value) in self.parts or any(map(self._has_part, below))
