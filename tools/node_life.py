"""Writes the diagrams and the table of docs/explanation/life-of-a-node.md from the node machine.

``python -m tools.node_life`` (`make node-life`). It replaces the text between the two marks of each
part; the rest of the page is written by hand.
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
    """The states without phases, and the inputs that move a node between them."""
    edges: Edges = {}
    for move in STORE_MOVES:
        if move.origin.state is not move.to.state:
            _add(edges, move.origin.state, move.to.state, move.why)
    for (state, _, input_type), row in TABLE.items():
        for place in row.leads_to:
            if place.state is not state:
                _add(edges, state, place.state, input_type.__name__)
    return _diagram(edges, State)


def phases() -> str:
    """Each state in each phase, without dropped, which most of them lead to."""
    edges: Edges = {}
    for move in STORE_MOVES:
        if move.to.state is not State.DROPPED:
            _add(edges, _id(move.origin), _id(move.to), move.why)
    for (state, phase, input_type), row in TABLE.items():
        for place in row.leads_to:
            if place.state is not State.DROPPED:
                _add(edges, _id(Place(state, phase)), _id(place), input_type.__name__)
    places = [Place(state, phase) for state in State for phase in Phase]
    return _diagram(edges, [_id(place) for place in places], _names(places))


def table() -> str:
    """A row for each row of the machine's table."""
    lines = [
        "| state | phase | input | decision | leads to | effects |",
        "|---|---|---|---|---|---|",
    ]
    for (state, phase, input_type), row in TABLE.items():
        decision = row.decide.__name__.replace("_", " ")
        leads = ", ".join(f"{to.state} in {to.phase}" for to in row.leads_to)
        effects = ", ".join(f"`{effect.__name__}`" for effect in row.effects) or "none"
        input_name = f"`{input_type.__name__}`"
        lines.append(f"| {state} | {phase} | {input_name} | {decision} | {leads} | {effects} |")
    return "\n".join(lines) + "\n"


PARTS: Mapping[str, Callable[[], str]] = {"states": overview, "phases": phases, "table": table}


def render_page(page: str) -> str:
    """The page with all its parts as the machine has them now."""
    return MARKED.sub(lambda match: _part(match["name"]), page)


def _part(name: str) -> str:
    return PART.format(name=name, text=PARTS[name]())


def _id(place: Place) -> str:
    return f"{place.state}_{place.phase}"


def _names(places: Iterable[Place]) -> dict[str, str]:
    return {_id(place): f"{place.state} in {place.phase}" for place in places}


def _add(edges: Edges, origin: str, to: str, reason: str) -> None:
    reasons = edges.setdefault((origin, to), [])
    if reason not in reasons:
        reasons.append(reason)


def _diagram(edges: Edges, order: Iterable[str], names: Mapping[str, str] | None = None) -> str:
    return "```mermaid\n" + "\n".join(_lines(edges, order, names or {})) + "\n```\n"


def _lines(edges: Edges, order: Iterable[str], names: Mapping[str, str]) -> Iterator[str]:
    yield "stateDiagram-v2"
    used_places = {place for edge in edges for place in edge}
    ordered_places = [place for place in order if place in used_places]
    for place in ordered_places:
        if place in names:
            yield f"    {place}: {names[place]}"
    for place in ordered_places:
        if place.partition("_")[0] in (State.WAITING, State.READY):
            yield f"    [*] --> {place}"
    for (origin, to), reasons in edges.items():
        yield f"    {origin} --> {to}: {', '.join(reasons)}"
    for place in ordered_places:
        if place.partition("_")[0] in ENDED:
            yield f"    {place} --> [*]"


def main() -> None:
    before = PAGE.read_text(encoding="utf-8")
    after = render_page(before)
    PAGE.write_text(after, encoding="utf-8")
    print(f"{PAGE.name}: {'unchanged' if after == before else 'written'}")


if __name__ == "__main__":
    main()
