"""Writes the diagrams and the table of docs/explanation/life-of-a-node.md from the node machine.

``python -m tools.node_life`` (`make node-life`). What stands between the two marks of a part is
replaced; the rest of the page is written by hand.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from engine.node.machine import STORE_MOVES, TABLE, Place
from engine.node.node import ENDED
from engine.words import Phase, State

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "life-of-a-node.md"
PART = "<!-- {name}: written by tools/node_life.py -->\n{text}<!-- end of {name} -->\n"
MARKED = re.compile(
    r"<!-- (?P<name>[a-z ]+): written by tools/node_life\.py -->\n.*?<!-- end of (?P=name) -->\n",
    re.DOTALL,
)

Edges = dict[tuple[str, str], list[str]]


def overview() -> str:
    """The states alone, and what moves a node between them."""
    edges: Edges = {}
    for move in STORE_MOVES:
        if move.origin.state is not move.to.state:
            _add(edges, move.origin.state, move.to.state, move.why)
    for (state, _, said), row in TABLE.items():
        for place in row.leads_to:
            if place.state is not state:
                _add(edges, state, place.state, said.__name__)
    return _diagram(edges, State)


def phases() -> str:
    """Each state in each phase; dropped is left out, as nearly everything leads there."""
    edges: Edges = {}
    for move in STORE_MOVES:
        if move.to.state is not State.DROPPED:
            _add(edges, _id(move.origin), _id(move.to), move.why)
    for (state, phase, said), row in TABLE.items():
        for place in row.leads_to:
            if place.state is not State.DROPPED:
                _add(edges, _id(Place(state, phase)), _id(place), said.__name__)
    places = [Place(state, phase) for state in State for phase in Phase]
    return _diagram(edges, [_id(one) for one in places], _names(places))


def table() -> str:
    """A row for each row of the machine's table."""
    lines = ["| state | phase | input | decision | leads to |", "|---|---|---|---|---|"]
    for (state, phase, said), row in TABLE.items():
        decision = row.decide.__name__.replace("_", " ")
        leads = ", ".join(f"{to.state} in {to.phase}" for to in row.leads_to)
        lines.append(f"| {state} | {phase} | `{said.__name__}` | {decision} | {leads} |")
    return "\n".join(lines) + "\n"


PARTS: Mapping[str, Callable[[], str]] = {"states": overview, "phases": phases, "table": table}


def written(page: str) -> str:
    """The page with all its parts as the machine has them now."""
    return MARKED.sub(lambda found: _part(found["name"]), page)


def _part(name: str) -> str:
    return PART.format(name=name, text=PARTS[name]())


def _id(place: Place) -> str:
    return f"{place.state}_{place.phase}"


def _names(places: Iterable[Place]) -> dict[str, str]:
    return {_id(one): f"{one.state} in {one.phase}" for one in places}


def _add(edges: Edges, origin: str, to: str, why: str) -> None:
    whys = edges.setdefault((origin, to), [])
    if why not in whys:
        whys.append(why)


def _diagram(edges: Edges, order: Iterable[str], names: Mapping[str, str] | None = None) -> str:
    return "```mermaid\n" + "\n".join(_lines(edges, order, names or {})) + "\n```\n"


def _lines(edges: Edges, order: Iterable[str], names: Mapping[str, str]) -> Iterator[str]:
    yield "stateDiagram-v2"
    there = {one for edge in edges for one in edge}
    known = [one for one in order if one in there]
    for one in known:
        if one in names:
            yield f"    {one}: {names[one]}"
    for one in known:
        if one.partition("_")[0] in (State.WAITING, State.READY):
            yield f"    [*] --> {one}"
    for (origin, to), whys in edges.items():
        yield f"    {origin} --> {to}: {', '.join(whys)}"
    for one in known:
        if one.partition("_")[0] in ENDED:
            yield f"    {one} --> [*]"


def main() -> None:
    before = PAGE.read_text(encoding="utf-8")
    after = written(before)
    PAGE.write_text(after, encoding="utf-8")
    print(f"{PAGE.name}: {'as it was' if after == before else 'written'}")


if __name__ == "__main__":
    main()
