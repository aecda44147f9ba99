"""What `headgate watch` shows, kept up to date by events. No I/O and no clock of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from hub.cli import show
from hub.cli.exit_codes import Exit

Json = Any
ENDS = {"completed": Exit.COMPLETE, "failed": Exit.FAILED, "stopped": Exit.STOPPED}
#: The states of a traversal that is over; superseded ones are followed by a newer one.
OF_TRAVERSAL = {"complete": Exit.COMPLETE, "failed": Exit.FAILED, "stopped": Exit.STOPPED}
#: Nodes shown at once. What needs attention comes first.
MOST = 40
#: Of the bar, in letters.
WIDTH = 40
URGENCY = ("parked", "failed", "stopped", "running", "ready", "waiting", "done", "dropped")
IDLE_CLEANUP = ("waiting", "dropped")


@dataclass(slots=True)
class Board:
    """name, stack_id, path: of the stack; the path is "" unless it is inside of another. graph: as
    last read. hooks: waiting ones by where they wait, seen from the stack: "" is the stack itself.

    status, code: as the last event of the stack told. changed: the graph on the server may be
    another by now. note: what to say besides.
    """

    name: str
    stack_id: str
    path: str
    graph: Mapping[str, Json]
    hooks: dict[str, Json] = field(default_factory=dict)
    status: str = ""
    code: Exit | None = None
    changed: bool = False
    note: str = ""

    @property
    def traversal(self) -> int:
        return int(self.graph["traversal"]["number"])

    @property
    def ended(self) -> Exit | None:
        """How the action ended, by an event or by the graph."""
        if self.code is not None:
            return self.code
        return OF_TRAVERSAL.get(self.graph["traversal"]["state"])

    @property
    def title(self) -> str:
        """The stack's status, such as ``CREATE_IN_PROGRESS``, from whoever knew it last."""
        traversal = self.graph["traversal"]
        if self.code is not None:
            return self.status
        ended = traversal["state"] in OF_TRAVERSAL
        return f"{traversal['action']}_{traversal['state'].upper() if ended else 'IN_PROGRESS'}"

    def take(self, event: Mapping[str, Json]) -> None:
        """Take in an event of the stack, or of one inside of it."""
        family, moment = event["type"].split(".")[1], event["type"].rpartition(".")[2]
        data = event["data"]
        if family == "stack" and data["stack"]["id"] == self.stack_id:
            self._take_stack(data, moment)
        if family == "hook":
            self._take_hook(data["hook"], event.get("subject") or event.get("stackpath") or "")
        self.changed = True

    def _take_stack(self, data: Mapping[str, Json], moment: str) -> None:
        if data["traversal"] < self.traversal:
            return  # of an action that was followed by another
        self.status = f"{data['stack']['action']}_{data['stack']['status']}"
        self.code = ENDS.get(moment)

    def _take_hook(self, hook: Json, path: str) -> None:
        """One that was approved, handed over or is worked on waits on, perhaps until later."""
        place = self.place(path)
        if hook["state"] == "waiting":
            self.hooks[place] = hook
        elif self.hooks.get(place, {}).get("id") == hook["id"]:
            del self.hooks[place]

    def place(self, path: str) -> str:
        """A path from the outermost stack on, as seen from this one."""
        return "" if path == self.path else path.removeprefix(f"{self.path}/")

    def picture(self, now: datetime) -> RenderableType:
        """A tree with a state for each node, a countdown for each hook, and a bar."""
        nodes = self.graph["nodes"]
        tree = Tree(Text.assemble((show.plain(self.name), "bold"), "  ", show.styled(self.title)))
        shown = _urgent(nodes)
        for node in shown[:MOST]:
            branch = tree.add(_node(node, self.hooks.get(node["resource_name"] or ""), now))
            for place, hook in self._inside(node):
                said = _waits(show.plain(place), hook, now)
                branch.add(Text.assemble((show.MARK["parked"] + " ", "yellow"), said))
        if len(shown) > MOST:
            tree.add(Text(f"and {len(shown) - MOST} more", "dim"))
        done = sum(node["state"] == "done" for node in nodes)
        said = bar(done, len(nodes)).append(f"  {done} of {len(nodes)} nodes done", "dim")
        return Group(tree, said, *([Text(self.note, "red")] if self.note else []))

    def _inside(self, node: Mapping[str, Json]) -> list[tuple[str, Json]]:
        """The hooks that wait inside of what a node is about."""
        below = f"{node['resource_name']}/"
        return [(place, hook) for place, hook in self.hooks.items() if place.startswith(below)]


def bar(done: int, count: int) -> Text:
    full = WIDTH * done // count if count else WIDTH
    return Text.assemble(("━" * full, "green"), ("━" * (WIDTH - full), "dim"))


def _urgent(nodes: Sequence[Json]) -> list[Json]:
    """Those to show: all in their order when they fit, else those that need attention first."""
    wanted = [
        node
        for node in nodes
        if not (node["direction"] == "cleanup" and node["state"] in IDLE_CLEANUP)
    ]
    if len(wanted) <= MOST:
        return wanted
    return sorted(wanted, key=lambda node: URGENCY.index(node["state"]))


def _node(node: Json, hook: Json | None, now: datetime) -> Text:
    state = node["state"]
    said = Text.assemble(
        (show.MARK.get(state, "?") + " ", show.STYLE.get(state, "")),
        show.named(node["resource_name"]),
        (f"  {node['operation']}", "dim"),
    )
    if hook is not None and state == "parked":
        said.append_text(_waits("", hook, now))
    elif state in ("running", "parked"):
        said.append(f"  {node['phase']}", "cyan")
    if node["reason"]:
        said.append(f"  {show.plain(node['reason'])}", "dim")
    return said


def _waits(place: str, hook: Json, now: datetime) -> Text:
    left = datetime.fromisoformat(hook["deadline"]) - now
    approved = f", {given} approved" if (given := show.approvals(hook)) else ""
    waits = f"waits at {hook['point']}{approved}, {clock(left.total_seconds())} left"
    return Text.assemble(place, (f"  {waits}", "yellow"))


def clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
