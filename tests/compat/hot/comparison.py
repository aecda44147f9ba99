"""Compares two responses to the same request."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

#: Exceptions in Heat that are unintended: it responds with 500, or with the text of a Python
#: exception.
CRASHES = frozenset(
    {"AttributeError", "KeyError", "RecursionError", "Timeout", "TypeError", "ValueError", "error"}
)


class DifferenceKind(StrEnum):
    """How two responses differ; the first that applies."""

    ONLY_HEAT_REFUSES = "only Heat refuses it"
    ONLY_WE_REFUSE = "only Headgate refuses it"
    ERROR_TYPE = "both refuse it, with errors of another type"
    STATUS = "the stack ends in another status"
    OUTPUTS = "outputs have other values"
    RESOURCES = "there are other resources"
    KEPT = "other resources are still the same ones"
    RESPONSE = "the response differs"


def difference_of(heat: Mapping[str, Any], ours: Mapping[str, Any]) -> DifferenceKind | None:
    """None if they are equal. Messages are not compared: those of Headgate have place, reason and
    remedy.
    """
    match "refused" in heat, "refused" in ours:
        case True, True:
            type_ = heat["refused"]["type"]
            same = type_ in CRASHES or type_ == ours["refused"]["type"]
            return None if same else DifferenceKind.ERROR_TYPE
        case True, False:
            return DifferenceKind.ONLY_HEAT_REFUSES
        case False, True:
            return DifferenceKind.ONLY_WE_REFUSE
    if "response" in heat:
        return DifferenceKind.RESPONSE if heat["response"] != ours["response"] else None
    if heat["status"] != ours["status"]:
        return DifferenceKind.STATUS
    if heat["outputs"] != ours["outputs"] or heat["errors"].keys() != ours["errors"].keys():
        return DifferenceKind.OUTPUTS
    if heat["resources"] != ours["resources"]:
        return DifferenceKind.RESOURCES
    return DifferenceKind.KEPT if heat.get("kept") != ours.get("kept") else None
