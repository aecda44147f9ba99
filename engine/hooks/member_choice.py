"""Points at which an answer may choose other members of a group than proposed.

The hook's preview (``seen``) has the proposed members and, in ``may_choose``, all candidates; the
answer's ``data`` has the chosen ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.words import Json, Point


@dataclass(frozen=True, slots=True)
class Choice:
    """key: of the members in ``seen`` and in an answer's data. fewer: whether an answer may choose
    fewer than proposed.
    """

    key: str
    fewer: bool


CHOICES: Mapping[str, Choice] = {
    Point.PRE_BATCH: Choice("members", fewer=True),
    Point.PRE_SCALE_IN: Choice("victims", fewer=False),
}
MAY_CHOOSE = "may_choose"


@dataclass(frozen=True, slots=True)
class InvalidChoice:
    """An invalid choice. place: in the answer, such as ``data.victims``."""

    place: str
    reason: str
    remedy: str


def chosen_members(
    point: str, seen: Mapping[str, Json], data: Json
) -> Sequence[str] | InvalidChoice | None:
    """Return the members that an answer chooses; None if it accepts the proposed ones."""
    choice = CHOICES.get(point)
    if choice is None or not isinstance(data, Mapping) or choice.key not in data:
        return None
    place = f"data.{choice.key}"
    names, named, known = data[choice.key], seen[choice.key], seen[MAY_CHOOSE]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return InvalidChoice(
            place, "is not a list of names", f"Name some of: {_list_names(known)}."
        )
    for name in names:
        if name not in known:
            reason = f'"{name}" cannot be chosen'
            return InvalidChoice(place, reason, f"Name some of: {_list_names(known)}.")
    if len(set(names)) < len(names):
        return InvalidChoice(place, "contains a name twice", "Name each once.")
    min_count = min(1, len(named)) if choice.fewer else len(named)
    if not min_count <= len(names) <= len(named):
        wanted = f"{min_count} to {len(named)}" if choice.fewer else f"{len(named)}"
        return InvalidChoice(place, f"names {len(names)}", f"Name {wanted}.")
    return names


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
