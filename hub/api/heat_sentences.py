"""The messages of OpenStack Heat's errors, which programs compare.

A finding has the sentence as its reason. Its place and its remedy are Headgate's additions, so the
message of an error leaves them out if Heat has a sentence for it.
"""

import re
from collections.abc import Mapping
from typing import Final

from engine.errors import Finding

#: Heat's formats by code: `msg_fmt` of the class of that name in heat/common/exception.py.
FORMATS: Final[Mapping[str, str]] = {
    "ActionInProgress": "Stack %(stack_name)s already has an action (%(action)s) in progress.",
    "CircularDependencyException": "Circular Dependency Found: %(cycle)s",
    "ConflictingMergeStrategyForParam": "Conflicting merge strategy '%(strategy)s' for parameter"
    " '%(param)s' in file '%(env_file)s'.",
    "EntityNotFound": "The %(entity)s (%(name)s) could not be found.",
    "ImmutableParameterModified": "The following parameters are immutable and may not be updated:"
    " %(keys)s",
    "InvalidMergeStrategyForParam": "Invalid merge strategy '%(strategy)s' for parameter"
    " '%(param)s'.",
    "InvalidTemplateAttribute": "The Referenced Attribute (%(resource)s %(key)s) is incorrect.",
    "InvalidTemplateReference": 'The specified reference "%(resource)s" (in %(key)s) is incorrect.',
    "InvalidTemplateSection": "The template section is invalid: %(section)s",
    "InvalidTemplateVersion": "The template version is invalid: %(explanation)s",
    "InvalidTenant": "Searching Tenant %(target)s from Tenant %(actual)s forbidden.",
    "NotSupported": "%(feature)s is not supported.",
    "RequestLimitExceeded": "Request limit exceeded: %(message)s",
    "ResourceActionNotSupported": "%(action)s is not supported for resource.",
    "ResourceNotAvailable": "The Resource (%(resource_name)s) is not available.",
    "ResourceNotFound": "The Resource (%(resource_name)s) could not be found in Stack"
    " %(stack_name)s.",
    "SnapshotNotFound": "The Snapshot (%(snapshot)s) for Stack (%(stack)s) could not be found.",
    "StackExists": "The Stack (%(stack_name)s) already exists.",
    "UnknownUserParameter": "The Parameter (%(key)s) was not defined in template.",
    "UserParameterMissing": "The Parameter (%(key)s) was not provided.",
}
_KEY = re.compile(r"%\(\w+\)s")
_PATTERNS: Final = {
    code: re.compile(".+".join(map(re.escape, _KEY.split(text))), re.DOTALL)
    for code, text in FORMATS.items()
}
#: The code of errors whose sentence contains a reason of Headgate's own.
_LIMIT: Final = "RequestLimitExceeded"
_PROPERTY_PLACE = re.compile(r"resources\..*\.properties|Resources\..*\.Properties")


def heat_sentence(finding: Finding) -> str | None:
    """Heat's message of an error; None if Heat has none."""
    if pattern := _PATTERNS.get(finding.code):
        if pattern.fullmatch(finding.reason):
            return finding.reason
        if finding.code == _LIMIT:
            return FORMATS[_LIMIT] % {"message": finding.reason}
    if _PROPERTY_PLACE.match(finding.place):
        return f"Property error: : {finding.place}: : {finding.reason}"
    return None
