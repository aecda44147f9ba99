"""What plug-ins and programs see of a stack and its plan: made for the gate, kept as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from engine.lifecycle.contract import VERSION, PlannedChange, StackView
from engine.words import Json


def view_document(view: StackView) -> dict[str, Json]:
    return {"version_of_view": VERSION, **asdict(view), "plan": [asdict(one) for one in view.plan]}


def view_of(document: Mapping[str, Json]) -> StackView:
    known = {name: value for name, value in document.items() if name in _NAMES}
    plan: Sequence[Mapping[str, Json]] = known.pop("plan", ())
    known["stack_id"] = UUID(str(known["stack_id"]))
    return StackView(**known, plan=tuple(PlannedChange(**one) for one in plan))


_NAMES = frozenset(StackView.__dataclass_fields__)
