"""The ``parameter_groups`` of a template: how clients show its parameters."""

from collections.abc import Collection, Mapping

from engine.errors import Findings
from engine.words import Json


def read_groups(
    groups: Json, known: Collection[str], findings: Findings
) -> tuple[Mapping[str, Json], ...]:
    """Return the groups as they are written. known: names of all parameters."""
    if groups is None:
        return ()

    def fault(at: str, said: str) -> None:
        findings.add("", f"Parameter Groups error: parameter_groups{at}: {said}")

    if not isinstance(groups, list):
        fault("", "The parameter_groups should be a list.")
        return ()
    seen: set[str] = set()
    for group in groups:
        names = group.get("parameters") if isinstance(group, dict) else None
        label = f".{group.get('label')}" if isinstance(group, dict) and group.get("label") else ""
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            fault(label, "The parameters must be provided for each parameter group, as a list.")
            continue
        for name in names:
            if name in seen:
                fault(label, f"The {name} parameter must be assigned to one parameter group only.")
            if name not in known:
                fault(label, f"The grouped parameter {name} does not reference a valid parameter.")
            seen.add(name)
    return tuple(groups)
