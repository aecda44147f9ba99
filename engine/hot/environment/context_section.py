"""The section `context` of an environment: where the stack has its physical resources."""

from collections.abc import Mapping
from typing import Final

from engine.errors import Findings
from engine.words import Json

CONTEXT: Final = "context"
REGION_NAME: Final = "region_name"
REGION_PLACE: Final = f"{CONTEXT}.{REGION_NAME}"
#: Characters of the ID of a region in Keystone.
MAX_LENGTH: Final = 255
#: What describes another cloud in the `context` of OS::Heat::Stack, or has that name elsewhere.
_OTHER_CLOUD: Final = frozenset(
    {"cloud", "credential_secret_id", "ca_cert", "insecure", "auth_url"}
)


def names_region(environment: Mapping[str, Json]) -> bool:
    """Whether a valid environment document names a region."""
    return REGION_NAME in environment.get(CONTEXT, {})


def with_region(environment: Mapping[str, Json], region: str) -> dict[str, Json]:
    """A valid environment document that names this region; "": none."""
    section = {**environment.get(CONTEXT, {})}
    section.pop(REGION_NAME, None)
    if region:
        section[REGION_NAME] = region
    kept = {name: value for name, value in environment.items() if name != CONTEXT}
    return {**kept, CONTEXT: section} if section else kept


def read_context(section: Mapping[str, Json], findings: Findings) -> str:
    """The region of the stack, "" for none. Adds findings."""
    for name in section:
        place = f"{CONTEXT}.{name}"
        if name in _OTHER_CLOUD:
            reason = "A stack is always in the cloud of the server, with the requester's token."
            remedy = "Use a resource OS::Heat::Stack for a stack in another cloud."
            findings.add(place, reason, remedy)
        elif name != REGION_NAME:
            reason = f'"{name}" is not a key of {CONTEXT}.'
            findings.add(place, reason, f"Its only key is {REGION_NAME}.")
    region = section.get(REGION_NAME, "")
    is_id = isinstance(region, str) and region.isprintable() and len(region) <= MAX_LENGTH
    if not is_id or (REGION_NAME in section and not str(region).strip()):
        reason = f"It must be the ID of a region, a string of 1 to {MAX_LENGTH} characters."
        remedy = "Write the ID of a region in your service catalog, or leave out the section."
        findings.add(REGION_PLACE, reason, remedy)
        return ""
    return str(region)
