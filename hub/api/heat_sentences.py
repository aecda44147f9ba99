"""The messages of OpenStack Heat's errors, which programs compare.

A finding has the sentence as its reason. Its place and its remedy are Headgate's additions, so the
message of an error leaves them out if Heat has a sentence for it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.errors import Finding, Invalid
from engine.hot.language.versions import VERSIONS

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
#: Heat's other sentences, which are the whole message.
SENTENCES: Final = (
    r"Parameter '.+?' is invalid: .+",
    r"No template specified",
    r"No stack name specified",
    r"Invalid stack name .+ must contain only alphanumeric .+",
    r"Invalid stack name .+, must be a string",
    r"(No action|Multiple actions|Invalid action .+) specified",
    r"Only integer is acceptable by '.+'\.",
    r"Value '.+' is invalid for '.+' which only accepts non-negative integer\.",
    r'Unrecognized value ".*" for ".+", acceptable values are: true, false\.',
    r'Invalid tag, ".+" is longer than 80 characters',
    r"Invalid filter parameters \[.+\]",
    r"Invalid keys in resource mark unhealthy \{.+\}",
    r"Missing mandatory \(mark_unhealthy\) key from mark unhealthy request",
    r"Template type is not supported: .+",
    r"Template with version .+ not found",
    r"Missing parameter type for parameter: .+",
    r"Invalid type \(.+\)",
    r"Invalid parameter \(.+\), expected a mapping",
    r"Invalid key '.+' for parameter (\(.+\)|constraints)",
    r"Invalid parameter constraints, expected a mapping",
    r"No constraint expressed",
    r"A (length|range) constraint must have a min value and/or a max value specified\.",
    r"A modulo constraint must have a step value and an offset value specified\.",
    r"step cannot be 0\.",
    r"offset must be smaller \(by absolute value\) than step\.",
    r"step and offset must be both positive or both negative\.",
    r"The Resource Type \(.+\) could not be found\.",
    r"Each [Rr]esource must contain a [Tt]ype key\.",
    r'"resources" must contain a map of resource maps\. Found a \[.+\] instead',
    r'".+" is not a valid keyword inside a resource definition',
    r'Invalid deletion policy ".*"',
    r"The template section is invalid: .+",
    r"Duplicate names \{.+\}",
    r'Condition validation error: (The|Circular) definition (of|for) condition ".+',
    r"Parameter Groups error: parameter_groups.*: .+",
    r"Tags property should be a list for parameter: .+",
    r"Invalid parameter constraints for parameter .+, expected a list",
    r"Invalid (length|range) constraint, expected a mapping",
    r"Invalid key '.+' for (length|range) constraint",
    r"(AllowedValues must be a list|AllowedPattern must be a string)",
    r"Resource .+ type must be (string|object|list or string|string_or_boolean)",
    r"Resource .+ must be a list of strings",
    r'Resource name may not contain "/"',
    r"Invalid keyword\(s\) inside a resource definition: .+",
    r"(Snapshot|Software config|Deployment) with id .+ not found",
    r"Specified output key .+ not found\.",
    r"No events found for resource .+",
    r"No event .+ found",
    r'Invalid hook type ".*" for resource breakpoint, acceptable hook types are: .+',
    r"Invalid restricted_action type .+ for resource, acceptable restricted_action types are: .+",
)
#: Heat's sentences that follow the kind of the error.
SENTENCES_OF_KINDS: Final[Mapping[str, str]] = {
    r'environment has (wrong|empty) section ".+"': "Environment not in valid format",
    r"Error parsing template: .+": "Template not in valid format",
    r"Error parsing environment: .+": "Environment not in valid format",
    r"The template is not a JSON object or YAML mapping\.": "Template not in valid format",
    r"Template format version not found\.": "Template not in valid format",
    r"The environment is not a valid YAML mapping data type\.": "Environment not in valid format",
    r"Condition definitions must be a map\. Found .+": "Conditions validation error",
}
#: Heat's sentences that follow the place.
SENTENCES_AT_PLACES: Final = (
    r'Invalid condition ".+"',
    r'The function ".+" is invalid in this context',
    r"The Referenced Attribute \(.+\) is incorrect\.",
    r'Arguments to ".+" must be of the form:? \[.+\]',
    r'Arguments to ".+" can be of the next forms: .+',
    r'Arguments to "(?!Fn::MemberListToMap).+" must be a map\.?',
    r'Arguments to ".+" must be a list of conditions',
    r'The minimum number of condition arguments to ".+" is 2\.',
    r'Argument to "(filter|get_attr)" must be a list',
    r'"filter" expected 2 arguments .+',
    r'The arguments to "make_url" must be a map',
    r'Invalid arguments to "make_url": .+',
    r'The ".+" argument to "make_url" must be a (map|string)',
    r'The "for_each" argument to "repeat" must contain a map',
    r'"str_replace\w*" parameters must be a mapping',
    r"Bad expression Parse error: unexpected end of statement\.",
    r'".+" deletion policy not supported',
    *(
        rf'Incorrect arguments to "{name}" should be: .+'
        for name in (
            "Fn::Join",
            "Fn::Replace",
            "Fn::Split",
            "contains",
            "list_join",
            "resource_facade",
            "Fn::ResourceFacade",
            "str_split",
        )
    ),
    r'Incorrect arguments to "(resource_facade|Fn::ResourceFacade)" should be one of: .+',
    r'"Fn::Replace" parameters must be a mapping',
    r'The "expression" argument to yaql must contain a string\.',
    r'Invalid URL port ".*" for make_url called with .+',
    r"Invalid URL port \d+, must be in range 1-65535",
    r"Fn::MemberListToMap (Key|Value) Name must be a string",
    r'"permutations" should be boolean type for repeat function\.',
)
#: Heat's sentences about functions in a condition, without its place.
SENTENCES_OF_CONDITIONS: Final = (r'Second argument to "contains" should be a sequence\.',)
#: A reference in an output or by `Ref`. Heat does not know what refers; Headgate names it.
_REFERENCE = re.compile(r'(The specified reference ".+" \(in ).+(\) is incorrect\.)')
#: Heat's sentences about outputs, which follow the kind of the error and the place.
SENTENCES_OF_OUTPUTS: Final = (
    r"Each output definition must contain a [Vv]alue key\.",
    r"Output definitions must be a map\. Found .+",
)
_KEY = re.compile(r"%\(\w+\)s")
_PATTERNS: Final = {
    code: re.compile(".+".join(map(re.escape, _KEY.split(text))), re.DOTALL)
    for code, text in FORMATS.items()
}
#: The code of errors whose sentence contains a reason of Headgate's own.
_LIMIT: Final = "RequestLimitExceeded"
#: The functions that Heat has.
_FUNCTIONS: Final = "|".join(
    sorted(
        {
            re.escape(name)
            for version in VERSIONS.values()
            if not version.extended
            for name in version.functions
        }
    )
)
#: The place of a property, without that of a function in its value.
_PROPERTY_PLACE = re.compile(
    r"(?:resources\..+?\.properties|Resources\..+?\.Properties)"
    rf"(?:\.[^.]+(?:\.(?!(?:{_FUNCTIONS})(?:[.[]|$))[^.]+)*)?"
)
#: A parameter of a nested template, and the place of that template.
_NESTED_PARAMETER = re.compile(r"(.+>)\.parameters\.[^.]+(?:\.default)?$")
#: The template of `repeat`, which Heat reads on its own.
_REPEATED = re.compile(r"(\.repeat)\.template(?=\.|$)")
_WHOLE = re.compile("|".join(SENTENCES), re.DOTALL)
_AT_PLACE = re.compile("|".join(SENTENCES_AT_PLACES), re.DOTALL)
_OF_CONDITION = re.compile("|".join(SENTENCES_OF_CONDITIONS))
_OF_OUTPUT = re.compile("|".join(SENTENCES_OF_OUTPUTS))
_OF_KINDS = [(re.compile(text), kind) for text, kind in SENTENCES_OF_KINDS.items()]
_UNSUPPORTED_FUNCTION = re.compile(r"The function .+ is not supported in this version of HOT\.")
#: What Heat writes after the kind and the place of an error: in responses to requests that reach
#: its engine as messages, and in those of POST /validate.
SEPARATOR: Final = ": : "
VALIDATE_SEPARATOR: Final = ": "


class InvalidTemplate(Invalid):
    """The error of POST /validate: Heat has one type for all. originals: with their own types."""

    def __init__(self, originals: Sequence[Finding], warnings: Sequence[Finding] = ()) -> None:
        super().__init__([replace(one, code="Invalid") for one in originals], warnings)
        self.originals = tuple(originals)


def heat_sentence(
    finding: Finding, separator: str = SEPARATOR, *, alone: bool = True
) -> str | None:
    """Heat's message of an error; None if Heat has none, or if its message does not say which of
    several errors it is. alone: whether the response has no other error."""
    reason, place = finding.heat_reason or finding.reason, finding.place
    if (pattern := _PATTERNS.get(finding.code)) and pattern.fullmatch(reason):
        return finding.sentence if alone and finding.sentence else reason
    if finding.code == _LIMIT:
        return FORMATS[_LIMIT] % {"message": reason}
    if alone and (known := _sentence_alone(finding, separator)):
        return known
    if _UNSUPPORTED_FUNCTION.fullmatch(reason):
        return f"{place}{separator}The template version is invalid: {reason}"
    if finding.code != "InvalidTemplateReference" and (found := _REFERENCE.fullmatch(reason)):
        reason = f"{found[1]}unknown{found[2]}"
    prefix = _prefix(place, reason)
    return None if prefix is None else separator.join((*prefix, reason))


def _sentence_alone(finding: Finding, separator: str) -> str | None:
    """Return a sentence that does not say which of several errors it is."""
    reason, place = finding.heat_reason or finding.reason, finding.place
    if finding.sentence:
        return finding.sentence.replace(SEPARATOR, separator)
    if _WHOLE.fullmatch(reason):
        if "<" not in place or separator == VALIDATE_SEPARATOR:
            return reason
        if finding.code == "InvalidSchemaError" and (nested := _NESTED_PARAMETER.match(place)):
            return separator.join((finding.code, nested[1], reason))
    if place.lower().startswith("conditions.") and _OF_CONDITION.fullmatch(reason):
        return reason
    kinds = (kind for sentence, kind in _OF_KINDS if sentence.fullmatch(reason))
    return next((f"{kind}: {reason}" for kind in kinds), None)


def _prefix(place: str, reason: str) -> tuple[str, ...] | None:
    """Return what Heat writes before a reason; None if it has another one."""
    if place and _AT_PLACE.fullmatch(reason):
        return (place,)
    if place.startswith(("outputs.", "Outputs.")) and _REFERENCE.fullmatch(reason):
        return tuple(_REPEATED.sub(r"\1: template", place).split(": "))
    if _OF_OUTPUT.fullmatch(reason):
        return ("Output validation error", place)
    if found := _PROPERTY_PLACE.match(place):
        return ("Property error", found[0])
    return None
