"""Partial updates: which resources become out of date, which rows stay, and which are required.

A partial update changes only the resources that the request chooses (`Options.chosen`). These
become out of date: resources that would change but are not chosen, and resources that would be
deleted but are not chosen or are still used by one that is not.
"""

from collections.abc import Sequence

from engine.plan.draft import Draft, Problem
from engine.plan.graph import downstream
from engine.words import ResourceAction, ResourceId


def leave_unchosen(draft: Draft, names: Sequence[str]) -> list[str]:
    """Return the resources that this update may change; the others become out of date. names: of
    resources that would change.
    """
    chosen = [name for name in names if draft.may_change(name)]
    draft.out_of_date.update(set(names).difference(chosen))
    return chosen


def check_requirements(draft: Draft) -> None:
    """A partial update must include missing resources that the chosen ones require."""
    for name in draft.forward:
        for one in sorted(draft.desired[name].requires & draft.out_of_date):
            row = draft.current.get(one)
            if row is None or row.action is ResourceAction.INIT:
                reason = f'"{name}" requires "{one}", which does not exist and is not selected'
                remedy = f'Select "{one}", too.'
                draft.problems.append(Problem(f"resources.{name}", reason, remedy))


def keep_unchosen(draft: Draft) -> set[ResourceId]:
    """Return the rows that the update keeps: those not chosen, and all that these use. Unwanted
    ones become out of date.
    """
    if draft.options.chosen is None:
        return set()
    left = [
        row
        for row in draft.existing
        if row.name in draft.out_of_date
        or (row.name not in draft.desired and not draft.may_change(row.name))
    ]
    known = {row.id for row in draft.existing}
    uses: dict[ResourceId, list[ResourceId]] = {row.id: [] for row in draft.existing}
    for row in draft.existing:
        for one in draft.used_by(row) & known:
            uses[one].append(row.id)
    kept = downstream(uses, [row.id for row in left])
    draft.out_of_date.update(
        row.name
        for row in draft.existing
        if row.id in kept and row.replaced_by is None and row.name not in draft.desired
    )
    return kept
