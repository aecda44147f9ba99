"""Which members a step of a group creates, changes and removes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count, islice
from uuid import UUID

from engine.types.groups.group_steps import MemberChange
from engine.types.groups.member_template import Body, CurrentMembers

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
#: Characters of a member's name.
LENGTH = 12

BodyOf = Callable[[str], Body]


def indexed_names(size: int, removed: Collection[str]) -> list[str]:
    """The first numbers from 0 without the removed ones."""
    return list(islice((str(n) for n in count() if str(n) not in removed), size))


def by_index(names: Collection[str]) -> list[str]:
    return sorted(names, key=lambda name: (len(name), name))


def fresh_names(key: UUID, number: int, used: Collection[str]) -> Iterator[str]:
    """Unused names, the same whenever a step of an operation is computed again."""
    for place in count():
        name = _short(f"{key}/{number}/{place}")
        if name not in used:
            yield name


def placeholder_names(used: Collection[str]) -> Iterator[str]:
    """Unused names for members of a preview: their own names are random."""
    return (name for name in (f"new-{place}" for place in count(1)) if name not in used)


def _short(text: str) -> str:
    """Twelve characters; the first is a letter, so YAML does not read the name as a number."""
    bits = int.from_bytes(sha256(text.encode()).digest()[:8])
    characters = [_ALPHABET[(bits >> (5 * place)) & 31] for place in range(LENGTH)]
    return _ALPHABET[(bits >> 59) % 26] + "".join(characters[1:])


def indexed_change(
    current: CurrentMembers,
    names: Sequence[str],
    target: Collection[str],
    changes: int,
    body_of: BodyOf,
    chosen: Sequence[str] | None,
) -> MemberChange:
    """A batch of a group with numbered members.

    names: after the batch. target: the final names; other members are temporary and do not change.
    The highest numbers change first.
    """
    stay = [name for name in names if name in current.healthy]
    created = [name for name in names if name not in current.healthy]
    old = [name for name in reversed(stay) if name in target and is_old(current, name, body_of)]
    return _batch(current, names, created, old, changes, body_of, chosen)


def aged_change(
    current: CurrentMembers, size: int, changes: int, body_of: BodyOf, new_names: Iterator[str],
    chosen: Sequence[str] | None,
) -> MemberChange:  # fmt: skip
    """A batch of a group whose members are ordered by age. The oldest change first. If there are
    too many, failed members are removed first, then the oldest; up-to-date members last."""
    removal_order = sorted(
        current.bodies,
        key=lambda name: (name in current.healthy, not is_old(current, name, body_of)),
    )
    removed = removal_order[: max(len(removal_order) - size, 0)]
    stay = [name for name in current.bodies if name not in removed]
    created = [*islice(new_names, size - len(stay))]
    old = [name for name in stay if is_old(current, name, body_of)]
    return _batch(current, [*stay, *created], created, old, changes, body_of, chosen)


def is_old(current: CurrentMembers, name: str, body_of: BodyOf) -> bool:
    """Whether a batch must change a member. The result of an operation under way is not known."""
    return current.bodies[name] != body_of(name) or name in current.under_way


def _batch(
    current: CurrentMembers,
    names: Sequence[str],
    created: Sequence[str],
    old: Sequence[str],
    changes: int,
    body_of: BodyOf,
    chosen: Sequence[str] | None,
) -> MemberChange:
    """The members on which an earlier change still operates are changed first, and without others:
    they are out of service, too."""
    candidates = [name for name in old if name in current.under_way] or old
    changed = candidates[: max(changes - len(created), 0)] if chosen is None else chosen
    return _change(current, names, created, [*changed], candidates, body_of)


def _change(
    current: CurrentMembers,
    names: Sequence[str],
    created: Sequence[str],
    changed: Sequence[str],
    old: Sequence[str],
    body_of: BodyOf,
) -> MemberChange:
    new = {*created, *changed}
    bodies = {name: body_of(name) if name in new else current.bodies[name] for name in names}
    return MemberChange(bodies, created, changed, _removed_names(current, bodies), old)


def change_all(current: CurrentMembers, names: Sequence[str], body_of: BodyOf) -> MemberChange:
    bodies = {name: body_of(name) for name in names}
    created = [name for name in names if name not in current.healthy]
    changed = [
        name for name in names if name not in created and current.bodies[name] != bodies[name]
    ]
    return MemberChange(bodies, created, changed, _removed_names(current, bodies))


def keep_only(current: CurrentMembers, names: Sequence[str]) -> MemberChange:
    """Keep these members unchanged, and remove the others."""
    bodies = {name: current.bodies[name] for name in names if name in current.bodies}
    return MemberChange(bodies, removed=_removed_names(current, bodies))


def _removed_names(current: CurrentMembers, bodies: Mapping[str, Body]) -> list[str]:
    return [name for name in current.bodies if name not in bodies]
