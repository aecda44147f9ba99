"""The state of resources that own nested stacks, by the drift inside. Pure.

It is derived when it is read, and never stored: only the resource inside is reported, held by a
hook and repaired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engine.plan.drift import list_resources
from engine.words import ObservedState


@dataclass(frozen=True, slots=True)
class MemberDrift:
    """A resource of a nested stack that differs, or whose state is not known."""

    stack_id: UUID
    resource_id: UUID
    name: str
    state: ObservedState
    since: datetime
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class NestedOwner:
    """The resource that owns a nested stack. level: of its stack, from the root stack. members: how
    many resources the nested stack has."""

    stack_id: UUID
    resource_id: UUID
    name: str
    nested_id: UUID
    level: int
    members: int


@dataclass(frozen=True, slots=True)
class NestedDrift:
    """state: DEGRADED: a member differs; UNKNOWN: none does, and the state of one is not known.
    since: of the oldest drift inside. observed_at: the oldest last observation of these."""

    state: ObservedState
    reason: str
    since: datetime
    observed_at: datetime


def derive_drift(
    drifted: Sequence[MemberDrift], owners: Sequence[NestedOwner]
) -> Mapping[tuple[UUID, UUID], NestedDrift]:
    """Return the drift of owners, by stack and ID of the resource. drifted: of all their nested
    stacks. owners: of these stacks, at all levels; those in whose nested stacks nothing differs are
    left out of the result.

    An owner that differs itself has its own state for the owner above it.
    """
    inside: dict[UUID, list[MemberDrift]] = {}
    own = dict[tuple[UUID, UUID], ObservedState]()
    for one in drifted:
        inside.setdefault(one.stack_id, []).append(one)
        own[one.stack_id, one.resource_id] = one.state
    found: dict[tuple[UUID, UUID], NestedDrift] = {}
    for owner in sorted(owners, key=lambda one: -one.level):
        members = inside.get(owner.nested_id)
        if not members:
            continue
        derived = _derive(members, owner.members)
        key = (owner.stack_id, owner.resource_id)
        found[key] = derived
        if own.get(key, ObservedState.UNKNOWN) is not ObservedState.UNKNOWN:
            continue
        above = inside.setdefault(owner.stack_id, [])
        above[:] = [one for one in above if one.resource_id != owner.resource_id]
        above.append(
            MemberDrift(
                *key, owner.name, derived.state, derived.since, derived.observed_at
            )
        )  # fmt: skip
    return found


def _derive(members: Sequence[MemberDrift], total: int) -> NestedDrift:
    differing = [one for one in members if one.state is not ObservedState.UNKNOWN]
    unknown = [one for one in members if one.state is ObservedState.UNKNOWN]
    total = max(total, len(members))
    parts = [
        _sentence(found, total, *verbs)
        for found, verbs in (
            (differing, ("differs", "differ")),
            (unknown, ("has no known state", "have no known state")),
        )
        if found
    ]
    counted = differing or unknown
    return NestedDrift(
        ObservedState.DEGRADED if differing else ObservedState.UNKNOWN,
        "; ".join(parts),
        min(one.since for one in counted),
        min(one.observed_at for one in members),
    )


def _sentence(found: Sequence[MemberDrift], total: int, singular: str, plural: str) -> str:
    listed = list_resources([(one.name, one.state) for one in sorted(found, key=_by_name)])
    members = "member" if total == 1 else "members"
    return f"{len(found)} of {total} {members} {singular if len(found) == 1 else plural}: {listed}"


def _by_name(one: MemberDrift) -> tuple[int, str]:
    """`2` before `10`."""
    return len(one.name), one.name
