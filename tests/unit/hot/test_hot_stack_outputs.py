"""`stack_output` in the language: names, values, secrets and outputs that are missing."""

from typing import Any

import pytest

from engine.hot.definition.model import StackDefinition
from engine.hot.evaluation.stack_outputs import (
    MAX_OUTPUTS,
    OutputName,
    StackOutput,
    StackOutputs,
    decode_stack_outputs,
    encode_stack_outputs,
    sources_of,
)
from engine.hot.functions.cost_budget import CostLimits
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing

NET = StackOutput({"id": "n-1", "zones": ["a", "b"]}, source="11")
READ = {"stack_output": ["net", "all"]}


def known(**outputs: StackOutput) -> StackOutputs:
    return StackOutputs({OutputName("net", name): one for name, one in outputs.items()})


def template(value: Json, **sections: Json) -> dict[str, Json]:
    resources = {"a": thing(value=value), "b": thing()}
    return {"heat_template_version": "headgate", "resources": resources, **sections}


def built(value: Json, outputs: StackOutputs, **more: Any) -> StackDefinition:
    sections = {key: more.pop(key) for key in ("locals", "parameters") if key in more}
    return defined(template(value, **sections), stack_outputs=outputs, **more)


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (["net", "all"], NET.value),
        (["net", "all", "id"], "n-1"),
        (["net", "all", "zones", 1], "b"),
        (["${stack}", {"get_param": "output"}, "id"], "n-1"),
    ],
    ids=str,
)
def test_the_value_or_a_path_in_it(args: Json, value: Json) -> None:
    outputs = known(all=NET)
    parameters = {"output": {"type": "string", "default": "all"}}
    found = built({"stack_output": args}, outputs, locals={"stack": "net"}, parameters=parameters)
    assert found.resources["a"].properties == {"value": value}
    assert outputs.read == {OutputName("net", "all")} and not outputs.missing


def test_missing_outputs_are_named_and_reported_by_nothing() -> None:
    outputs = StackOutputs()
    template_ = template(READ) | {"outputs": {"o": {"value": {"stack_output": ["x", "y", "z"]}}}}
    template_["resources"]["c"] = thing() | {"for_each": READ}
    found = defined(template_, stack_outputs=outputs)
    assert outputs.missing == {OutputName("net", "all"), OutputName("x", "y")}
    assert found.warnings == ()


def test_a_secret_output_is_masked() -> None:
    secret = StackOutput("s3cret", secret=True, source="11")
    found = built("x-${key}", known(all=secret), locals={"key": READ})
    assert found.resources["a"].masked_properties == {"value": "x-******"}
    assert found.resources["a"].properties == {"value": "x-s3cret"}


def test_a_path_in_a_secret_output_does_not_quote_it() -> None:
    secret = StackOutput({"s3cret": 1}, secret=True, source="11")
    (found,) = faults(
        template({"stack_output": ["net", "all", "s3cred"]}), stack_outputs=known(all=secret)
    )
    assert "s3cret" not in str(found)


def test_an_error_has_its_place_and_remedy() -> None:
    wrong = StackOutput(error="There is none.", remedy="Create it.")
    (found,) = faults(template([READ]), stack_outputs=known(all=wrong))
    assert found.place == "resources.a.properties.value[0].stack_output"
    assert (found.reason, found.remedy) == ("There is none.", "Create it.")


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ("net", "takes [stack, output, key or index, ...]"),
        (["net"], "takes [stack, output, key or index, ...]"),
        (["net", ["all"]], "takes [stack, output, key or index, ...]"),
        (["net", {"get_attr": ["b", "output"]}], "names that are known when the stack is defined"),
        (["net", {"get_param": "key"}], "must not come from a hidden parameter"),
        (["net", "all", "no"], 'has no value: there is no "no"'),
    ],
    ids=["text", "one name", "a list", "an attribute", "a hidden parameter", "path"],
)
def test_wrong_arguments(args: Json, reason: str) -> None:
    hidden = {"key": {"type": "string", "hidden": True, "default": "s3cret"}}
    (found,) = faults(
        template({"stack_output": args}, parameters=hidden), stack_outputs=known(all=NET)
    )
    assert reason in found.reason and found.remedy and "s3cret" not in str(found)
    assert found.place == "resources.a.properties.value.stack_output"


def test_names_that_are_known_later_are_read_later() -> None:
    inner = (
        "heat_template_version: headgate\n"
        "parameters: {p: {type: string}}\n"
        'resources: {x: {type: "Test::Thing", properties: {value: {stack_output: [net, "${p}"]}}}}'
    )
    outputs = known(all=NET)
    files = {"inner.yaml": inner}

    def outer(value: Json) -> dict[str, Json]:
        nested = {"type": "inner.yaml", "properties": {"p": value}}
        return {"heat_template_version": "headgate", "resources": {"b": thing(), "n": nested}}

    defined(outer({"get_attr": ["b", "output"]}), files=files, stack_outputs=outputs)
    assert not outputs.read | outputs.missing
    defined(outer("all"), files=files, stack_outputs=outputs)
    assert outputs.read == {OutputName("net", "all")}


def test_numbers_and_sizes_are_limited() -> None:
    many = [{"stack_output": ["net", f"o{number}"]} for number in range(MAX_OUTPUTS + 1)]
    (found,) = faults(template(many), stack_outputs=StackOutputs())
    assert f"more than {MAX_OUTPUTS} outputs" in found.reason
    large = known(all=StackOutput("x" * 10_000, source="11"))
    found = faults(template([READ] * 10), stack_outputs=large, limits=CostLimits(size=50_000))[0]
    assert "larger than 50000 characters" in found.reason


def test_earlier_versions_warn_of_the_name() -> None:
    older = template(READ) | {"heat_template_version": "2021-04-16"}
    (warning,) = defined(older).warnings
    assert warning.code == "UnknownFunction" and "2026-12-01" in warning.remedy + warning.reason


def test_the_stored_form_is_read_back() -> None:
    outputs = {OutputName("net", "all"): NET, OutputName("x", "y"): StackOutput("s", True, "22")}
    assert decode_stack_outputs(encode_stack_outputs(outputs)) == outputs
    assert sources_of(outputs.values()) == ["11", "22"]


def test_a_stack_that_does_not_exist_yet_reads_no_output_of_its_own() -> None:
    (found,) = faults(template({"stack_output": ["s", "all"]}))
    assert found.reason == "A stack cannot read its own outputs."
    assert found.remedy == "Read the resource with get_attr."


def test_the_id_of_data_from_a_secret_output_is_refused_for_that_reason() -> None:
    secret = StackOutput("hush", secret=True)
    written = template(1, data={"d": {"type": "Test::Thing", "id": READ}})
    (found,) = faults(written, stack_outputs=known(all=secret))
    assert "a secret output" in found.reason and "an output that is not secret" in found.remedy
    assert "hush" not in str(found)
