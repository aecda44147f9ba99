"""Two answers to one request, held against each other."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

#: Exceptions of Heat's that are nobody's intention: the request was answered with 500, or with the
#: text of an exception of Python's.
CRASHES = frozenset(
    {"AttributeError", "KeyError", "RecursionError", "Timeout", "TypeError", "ValueError", "error"}
)


class Unlike(StrEnum):
    """How two answers differ; the first that applies."""

    ONLY_HEAT_REFUSES = "only Heat refuses it"
    ONLY_WE_REFUSE = "only Headgate refuses it"
    ERROR_TYPE = "both refuse it, with errors of another type"
    STATUS = "the stack ends in another status"
    OUTPUTS = "outputs have other values"
    RESOURCES = "there are other resources"
    KEPT = "other resources are still the same ones"
    SAID = "it is said otherwise"


def unlike(heat: Mapping[str, Any], ours: Mapping[str, Any]) -> Unlike | None:
    """None: the same. Texts are not compared: ours name the place, the reason and the remedy."""
    match "refused" in heat, "refused" in ours:
        case True, True:
            type_ = heat["refused"]["type"]
            same = type_ in CRASHES or type_ == ours["refused"]["type"]
            return None if same else Unlike.ERROR_TYPE
        case True, False:
            return Unlike.ONLY_HEAT_REFUSES
        case False, True:
            return Unlike.ONLY_WE_REFUSE
    if "said" in heat:
        return Unlike.SAID if heat["said"] != ours["said"] else None
    if heat["status"] != ours["status"]:
        return Unlike.STATUS
    if heat["outputs"] != ours["outputs"] or heat["errors"].keys() != ours["errors"].keys():
        return Unlike.OUTPUTS
    if heat["resources"] != ours["resources"]:
        return Unlike.RESOURCES
    return Unlike.KEPT if heat.get("kept") != ours.get("kept") else None
