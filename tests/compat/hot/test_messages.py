"""Messages of errors are those of Heat, to the letter, in the recorded responses.

Each finding has a place, a reason and a remedy, and a line of the text that was sent.

Not every message is the same: DIFFERENT lists the others by class, with their exact number. The
reasons are in docs/reference/heat-differences.md, under the same keys.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest_asyncio
import yaml

from tests.compat.hot.cases import RECORDED, TABLES
from tests.compat.hot.headgate_responses import ask_all
from tests.support.postgres import TestServer
from tests.support.program import Json, program

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "heat-differences.md"
#: The number of recorded refusals that Headgate refuses too, and of those with Heat's message.
REFUSED, SAME = 668, 578
#: The number of messages that differ, and what Heat's message contains. The first class counts.
DIFFERENT = {
    "syntax-errors": (5, r"<unicode string>"),
    "circular-dependencies": (5, r"^Circular Dependency Found: "),
    "wrong-kinds": (
        46,
        r"object has no attribute|values? to unpack|cannot unpack|unhashable type"
        r"|dictionary update sequence|int\(\) argument|replace\(\) argument"
        r"|requires string as left|is not iterable|must be str or None",
    ),
    "without-place": (
        4,
        r"^could not convert|properties\.value: could not convert|unterminated|receiver \(\)",
    ),
    "missing-keys": (9, r"^'\w+'$|: '\w+'$|value: 0$"),
    "recursion": (2, r"maximum recursion"),
    "several": (6, None),
    "own-lists": (3, r"should be one of: 2013-05-23|acceptable hook types are: \("),
    "other-reason": (10, None),
}
#: Messages that name another fault than Heat's, or another place, with the reason why.
OTHER_REASON = {
    # The wildcard is not allowed there; that the type does not exist is the consequence.
    "environments/wildcard_middle": "cause",
    "environments/wildcard_target_only": "cause",
    # Heat passes null for an attribute, and the function complains about that argument. The first
    # argument that is wrong is another one.
    "functions/digest/5 late": "no null for an attribute",
    "functions/make_url/12 late": "no null for an attribute",
    "functions/make_url/17 late": "no null for an attribute",
    "functions/str_replace_vstrict/6 late": "no null for an attribute",
    # Where Heat has the property, the place is that of the function in it.
    "functions/str_split/16 late": "nearer place",
    "functions/str_split/16 property": "nearer place",
    "conditions/12": "nearer place",
    # The item of a list that is wrong, not the whole list.
    "parameters/187": "nearer place",
}


#: A set in a message, which has no order.
SET = re.compile(r"\{'[^{}:]+'\}")
#: Errors of what is not in the documents of the request.
WITHOUT_LINE = frozenset(
    {
        "environments/files_missing", "updates/immutable_changed_by_patch",
        "updates/immutable_cleared", "updates/patch_clears_needed",
        "updates/put_without_template", "validations/ignore_unknown",
    }
)  # fmt: skip


def comparable(message: str) -> str:
    """Return a message as Heat writes it without a message bus, with its sets in order."""
    return SET.sub(
        lambda found: str(sorted(found[0][1:-1].split(", "))), message.replace(": : ", ": ")
    )


def class_of(name: str, heat: str, ours: str) -> str:
    """Return the class of a message that differs; "" for none."""
    for key, (_, pattern) in DIFFERENT.items():
        if pattern is not None and re.search(pattern, heat):
            return key
        if key == "several" and "\n" in ours:
            return key
    return "other-reason" if name in OTHER_REASON else ""


def as_text(request: Json) -> Json:
    """Return a request with its documents as text, which has lines."""
    changed = dict(request)
    for key in ("create", "update", "body"):
        if key in changed:
            changed[key] = as_text(changed[key])
    for key in ("template", "environment"):
        if isinstance(changed.get(key), dict):
            changed[key] = yaml.safe_dump(changed[key], sort_keys=False)
    return changed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def responses(postgres: TestServer) -> tuple[dict[str, str], dict[str, Json]]:
    """The messages of Heat, and the responses of Headgate to the same requests, by name."""
    heat: dict[str, str] = {}
    cases = []
    for table, read in TABLES.items():
        answers = json.loads((RECORDED / f"{table}.json").read_text())["answers"]
        refused = {name: one["refused"] for name, one in answers.items() if "refused" in one}
        heat |= {name: one["message"] for name, one in refused.items()}
        for one in read():
            if one["name"] in refused:
                cases.append({**one, "request": as_text(one["request"])})
    async with postgres.new_database() as url, program(url) as run:
        return heat, await ask_all(run, cases)


def test_messages_are_those_of_heat(responses: tuple[dict[str, str], dict[str, Json]]) -> None:
    heat, answered = responses
    ours = {name: one["refused"]["message"] for name, one in answered.items() if "refused" in one}
    different = {
        name: class_of(name, heat[name], text)
        for name, text in ours.items()
        if comparable(text) != comparable(heat[name])
    }
    wrong: list[Json] = [
        f"{name}\n  Heat: {heat[name]}\n  here: {ours[name]}"
        for name, key in different.items()
        if not key
    ]
    assert not wrong, "\n".join(wrong)
    assert {name for name, key in different.items() if key == "other-reason"} == set(OTHER_REASON)
    assert Counter(different.values()) == {key: count for key, (count, _) in DIFFERENT.items()}
    assert (len(ours), len(ours) - len(different)) == (REFUSED, SAME)


def test_every_refusal_names_its_place_the_reason_and_the_remedy(
    responses: tuple[dict[str, str], dict[str, Json]],
) -> None:
    refused = {name: one["findings"] for name, one in responses[1].items() if "refused" in one}
    assert len(refused) == REFUSED and all(refused.values())
    assert not [
        (name, one)
        for name, findings in refused.items()
        for one in findings
        if not (one["place"] and one["reason"] and one["remedy"])
    ]
    assert {
        name
        for name, findings in refused.items()
        for one in findings
        if not (one["line"] and one["column"] and one["quote"])
    } == WITHOUT_LINE


def test_the_documentation_has_the_classes_and_their_numbers() -> None:
    section = PAGE.read_text().partition("## Messages of errors")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", section, re.MULTILINE)
    assert rows == [(key, str(count)) for key, (count, _) in DIFFERENT.items()]
    assert f"{SAME} of {REFUSED}" in section
