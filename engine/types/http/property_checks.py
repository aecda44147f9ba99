"""Checks of the properties of Headgate::HTTP that concern several of them."""

from collections.abc import Callable, Iterator, Mapping

from engine.errors import Findings, nearest
from engine.types.http.json_paths import InvalidPath, is_path, read_path
from engine.types.http.requests import address, header_error, names_in, origin
from engine.types.http.schema import METHODS
from engine.words import Json

#: (place below the properties, reason, remedy)
Wrong = tuple[str, str, str]
#: Returns (reason, remedy) for a URL that the egress policy denies.
Refusal = Callable[[str], tuple[str, str] | None]

#: The placeholders that are known before the resource is created.
BEFORE = ("key",)
_PATH = "Write a path such as $.status.phase; see docs/reference/resource-types.md."


def check(properties: Mapping[str, Json], refusal: Refusal, place: str, findings: Findings) -> None:
    """Add findings. properties: without values that are unknown before creation."""
    for where, reason, remedy in _all(properties, refusal):
        findings.add(f"{place}.{where}", reason, remedy)


def _all(properties: Mapping[str, Json], refusal: Refusal) -> Iterator[Wrong]:
    for name in METHODS:
        if isinstance(properties.get(name), Mapping):
            yield from _request(name, properties, refusal)
    yield from _headers("headers", properties.get("headers"))
    yield from _paths(properties)
    attributes = properties.get("attributes")
    if isinstance(attributes, Mapping):
        for name in properties.get("hidden") or []:
            if name not in attributes:
                remedy = nearest(str(name), list(attributes)) or "Add it to `attributes`."
                yield "hidden", f'hides "{name}", which is not one of its attributes', remedy
    header = properties.get("idempotency_header")
    if isinstance(header, str) and header and (wrong := header_error(header, "")):
        yield "idempotency_header", wrong, "Name another header."


def _request(name: str, properties: Mapping[str, Json], refusal: Refusal) -> Iterator[Wrong]:
    request = properties[name]
    if name == "list":
        known: list[str] | None = []
    else:
        known = [*BEFORE] if name in ("create", "find") else _known_after(properties)
    for one in dict.fromkeys(
        names_in({key: request.get(key) for key in ("url", "headers", "body")})
    ):
        if known is not None and one not in known:
            known_here = f"Known here: {', '.join(known)}." if known else "Write the value itself."
            remedy = nearest(one, known) or known_here
            yield name, f"${{{one}}} is not known in this request", remedy
    yield from _headers(f"{name}.headers", request.get("headers"))
    if "url" in request and ("base" in properties or not str(request["url"]).startswith("/")):
        yield from _address(name, address(properties, request), refusal)


def _known_after(properties: Mapping[str, Json]) -> list[str] | None:
    """The placeholders in requests after create; None if they are not known yet."""
    attributes = properties.get("attributes") or {}
    hidden = properties.get("hidden") or []
    if not isinstance(attributes, Mapping):
        return None
    kinds = {one: "secrets" if one in hidden else "outputs" for one in attributes}
    return ["id", "key", *(f"{kind}.{one}" for one, kind in kinds.items())]


def _address(name: str, url: str, refusal: Refusal) -> Iterator[Wrong]:
    server = origin(url)
    if "${" in server or not server:
        remedy = "Write https://host/path; use placeholders only after the host."
        yield f"{name}.url", "has no fixed host", remedy
    elif (wrong := refusal(server)) is not None:
        yield f"{name}.url", *wrong


def _headers(place: str, headers: Json) -> Iterator[Wrong]:
    for name, value in (headers if isinstance(headers, Mapping) else {}).items():
        if value is not None and (wrong := header_error(str(name), value)):
            yield f"{place}.{name}", wrong, "Remove or correct it."


def _paths(properties: Mapping[str, Json]) -> Iterator[Wrong]:
    paths: dict[str, Json] = {}
    if is_path(properties.get("id")):
        paths["id"] = properties["id"]
    if isinstance(properties.get("attributes"), Mapping):
        paths |= {f"attributes.{name}": one for name, one in properties["attributes"].items()}
    if isinstance(properties.get("compare"), Mapping):
        paths |= {f"compare.{one}": one for one in properties["compare"]}
    if isinstance(properties.get("ready"), Mapping) and "path" in properties["ready"]:
        paths["ready.path"] = properties["ready"]["path"]
    if isinstance(listing := properties.get("list"), Mapping):
        known = ("items", "id", "next")
        paths |= {f"list.{name}": listing[name] for name in known if name in listing}
    for place, path in paths.items():
        try:
            read_path(path if isinstance(path, str) else "")
        except InvalidPath as error:
            yield place, str(error), _PATH


def missing_property(properties: Mapping[str, Json]) -> str | None:
    """The reason why a property lacks another one that it needs; None if there is none."""
    source = (properties.get("ready") or {}).get("source", "read")
    if properties.get("ready") and not properties.get(source):
        return f"ready uses the result of {source}, which is missing"
    if properties.get("compare") and not any(map(properties.get, ("read", "check", "list"))):
        return "compare uses the result of read, which is missing"
    if properties.get("find") and not is_path(properties.get("id")):
        return "find needs the JSON path of the ID in the property id"
    return None
