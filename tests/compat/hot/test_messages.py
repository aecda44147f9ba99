"""Messages of errors are those of Heat, to the letter, in the recorded responses.

Not of every error: Headgate has its own sentences where those of Heat are Python's, or name no
reason. Each kind of message that is the same is listed here.
"""

import json
import re

import pytest

from tests.compat.hot.cases import RECORDED, TABLES
from tests.compat.hot.headgate_responses import ask_all
from tests.support.program import Json, program

AT = r"[Rr]esources\.\S+"
#: Patterns of Heat's messages.
SAME = (
    # -- parameters
    r"The Parameter \(\w+\) was not (provided|defined in template)\.",
    r"The following parameters are immutable and may not be updated: .+",
    r"Parameter '\w+' is invalid: (Invalid default .+|.*is out of range.*|.*is not a multiple.*)",
    r'Parameter \'\w+\' is invalid: ".+" (does not match pattern|is not an allowed value) .+',
    r"Missing parameter type for parameter: .+",
    r"Invalid type \(.+\)",
    r"Invalid parameter \(.+\), expected a mapping",
    r"Invalid key '\w+' for parameter \(\w+\)",
    r"A length constraint must have a min value and/or a max value specified\.",
    r"Conflicting merge strategy .+",
    # -- the template and its resources
    r".+: The template version is invalid: The function .+ is not supported in this version .+",
    r"The template section is invalid: .+",
    r"Environment not in valid format: environment has (wrong|empty) section .+",
    r"The Resource Type \(.+\) could not be found\.",
    r"Each [Rr]esource must contain a [Tt]ype key\.",
    r'Invalid deletion policy ".+"',
    r"Duplicate names .+",
    r"Output validation error: \S+: Each output definition must contain a [Vv]alue key\.",
    rf'{AT}: Invalid condition "\w+"',
    # -- properties
    rf"Property error: {AT}: Unknown Property .+",
    rf"Property error: {AT}: .+ is out of range .+",
    rf'Property error: {AT}: ".+" is not an allowed value .+',
    rf'Property error: {AT}: ".+" is not a (list|map|valid boolean)',
    rf"Property error: {AT}: The Parameter \(\w+\) was not provided\.",
    r'The specified reference "\w+" \(in \S+\) is incorrect\.',
    rf'{AT}: Arguments to "if" must be of the form: .+',
    r"outputs\.\S+: The Referenced Attribute \(.+\) is incorrect\.",
)
_SAME = re.compile("|".join(SAME), re.DOTALL)
#: Cases with another message, by reason.
OTHER = frozenset(
    {
        # Headgate reports all errors, or the one in the condition in place of that in its use.
        "sections/parameter_two_missing", "conditions/13", "conditions/14", "conditions/29",
        "conditions/47", "conditions/48", "conditions/68", "cfn/heat/conditions",
        "environments/wildcard_middle", "environments/wildcard_target_only",
        # It names the place in a nested template, and shows values as JSON.
        "validations/nested_wrong", "nested/given_map_for_list", "parameters/133",
        "functions/get_resource/4 property", "sections/resource_type_null",
        "sections/resource_type_empty",
    }
)  # fmt: skip


def text_of(message: str) -> str:
    """As Heat writes it without a message bus."""
    return message.replace(": : ", ": ")


@pytest.mark.parametrize("table", TABLES)
async def test_messages_are_those_of_heat(database_url: str, table: str) -> None:
    answers = json.loads((RECORDED / f"{table}.json").read_text())["answers"]
    heat = {name: one["refused"]["message"] for name, one in answers.items() if "refused" in one}
    same = {name: text for name, text in heat.items() if _SAME.fullmatch(text)}
    cases = [one for one in TABLES[table]() if one["name"] in same]
    async with program(database_url) as run:
        ours = await ask_all(run, cases)
    wrong: list[Json] = []
    for name, expected in same.items():
        refused = ours[name].get("refused")
        if refused is not None and name not in OTHER and text_of(refused["message"]) != expected:
            wrong.append(f"{name}\n  Heat: {expected}\n  here: {refused['message']}")
    assert not wrong, "\n".join(wrong)


def test_every_pattern_matches_a_recorded_message() -> None:
    texts = [
        one["refused"]["message"]
        for table in TABLES
        for one in json.loads((RECORDED / f"{table}.json").read_text())["answers"].values()
        if "refused" in one
    ]
    assert not [
        one for one in SAME if not any(re.fullmatch(one, text, re.DOTALL) for text in texts)
    ]
    assert sum(bool(_SAME.fullmatch(text)) for text in texts) > 100
