"""Breakpoints in nested stacks: from every source, at every level, by name and path."""

from collections.abc import AsyncIterator

import pytest

from tests.support.program import Json, Program, program, resource, template

DB = """
heat_template_version: 2018-08-31
parameters:
  size: {type: string, default: small}
resources:
  disk:
    type: OS::Heat::TestResource
    properties: {value: {get_param: size}}
"""
WEB = """
heat_template_version: 2018-08-31
parameters:
  size: {type: string, default: small}
resources:
  db:
    type: db.yaml
    properties: {size: {get_param: size}}
  server:
    type: OS::Heat::TestResource
"""
FILES = {"web.yaml": WEB, "db.yaml": DB}
DISK = "web/db/disk"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def web(size: str = "small") -> Json:
    return {"web": {"type": "web.yaml", "properties": {"size": size}}}


async def waiting_at(run: Program, name: str) -> list[str]:
    """The paths and points of the waiting hooks of a stack tree."""
    hooks = await run.waiting_hooks(name)
    return [f"{hook['path']}:{hook['point']}" for hook in hooks]


async def answer_hook(run: Program, name: str) -> None:
    (hook,) = await run.waiting_hooks(name)
    assert (await run.signal(hook))[0] == 200


NESTED_FORM = {"web": {"db": {"disk": {"hooks": "pre-create"}}}}
SOURCES: dict[str, Json] = {
    "environment": {"environment": {"hooks": [{"at": DISK, "on": "pre-create"}]}},
    "globs": {"environment": {"hooks": [{"at": "w*/[d]b/?isk", "on": "pre-create"}]}},
    "heat": {"environment": {"resource_registry": {"resources": NESTED_FORM}}},
    "heat globs": {
        "environment": {
            "resource_registry": {"resources": {"*": {"*": {"*": {"hooks": ["pre-create"]}}}}}
        }
    },
    "request": {"hooks": {"add": [f"{DISK}:pre-create"]}},
    "template": {"template": template(web(), hooks=[{"at": DISK, "on": "pre-create"}])},
    "template inside": {
        "files": FILES
        | {"web.yaml": f"{WEB}hooks:\n- at: db/*\n  'on': pre-create\n  when: {{get_param: ask}}\n"
           .replace("parameters:", "parameters:\n  ask: {type: boolean, default: true}")}
    },
}  # fmt: skip


async def test_rules_of_every_source_match_nested_resources(running: Program) -> None:
    for place, (source, body) in enumerate(SOURCES.items()):
        await running.create(f"s{place}", web(), **{"files": FILES, **body})
        assert await waiting_at(running, f"s{place}") == [f"{DISK}:pre-create"], source
    _, response = await running.call("GET", "/hooks?state=waiting&path=web/*/disk")
    assert len(response["hooks"]) == len(SOURCES)
    for path in ("web/*", "*", "*/disk"):
        assert (await running.call("GET", f"/hooks?path={path}"))[1]["hooks"] == []


async def test_a_nested_hook_shows_its_stack_path_and_root(running: Program) -> None:
    stack_id = await running.create(
        "s", web(), files=FILES, hooks={"add": [f"{DISK}:pre-create", "web/server:post-create"]}
    )
    hooks = {hook["path"]: hook for hook in await running.waiting_hooks("s", 2)}
    assert set(hooks) == {DISK, "web/server"}
    hook = hooks[DISK]
    assert (hook["root_stack_id"], hook["root_stack_name"]) == (stack_id, "s")
    assert (hook["resource_name"], hook["stack_name"].startswith("s-web-")) == ("disk", True)
    child = await running.stack(hook["stack_id"])
    assert child["stack_name"] == hook["stack_name"]
    assert (await waiting_at(running, hook["stack_id"])) == [f"{DISK}:pre-create"]
    web_id = hooks["web/server"]["stack_id"]
    assert len(await running.waiting_hooks(web_id, 2)) == 2
    # Heat's way to answer, at the nested stack.
    path = f"/stacks/{child['stack_name']}/{child['id']}/resources/disk/signal"
    assert (await running.call("POST", path, {"unset_hook": "pre-create"}))[0] == 200
    await answer_hook(running, "s")
    assert await running.until_ended("s") == "CREATE_COMPLETE"


