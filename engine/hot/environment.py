"""An environment: parameters, names for types, and breakpoints, apart from the template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.errors import Findings, nearest
from engine.hot.declared import DeclaredHook, declared_list
from engine.hot.event_sinks import read_event_sinks
from engine.hot.registry import Registry, read_registry
from engine.words import Json

MAPS = ("parameters", "parameter_defaults", "resource_registry")
NOT_YET = ("parameter_merge_strategies",)
LISTS = ("hooks", "event_sinks")
SECTIONS = (*MAPS, *NOT_YET, *LISTS, "encrypted_param_names")

__all__ = ["DeclaredHook", "Environment", "merge_environments", "parse_environment"]


@dataclass(frozen=True, slots=True)
class Environment:
    """declared: hooks in the order written, those of resource_registry first."""

    parameters: Mapping[str, Json] = field(default_factory=dict)
    parameter_defaults: Mapping[str, Json] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    encrypted_param_names: tuple[str, ...] = ()
    declared: tuple[DeclaredHook, ...] = ()
    document: Mapping[str, Json] = field(default_factory=dict, repr=False)


def parse_environment(document: dict[str, Json]) -> Environment:
    """Read a document (see source.py) as an environment. Raises Invalid with all findings."""
    findings = Findings()
    for name, value in document.items():
        if name not in SECTIONS:
            reason = f'environment has wrong section "{name}"'
            findings.add(name, reason, nearest(name, SECTIONS), "Invalid")
        elif value is None:
            reason = f'environment has empty section "{name}"'
            findings.add(name, reason, "Leave it out.", "Invalid")
        elif name in MAPS and not isinstance(value, dict):
            findings.add(name, f'"{name}" must be a map.')
        elif name in NOT_YET and value:
            findings.add(name, f'"{name}" is not available yet in this release.', "Leave it out.")
    findings.raise_if_any()
    registry, declared = read_registry(document.get("resource_registry", {}), findings)
    declared += declared_list(document.get("hooks"), "hooks", findings)
    read_event_sinks(document.get("event_sinks"), findings)
    encrypted = document.get("encrypted_param_names", [])
    if not isinstance(encrypted, list) or not all(isinstance(one, str) for one in encrypted):
        findings.add("encrypted_param_names", "This must be a list of names.")
    findings.raise_if_any()
    return Environment(
        parameters=document.get("parameters", {}),
        parameter_defaults=document.get("parameter_defaults", {}),
        registry=registry,
        encrypted_param_names=tuple(encrypted),
        declared=tuple(declared),
        document=document,
    )


def merge_environments(documents: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """Merge environment documents in order: later entries win, hooks and event sinks are gathered.

    Sections that are maps are merged one level deep, so a later ``resource_registry.resources``
    replaces the earlier one whole, as in Heat.
    """
    merged: dict[str, Json] = {}
    for document in documents:
        for name, value in document.items():
            before = merged.get(name)
            if isinstance(before, dict) and isinstance(value, dict):
                merged[name] = before | value
            elif name in LISTS and isinstance(before, list) and isinstance(value, list):
                merged[name] = before + value
            else:
                merged[name] = value
    return merged
