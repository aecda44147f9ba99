"""The modules for the texts of the editor: parsing, writing, positions and comparison."""

import json
from typing import Any

from engine.hot.syntax.document import read_document
from tests.browser.conftest import Visitor

Json = Any
#: Values that a careless YAML writer would change.
AMBIGUOUS_VALUES: Json = {
    "description": "one: two # three",
    "texts": ["yes", "on", "No", "~", "null", "1:30", "0777", "1_000", "1e3", "=", "<<",
              "2018-08-31", "", " ", "- a", "a: b", "'", '"', "*a", "&a", "!a", "%a", "@a", "`a",
              "{a}", "[a]", "#", "\ta", "a\t", "a\\n", "\u00a0", "\u2028", "\x85", "é", "🚪", "******", "?",
              ":", "-", "...", "---", "true ", "\x07", "0x1F", "0o17", ".5", "+1", "inf", ".inf", ".nan", "y", "n"],
    "lines": ["a\nb\n", "a\nb", "\na", "a\n\n", " a\n  b\n", "#!/bin/sh\necho \"$x\"\n",
              "a \nb", "\n"],
    "numbers": [0, -1, 1.5, 1e300, 9007199254740991],
    "others": [True, False, None, [], {}, [[]], [{"a": []}]],
    "long": "word " * 60,
    "hooks": [{"at": "a", "on": ["pre-create"], "no": 1, "y": 2}],
    "calls": {"a": {"get_attr": ["a: b", "{c}, d", 1]}, "b": {"get_param": "x\ny"}},
    "on": {"yes": {"n": 1}, "1": 2, "null": 3, "true": 4, "~": 5, "a b": 6, "": 7, "*": 8},
}  # fmt: skip
ENVIRONMENT = """\
# who pays
parameters:   # of the shop
  size: 3     # small
  at: 1:30
  names: [a, b]
  script: |
    one
    two
  last: x

hooks: []
"""
TEMPLATE = """\
heat_template_version: 2018-08-31
parameters:
  size: {type: number}
  a.b: {type: string}
resources:
  web:
    type: web.yaml
    properties:
      list: [1, {deep: 2}]
      valu: 3
hooks:
  - {on: pre-create, at: web}
"""


async def test_written_yaml_has_the_same_value_on_the_server(visitor: Visitor) -> None:
    text = await visitor.module("editor/yaml.js", "(m, value) => m.toYaml(value)", AMBIGUOUS_VALUES)
    assert read_document(text, "text") == AMBIGUOUS_VALUES
    assert "|\n" in text and "\non:" in text, text
    assert 'a: {get_attr: ["a: b", "{c}, d", 1]}' in text, text
    lines = await visitor.module(
        "editor/yaml.js",
        "(m, values) => values.map(m.inline)",
        AMBIGUOUS_VALUES["texts"] + AMBIGUOUS_VALUES["lines"],
    )
    read = [read_document(f"a: {line}", "text")["a"] for line in lines]
    assert read == AMBIGUOUS_VALUES["texts"] + AMBIGUOUS_VALUES["lines"]
    ordered = await visitor.module(
        "editor/key_order.js",
        "(m, value) => JSON.stringify(m.orderKeys(value))",
        {"resources": {"a": {"id": "i", "type": "T", "properties": {"b": 2, "z": 1}}},
         "description": "d"},
    )  # fmt: skip
    assert ordered == (
        '{"description":"d","resources":{"a":{"type":"T","id":"i","properties":{"b":2,"z":1}}}}'
    )


async def test_the_order_of_keys_that_was_sent_is_kept(visitor: Visitor) -> None:
    sent = {"resources": {"a": {"type": "T", "properties": {"z": 1, "b": 2}}}, "description": "d"}
    shown = await visitor.module(
        "editor/key_order.js", "(m, value) => JSON.stringify(m.orderKeys(value))", sent
    )
    assert shown == json.dumps(sent, separators=(",", ":"))


