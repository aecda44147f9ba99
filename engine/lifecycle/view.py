"""Encodes and decodes the view of a stack and its plan, which gates store as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from uuid import UUID

from engine.lifecycle.contract import VERSION, PlannedChange, StackView
from engine.words import Json


def view_document(view: StackView) -> dict[str, Json]:
    return {"version_of_view": VERSION, **asdict(view), "plan": [asdict(one) for one in view.plan]}


def view_of(document: Mapping[str, Json]) -> StackView:
    """Decode a view. Fields of later versions are ignored."""
    known = _known(StackView, document)
    plan: Sequence[Mapping[str, Json]] = known.pop("plan", ())
    known["stack_id"] = UUID(str(known["stack_id"]))
    return StackView(
        **known, plan=tuple(PlannedChange(**_known(PlannedChange, one)) for one in plan)
    )


def _known(kind: type[StackView | PlannedChange], document: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields of this version, with lists as tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in document.items()
        if name in kind.__dataclass_fields__
    }