async def test_rules_of_the_request_override_other_sources_in_nested_stacks(
    running: Program,
) -> None:
    template_rules = [{"at": DISK, "on": "pre-create", "mode": "stop"}]
    nested_template_rules: Json = {"hooks": [{"at": "disk", "on": "pre-create", "mode": "stop"}]}
    files = FILES | {"db.yaml": f"{DB}hooks: {nested_template_rules['hooks']}\n"}
    await running.create(
        "s",
        web(),
        files=files,
        template=template(web(), hooks=template_rules),
        environment={"hooks": [{"at": DISK, "on": "pre-create", "answer_by": ["role:a"]}]},
        hooks={"add": [{"at": "*/*/*", "on": "pre-create", "answer_by": ["role:b"]}]},
    )
    (hook,) = await running.waiting_hooks("s")
    assert (hook["path"], hook["mode"], hook["answer_by"]) == (DISK, "wait", ["role:b"])


async def test_a_condition_is_evaluated_in_the_stack_of_its_rule(running: Program) -> None:
    rule = {"at": DISK, "on": "pre-create", "when": {"equals": [{"get_param": "tier"}, "prod"]}}
    for name, tier in (("held", "prod"), ("free", "test")):
        body = template(web(), parameters={"tier": {"type": "string"}})
        await running.create(
            name, {}, template=body, files=FILES,
            environment={"hooks": [rule]}, parameters={"tier": tier},
        )  # fmt: skip
    assert await waiting_at(running, "held") == [f"{DISK}:pre-create"]
    assert await running.until_ended("free") == "CREATE_COMPLETE"


async def test_cleared_breakpoints_open_no_hooks_in_nested_stacks(running: Program) -> None:
    rules = {"hooks": [{"at": "*/*/*", "on": ["pre-create", "post-create"]},
                       {"at": "*/server", "on": "pre-create"}]}  # fmt: skip
    cleared = {
        "all": ["*"],
        "paths": [f"{DISK}:p*", "web/server"],
        "one": ["web/server", f"{DISK}:pre-create"],
        "level": ["web/*"],
    }
    for name, clear in cleared.items():
        await running.create(name, web(), files=FILES, environment=rules, hooks={"clear": clear})
    assert await waiting_at(running, "one") == [f"{DISK}:post-create"]
    assert await waiting_at(running, "level") == [f"{DISK}:pre-create"]
    for name in ("all", "paths"):
        assert await running.until_ended(name) == "CREATE_COMPLETE"


async def test_a_nested_pre_update_hook_opens_at_every_update(running: Program) -> None:
    rules = {"resource_registry": {"resources": {"web": {"server": {"hooks": "pre-update"}}}}}
    await running.create("s", web(), files=FILES, environment=rules)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    for _ in range(2):
        await running.update("s")
        assert await waiting_at(running, "s") == ["web/server:pre-update"]
        await answer_hook(running, "s")
        assert await running.until_ended("s") == "UPDATE_COMPLETE"
    await running.update("s", hooks={"clear": ["web/server:pre-update"]})
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_delete_breakpoints_hold_in_a_removed_nested_stack(running: Program) -> None:
    rules = {"hooks": [{"at": DISK, "on": "pre-delete"}, {"at": "*/server", "on": "post-delete"}]}
    await running.create("s", web() | {"x": resource()}, files=FILES, environment=rules)
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    await running.update("s", "PUT", template=template({"x": resource()}))
    hooks = await running.waiting_hooks("s", 2)
    assert {hook["path"]: hook["point"] for hook in hooks} == {
        DISK: "pre-delete", "web/server": "post-delete"
    }  # fmt: skip
    for hook in hooks:
        await running.signal(hook)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


UNMATCHED: list[tuple[Json, str]] = [
    ({"environment": {"hooks": [{"at": "web/sever", "on": "pre-create"}]}}, '"web/server"?'),
    ({"environment": {"hooks": [{"at": "web/db/disc", "on": "pre-create"}]}}, f'"{DISK}"?'),
    ({"hooks": {"add": ["web/server/x:pre-create"]}}, "web/server"),
    ({"hooks": {"add": ["wb/server:pre-create"]}}, "Resources are: web."),
    ({"files": FILES | {"db.yaml": f"{DB}hooks: [{{at: disc, 'on': pre-create}}]\n"}}, '"disk"?'),
    ({"files": FILES | {"db.yaml": f"{DB}hooks: [{{at: disk, 'on': pre-crate}}]\n"}},
     "resources.web<web.yaml>.resources.db<db.yaml>.hooks[0].on"),
]  # fmt: skip