async def test_setting_a_value_keeps_the_rest_of_the_text(visitor: Visitor) -> None:
    async def changed(text: str, name: str, value: Json) -> str | None:
        script = (
            "(m, [text, name, value]) => m.withValue(text, name, value === '-' ? undefined : value)"
        )
        found: str | None = await visitor.module(
            "editor/parameter_values.js", script, [text, name, value]
        )
        return found

    for name, value in (("size", 4), ("at", "yes"), ("names", ["c"]),
                        ("script", "a\nb"), ("last", "z"), ("new", {"k": [1]}), ("last", ""), ("script", "one")):  # fmt: skip
        text = await changed(ENVIRONMENT, name, value)
        assert text is not None
        assert read_document(text, "text")["parameters"] == {
            **read_document(ENVIRONMENT, "text")["parameters"], name: value
        }  # fmt: skip
        assert "# who pays" in text and "# of the shop" in text and "hooks: []" in text
        others = [line for line in ENVIRONMENT.splitlines() if name not in line][:5]
        assert name == "script" or all(line in text for line in others if line.strip())
        gone = await changed(text, name, "-")
        assert gone is not None and name not in read_document(gone, "text")["parameters"]
    for text in ("", "# a\n", "parameters:\n", "parameters: {}\n", "hooks: []",
                 "parameters: {b: 2}", "parameters: {b: 2, a: 1}\nhooks: []\n", "parameters:\n  a: !!str 5\n  b: 2",
                 "parameters:\n  a:\n  b: 2\n", "parameters:\n  a: &x 1\n",
                 '{"parameters": {"a": 2}}'):  # fmt: skip
        made = await changed(text, "a", "1 2")
        assert made is not None and read_document(made, "text")["parameters"]["a"] == "1 2", text
        less = await changed(made, "a", "-")
        assert less is not None
        result = read_document(less, "text") if less.strip("# a\n") else {}
        before = read_document(text, "text").get("parameters") if text.strip("# a\n") else {}
        kept = {key: value for key, value in (before or {}).items() if key != "a"}
        assert (result.get("parameters") or {}) == kept, (text, less)
    for text in ("a: [", "- a", "parameters: text"):
        assert await changed(text, "a", 1) is None


async def test_a_finding_is_shown_at_its_line(visitor: Visitor) -> None:
    texts = {
        "template": TEMPLATE,
        "environment": "parameters:\n  size: x\nhooks:\n  - on: pre-crate\n    at: web\n",
        "files": {"web.yaml": "heat_template_version: 2018-08-31\nresources:\n  db: {type: T}\n"},
    }

    async def line(place: str, reason: str = "") -> tuple[str, int]:
        script = "(m, [finding, texts]) => m.positionOf(finding, texts)"
        finding = {"place": place, "reason": reason}
        found = await visitor.module("editor/locations.js", script, [finding, texts])
        return found["text"], found["line"]

    assert await line("resources.web.properties.list[1].deep") == ("template", 9)
    assert await line("resources.web.properties.missing") == ("template", 8)
    assert await line("resources.web.properties", "Unknown Property valu") == ("template", 10)
    assert await line("parameters.a.b.type") == ("template", 4)
    assert await line("resources.web<web.yaml>.resources.db.type") == ("files/web.yaml", 3)
    assert await line("hooks[0].on") == ("environment", 4)
    assert await line("hooks.add[0]") == ("options", 0)
    assert await line("stack_name") == ("name", 0)
    assert await line("", "Parameter 'size' is invalid: 1") == ("environment", 2)
    assert await line("", "The Parameter (a.b) was not provided.") == ("template", 4)
    reason = "Error parsing environment: expected in line 5, column 1"
    assert await line("", reason) == ("environment", 5)
    assert await line("paramters", 'environment has wrong section "paramters"') == (
        "environment", 1,
    )  # fmt: skip
    script = "(m, texts) => m.syntaxErrors(texts).map(({spot}) => [spot.text, spot.line])"
    failing = texts | {"template": "a: 1\nb: [\nc: 2\n"}
    found = await visitor.module("editor/locations.js", script, failing)
    assert found and {text for text, _ in found} == {"template"}
    twice = texts | {"template": "a: 1\na: 2\n"}
    assert await visitor.module("editor/locations.js", script, twice) == []


async def test_a_plan_is_grouped_and_two_versions_are_compared(visitor: Visitor) -> None:
    def change(path: str, **more: Json) -> Json:
        return {"path": path, "changes": {}, "unknown": [], "certain": True, "denied": None, **more}

    value = {"path": "$.size", "value": 5, "template": 3, "adopted_by": "ann", "adopted_at": "t"}
    preview = {
        "resource_changes": {
            "added": [change("z"), change("pool/b"), change("pool-x"), change("pool"), change("pool/c")],
            "replaced": [change("web", certain=False)],
            "updated": [],
            "deleted": [change("old")],
            "unchanged": [change("a"), change("b", adopted=[value]), change("c", certain=False)],
        },
        "stops": [], "out_of_date": [], "plan_digest": "d",
    }  # fmt: skip
    script = "(m, preview) => { const p = m.planOf(preview); return [p, m.summary(p)]; }"
    plan, summary = await visitor.module("editor/plan.js", script, preview)
    assert summary == "1 deleted, 1 replaced, 5 added, 1 may change, 2 unchanged"
    assert [change["path"] for change in plan["groups"][-1]["resources"]] == ["c"]
    assert [change["path"] for change in plan["groups"][2]["resources"]] == [
        "pool", "pool/b", "pool/c", "pool-x", "z",
    ]  # fmt: skip
    assert plan["destroys"] == ["old", "web"] and not plan["same"]
    assert plan["adopted"] == [{"name": "b.size", "value": value}]
    found = await visitor.module(
        "editor/differences.js",
        "(m, [a, b]) => m.differences(a, b)",
        [{"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"c": [2], "b": 1}, "e": None}],
    )
    assert found == [
        {"place": "a.c", "from": [1], "to": [2]}, {"place": "d", "from": 1},
        {"place": "e", "to": None},
    ]  # fmt: skip
