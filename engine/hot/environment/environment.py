"""An environment: parameters, the resource registry, hooks and event sinks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.errors import Finding, Findings, nearest, one_of
from engine.hot.environment.context_section import CONTEXT, read_context
from engine.hot.environment.event_sinks import read_event_sinks
from engine.hot.environment.merging import Strategy
from engine.hot.environment.registry import ResourceRegistry
from engine.hot.environment.registry_section import read_registry
from engine.hot.template.hook_declarations import HookDeclaration, read_hook_list
from engine.words import Json

MAPS = (
    "parameters", "parameter_defaults", "resource_registry", "parameter_merge_strategies",
    "convergence", "context",
)  # fmt: skip
LISTS = ("hooks", "event_sinks", "encrypted_param_names")
SECTIONS = (*MAPS, *LISTS)

__all__ = ["NO_OPERATOR", "SECTIONS", "Environment", "HookDeclaration", "parse_environment"]

NO_OPERATOR: Final = ResourceRegistry()


@dataclass(frozen=True, slots=True)
class Environment:
    """hook_declarations: in the order written, those of resource_registry first.
    encrypted_param_names: parameters that are hidden even if the template does not declare them
    hidden. document: as received. findings: faults of an environment that could not be read; its
    content is unknown. warnings: also about its text. region: of the stack; "": the configured one.
    """

    parameters: Mapping[str, Json] = field(default_factory=dict)
    parameter_defaults: Mapping[str, Json] = field(default_factory=dict)
    registry: ResourceRegistry = field(default_factory=ResourceRegistry)
    encrypted_param_names: tuple[str, ...] = ()
    hook_declarations: tuple[HookDeclaration, ...] = ()
    document: Mapping[str, Json] = field(default_factory=dict, repr=False)
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    region: str = ""


def parse_environment(
    document: Mapping[str, Json], operator: ResourceRegistry | None = NO_OPERATOR
) -> Environment:
    """Read a document (syntax/document.py) as an environment. Raises Invalid with all findings.

    operator: the registry of the operator's environment; None: this is the operator's environment.
    """
    findings = Findings()
    for name, value in document.items():
        if name not in SECTIONS:
            reason = f'environment has wrong section "{name}"'
            findings.add(name, reason, one_of(name, SECTIONS, "Sections"), "Invalid")
        elif value is None:
            reason = f'environment has empty section "{name}"'
            findings.add(name, reason, "Leave it out.", "Invalid")
        elif name in MAPS and not isinstance(value, dict):
            findings.add(name, f'"{name}" must be a map.', f"Write {name}: {{NAME: VALUE}}.")
    if findings.all:
        unread = {one.place for one in findings.all}
        document = {name: value for name, value in document.items() if name not in unread}
    _check_strategies(document.get("parameter_merge_strategies", {}), findings)
    section = document.get("resource_registry", {})
    registry, declarations = read_registry(section, findings, operator)
    declarations += read_hook_list(document.get("hooks"), "hooks", findings)
    read_event_sinks(document.get("event_sinks"), findings)
    region = read_context(document.get(CONTEXT, {}), findings)
    encrypted = document.get("encrypted_param_names", [])
    if not isinstance(encrypted, list) or not all(isinstance(one, str) for one in encrypted):
        findings.add(
            "encrypted_param_names",
            "This must be a list of names.",
            "Write a list of parameter names.",
        )
    findings.raise_if_any()
    return Environment(
        parameters=document.get("parameters", {}),
        parameter_defaults=document.get("parameter_defaults", {}),
        registry=registry,
        encrypted_param_names=tuple(encrypted),
        hook_declarations=tuple(declarations),
        document=document,
        warnings=findings.warnings,
        region=region,
    )


def _check_strategies(section: Mapping[str, Json], findings: Findings) -> None:
    known = [one.value for one in Strategy]
    for name, strategy in section.items():
        if strategy not in known:
            reason = f'Unknown merge strategy "{strategy}".'
            remedy = nearest(str(strategy), known) or f"Known: {', '.join(known)}."
            findings.warn(f"parameter_merge_strategies.{name}", reason, remedy, "NoEffect")
