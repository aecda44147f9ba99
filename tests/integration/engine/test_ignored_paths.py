"""Paths of `convergence.ignore` that match nothing are refused where the types can tell, else a
warning."""

from collections.abc import Mapping
from json import dumps, loads
from pathlib import Path
from typing import Any

import pytest

from tests.support.changes import thing as simple
from tests.support.http_things import HTTP_SETTINGS, Things, thing
from tests.support.program import Json, Program

REFERENCE = Path(__file__).parents[3] / "docs/reference/environments.md"
THINGS = Things("http://127.0.0.1:1")
ONE: Json = thing(THINGS, compare={"$.size": 1, "$.tags.owner": "ada"})
VALUE: Json = {"type": "OS::Heat::Value", "properties": {"value": {"$.size": 1}}}
UNKNOWN: Json = {"get_attr": ["value", "value"]}
INNER = dumps({"heat_template_version": "2018-08-31", "resources": {"inner": ONE}})


def group_of(member: Json, count: Json = 2) -> Json:
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": member},
    }


@pytest.fixture(scope="module")
def things_settings() -> Mapping[str, Any]:
    return HTTP_SETTINGS


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


async def previewed(
    run: Program, resources: Json, ignore: Json, files: Json = None
) -> tuple[int, Any]:
    """The preview of a stack with these ignored paths: its status, and its warnings or findings."""
    document = {"heat_template_version": "2018-08-31", "resources": resources}
    environment = {"convergence": {"observe": {"every": "10m"}, "ignore": ignore}}
    body = {"stack_name": "s", "template": document, "environment": environment}
    status, found = await run.call("POST", "/stacks/preview", body | {"files": files or {}})
    if status == 200:
        return status, found["stack"]["warnings"]
    return status, found["error"]["findings"]