async def test_a_rule_that_matches_no_nested_resource_is_refused(running: Program) -> None:
    for body, message in UNMATCHED:
        sent = {"stack_name": "s", "template": template(web()), "files": FILES, **body}
        status, response = await running.call("POST", "/stacks", sent)
        assert status == 400 and message in str(response["error"]), response


OPERATOR_RULES = [
    {"on": ["pre-stack-create"]},
    {"on": ["pre-create"], "at": "disk", "answer_by": ["role:dba"]},
    {"on": ["post-create"], "at": "web/ser*"},
]


@pytest.fixture
async def guarded(database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, {"hooks.rules": OPERATOR_RULES}) as run:
        yield run


async def test_operator_rules_hold_at_every_level_and_stack_hooks_open_once(
    guarded: Program,
) -> None:
    await guarded.create("s", web(), files=FILES, hooks={"clear": ["*"]})
    assert await waiting_at(guarded, "s") == [":pre-stack-create"]
    await answer_hook(guarded, "s")
    hooks = {hook["path"]: hook for hook in await guarded.waiting_hooks("s", 2)}
    assert hooks[DISK]["answer_by"] == ["role:dba"]
    assert hooks["web/server"]["point"] == "post-create"
    await guarded.signal(hooks[DISK], roles="dba")
    await guarded.signal(hooks["web/server"])
    assert await guarded.until_ended("s") == "CREATE_COMPLETE"


@pytest.mark.parametrize("count", [0, 1])
async def test_a_path_into_a_group_of_any_size_is_accepted(running: Program, count: int) -> None:
    def group(value: str) -> Json:
        member = resource(value)
        properties = {"count": count, "resource_def": member}
        return {"g": {"type": "OS::Heat::ResourceGroup", "properties": properties}}

    await running.create("s", group("x"))
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    rules = {"hooks": {"add": [{"at": "g/7", "on": ["pre-update"]}]}}
    body = {"template": template(group("y")), **rules}
    found = await running.stack_request("PUT", "s", "/preview?show_nested=True", body)
    assert found["stops"] == []
    await running.update("s", "PUT", **body)
    assert await running.until_ended("s") == "UPDATE_COMPLETE"


async def test_a_path_to_a_nested_resource_whose_condition_is_false_is_accepted(
    running: Program,
) -> None:
    nested = DB.replace("resources:", "resources:\n  off: {type: OS::Heat::None, condition: false}")
    rules = {"hooks": [{"at": "web/off", "on": "pre-create"}]}
    await running.create(
        "s", {"web": {"type": "db.yaml"}}, files={"db.yaml": nested}, environment=rules
    )
    assert await running.until_ended("s") == "CREATE_COMPLETE"


MEMBERS = {"count": 1, "resource_def": {"type": "db.yaml"}}


@pytest.mark.parametrize(
    ("at", "remedy"), [("g/0/disc", 'Did you mean "0/disk"?'), ("g/O", "Resources are: 0.")]
)
async def test_a_breakpoint_at_no_resource_of_a_member_is_refused(
    running: Program, at: str, remedy: str
) -> None:
    """A gate that is never reached would let the change through."""
    things = {"g": {"type": "OS::Heat::ResourceGroup", "properties": MEMBERS}}
    body = {"environment": {"hooks": [{"at": at, "on": "pre-create"}]}, "files": {"db.yaml": DB}}
    await running.create("s", things, **body)
    assert await running.until_ended("s") == "CREATE_FAILED"
    reason = (await running.stack("s"))["stack_status_reason"]
    assert f'the breakpoint pattern "{at[2:]}" matches no resource' in reason and remedy in reason


async def test_a_breakpoint_at_a_member_of_a_larger_group_is_a_warning(running: Program) -> None:
    group = {"type": "OS::Heat::ResourceGroup", "properties": MEMBERS}
    things = {"g": group, "empty": {**group, "properties": MEMBERS | {"count": 0}}}
    rules = {"hooks": [{"at": one, "on": "pre-delete"} for one in ("g/7", "g/*", "empty/*")]}
    await running.create("s", things, environment=rules, files={"db.yaml": DB})
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    history = (await running.stack_request("GET", "s", "/history?nested=true"))["events"]
    (warned,) = filter(None, (one["data"].get("warnings") for one in history))
    assert len(warned) == 1 and '"7" matches no member that the group has now' in warned[0]