REFUSED: dict[str, tuple[Json, Json, str, str]] = {
    "a typo": ({"a": ONE}, {"a": ["$.sise"]}, "a", 'Did you mean "$.size"?'),
    "no similar one": (
        {"a": ONE}, {"a": ["metadata.*"]}, "a", "Compared are: $.size, $.tags.owner."
    ),
    "beside a group": (
        {"a": ONE, "group": group_of(ONE)}, {"a": ["$.sise"]}, "a", 'Did you mean "$.size"?'
    ),
    "members of a group": (
        {"group": group_of(ONE)}, {"group/*": ["$.sise"]}, "group/*", 'Did you mean "$.size"?'
    ),
    "a member that the group does not have yet": (
        {"group": group_of(ONE)}, {"group/7": ["$.sise"]}, "group/7", 'Did you mean "$.size"?'
    ),
    "everywhere": (
        {"a": ONE, "group": group_of(ONE)}, {"*": ["$.sise"]}, "*", 'Did you mean "$.size"?'
    ),
    "in a nested template": (
        {"nested": {"type": "inner.yaml"}}, {"nested/inner": ["$.sise"]}, "nested/inner",
        'Did you mean "$.size"?',
    ),
    "by name in a nested template": (
        {"nested": {"type": "inner.yaml"}}, {"inner": ["$.sise"]}, "inner",
        'Did you mean "$.size"?',
    ),
    "the group in place of its members": (
        {"group": group_of(ONE)}, {"group": ["$.size"]}, "group",
        'For the resources of its nested stack, write "group/*".',
    ),
    "a type that is not observed": (
        {"value": VALUE}, {"value": ["value"]}, "value", "Compared are: none."
    ),
    "a type that is not observed, beside another": (
        {"value": VALUE, "a": ONE}, {"*": ["$.sise"]}, "*", 'Did you mean "$.size"?'
    ),
    "a value that is not known": (
        {"value": VALUE, "a": thing(THINGS, compare={"$.size": UNKNOWN})}, {"a": ["$.sise"]}, "a",
        'Did you mean "$.size"?',
    ),
    "another property that is not known": (
        {"value": VALUE, "a": thing(THINGS, timeout=UNKNOWN)}, {"a": ["$.sise"]}, "a",
        'Did you mean "$.size"?',
    ),
    "nothing is compared": (
        {"a": thing(THINGS, compare=None)}, {"a": ["$.size"]}, "a", "Compared are: none."
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
async def test_a_path_that_matches_nothing_is_refused(run: Program, case: str) -> None:
    resources, ignore, pattern, remedy = REFUSED[case]
    status, found = await previewed(run, resources, ignore, {"inner.yaml": INNER})
    assert status == 400, found
    ((path,),) = ignore.values()
    reason = f'the path "{path}" matches no property that is compared'
    assert [(one["place"], one["reason"], one["remedy"]) for one in found] == [
        (f"convergence.ignore.{pattern}", reason, remedy)
    ]


#: The resources that cannot tell are named.
WARNED: dict[str, tuple[Json, Json, str, str]] = {
    "a type that declares nothing": ({"a": simple()}, {"a": ["sise"]}, "a", "Check it"),
    "beside one that does": (
        {"a": simple(), "b": ONE}, {"*": ["$.sise"]}, "a", 'Did you mean "$.size"?'
    ),
    "compared values that are not known": (
        {"value": VALUE, "a": thing(THINGS, compare=UNKNOWN), "b": ONE}, {"[ab]": ["$.sise"]}, "a",
        'Did you mean "$.size"?',
    ),
    "members that are not known": (
        {"value": VALUE, "group": group_of(thing(THINGS, compare=UNKNOWN), UNKNOWN)},
        {"group/*": ["$.sise"]}, "group/", "Check it",
    ),
    "many": (
        {f"a{number}": simple() for number in range(5)}, {"*": ["sise"]}, "a0, a1, a2 and 2 more",
        "Check it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WARNED)
async def test_a_path_that_may_match_nothing_is_a_warning(run: Program, case: str) -> None:
    resources, ignore, named, remedy = WARNED[case]
    status, found = await previewed(run, resources, ignore)
    assert status == 200, found
    (warning,) = found
    ((pattern, (path,)),) = ignore.items()
    assert warning["code"] == "UnmatchedPattern"
    assert warning["path"] == f"convergence.ignore.{pattern}"
    assert f'"{path}" matches no property that is known' in warning["message"]
    assert f"what is compared of {named}" in warning["message"], warning["message"]
    assert remedy in warning["message"]


ACCEPTED: dict[str, tuple[Json, Json]] = {
    "a path": ({"a": ONE}, {"a": ["$.size", "$.tags.*"]}),
    "of one of several": ({"a": ONE, "v": VALUE, "t": simple()}, {"*": ["$.tags.owner"]}),
    "members of a group": ({"group": group_of(ONE)}, {"group/*": ["$.size"]}),
    "a member that the group does not have yet": (
        {"group": group_of(ONE)}, {"group/7": ["$.size"]}
    ),
    "in a nested template": ({"nested": {"type": "inner.yaml"}}, {"nested/inner": ["$.size"]}),
    "by name in a nested template": ({"nested": {"type": "inner.yaml"}}, {"in*": ["$.size"]}),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
async def test_a_path_that_matches_is_accepted(run: Program, case: str) -> None:
    resources, ignore = ACCEPTED[case]
    assert await previewed(run, resources, ignore, {"inner.yaml": INNER}) == (200, [])


async def test_the_example_of_the_reference_is_accepted(run: Program) -> None:
    (line,) = [one for one in REFERENCE.read_text().splitlines() if one.startswith("| `ignore` |")]
    ignore = loads(line.split("by resource: `")[1].split("`")[0])
    assert ignore.keys() == {"web*", "group/*"}
    resources = {"web1": ONE, "group": group_of(ONE)}
    assert await previewed(run, resources, ignore) == (200, [])


async def test_resources_with_keys_are_checked(run: Program) -> None:
    web = loads(dumps(ONE | {"for_each": ["a", "b"]}).replace("${", "$${"))
    document = {"heat_template_version": "2026-12-01", "resources": {"web": web}}

    async def status(path: str) -> int:
        environment = {"convergence": {"observe": {"every": "10m"}, "ignore": {"web": [path]}}}
        body = {"stack_name": "s", "template": document, "environment": environment}
        return (await run.call("POST", "/stacks/preview", body))[0]

    assert [await status("$.size"), await status("$.sise")] == [200, 400]


async def test_a_resource_that_the_update_deletes_does_not_disable_the_check(run: Program) -> None:
    await run.create("s", {"a": simple(), "b": simple()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    body: Json = {
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": ONE}},
        "environment": {"convergence": {"observe": {"every": "10m"}, "ignore": {"a": ["$.sise"]}}},
    }
    stack = await run.stack("s")
    path = f"/stacks/s/{stack['id']}/preview"
    assert (await run.call("PUT", path, body))[0] == 400
    # What the one that is deleted compares is not known.
    body["environment"]["convergence"]["ignore"] = {"*": ["$.sise"]}
    status, found = await run.call("PUT", path, body)
    assert status == 200, found
    assert [one["code"] for one in found["warnings"]] == ["UnmatchedPattern"]
