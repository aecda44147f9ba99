"""Software configs as resources: storage, validation and MIME documents."""

from email import message_from_string
from email.message import Message
from uuid import UUID

import pytest
import yaml

from engine.errors import Findings
from engine.types.contract import Done, Failed, Outcome
from engine.types.registry import TypeRegistry
from engine.types.software.software_store import NewConfig
from engine.words import Json
from tests.unit.types.calls import KEY, a_call, findings_of, registry, run
from tests.unit.types.software.in_memory import InMemoryStore

SOFTWARE, STRUCTURED, CLOUD = (
    f"OS::Heat::{name}Config" for name in ("Software", "Structured", "Cloud")
)
COMPONENT, MIME = "OS::Heat::SoftwareComponent", "OS::Heat::MultipartMime"


@pytest.fixture
def software_store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def types(software_store: InMemoryStore) -> TypeRegistry:
    return registry(software_store=software_store)


async def create(types: TypeRegistry, name: str, properties: Json, **more: Json) -> Outcome:
    type_ = types.get(name)
    return await run(type_, "create", a_call(type_, properties, **more))


async def text_of(types: TypeRegistry, properties: Json) -> str:
    outcome = await create(types, MIME, properties)
    assert isinstance(outcome, Done), outcome
    return str(outcome.attributes["config"])


def places_of(types: TypeRegistry, name: str, properties: Json) -> list[str]:
    return [
        one.place.removeprefix("resources.r.properties.")
        for one in findings_of(types.get(name), properties)
    ]


async def test_a_config_is_stored_under_the_operation_key(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    properties: Json = {
        "config": "echo $a",
        "group": "script",
        "options": {"o": 1},
        "inputs": [{"name": "a", "default": "x"}],
        "outputs": [{"name": "b", "error_output": True}],
    }
    outcome = await create(types, SOFTWARE, properties)
    assert outcome == Done(str(KEY), {"config": "echo $a"})
    assert software_store.configs == {
        ("p", str(KEY)): NewConfig(
            "s-r-111111112222",
            "script",
            "echo $a",
            [{"name": "a", "type": "String", "default": "x", "replace_on_change": False}],
            [{"name": "b", "type": "String", "error_output": True}],
            {"o": 1},
        )
    }


async def test_a_config_without_properties_is_empty(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    for name, empty in ((SOFTWARE, ""), (STRUCTURED, {})):
        await create(types, name, {}, project=name)
        kept = software_store.configs[name, str(KEY)]
        assert (kept.group, kept.config, kept.inputs, kept.options) == (
            "Heat::Ungrouped", empty, [], {},
        )  # fmt: skip


async def test_a_cloud_config_has_the_format_of_cloud_init(types: TypeRegistry) -> None:
    config = {"packages": ["a", "b"], "runcmd": [["echo", "yes"]], "note": "grün"}
    outcome = await create(types, CLOUD, {"cloud_config": config})
    assert isinstance(outcome, Done)
    first, _, rest = str(outcome.attributes["config"]).partition("\n")
    assert (first, yaml.safe_load(rest)) == ("#cloud-config", config)


async def test_a_component_has_several_configs(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    one: Json = {"tool": "script", "config": "true"}
    outcome = await create(types, COMPONENT, {"configs": [one]})
    configs = [{"actions": ["CREATE", "UPDATE"], "config": "true", "tool": "script"}]
    assert isinstance(outcome, Done)
    assert outcome.attributes == {"config": {"configs": configs}, "configs": configs}
    kept = software_store.configs["p", str(KEY)]
    assert (kept.group, kept.config) == ("component", {"configs": configs})


async def test_a_check_finds_a_deleted_config(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    type_ = types.get(SOFTWARE)
    await create(types, SOFTWARE, {"config": "x"})
    call = a_call(type_, {"config": "x"}, physical_id=str(KEY))
    assert await run(type_, "check", call) == Done(str(KEY), {"config": "x"})
    assert await run(type_, "adopt", call) == Done(str(KEY), {"config": "x"})
    assert await run(type_, "delete", call) == Done(None)
    assert software_store.configs == {}
    gone = await run(type_, "check", call)
    assert isinstance(gone, Failed)
    assert gone.reason == f"Software config with id {KEY} not found"


# -- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "places"),
    [
        ({"inputs": [{"name": "a", "type": "Number", "default": "x"}]}, ["inputs[0].default"]),
        ({"inputs": [{"name": "a", "type": "Json", "default": "{"}]}, ["inputs[0].default"]),
        ({"inputs": [{"name": "a", "type": "Boolean", "default": "x"}]}, ["inputs[0].default"]),
        ({"inputs": [{"name": "a", "type": "Number", "default": ""}]}, []),
        ({"inputs": [{"name": "a", "type": "Number", "default": "1"}, {"name": "b"}]}, []),
        ({"inputs": [{"type": "String"}]}, ["inputs[0]"]),
        ({"inputs": [{"name": "a", "type": "Text"}]}, ["inputs[0].type"]),
    ],
)
def test_invalid_inputs_and_outputs_are_refused(
    types: TypeRegistry, properties: Json, places: list[str]
) -> None:
    assert places_of(types, SOFTWARE, properties) == places
    assert places_of(types, STRUCTURED, properties) == places


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_a_name_that_is_given_twice_is_a_warning(types: TypeRegistry, kind: str) -> None:
    """As in Heat, the config has both entries; the tools on the server use the last one."""
    findings = Findings()
    given = {kind: [{"name": "a"}, {"name": "b"}, {"name": "a"}]}
    types.check_properties(SOFTWARE, given, "properties", findings)
    assert not findings.all
    assert [(one.code, one.place) for one in findings.warnings] == [
        ("NoEffect", f"properties.{kind}[0].name")
    ]


def test_an_action_is_in_one_config_of_a_component(types: TypeRegistry) -> None:
    default, create = {"tool": "t"}, {"tool": "t", "actions": ["CREATE"]}
    delete = {"tool": "t", "actions": ["DELETE", "MINE"]}
    assert places_of(types, COMPONENT, {"configs": [default, delete]}) == []
    assert places_of(types, COMPONENT, {"configs": [default, delete, create]}) == [
        "configs[2].actions"
    ]
    assert places_of(types, COMPONENT, {"configs": []}) == ["configs"]
    assert places_of(types, COMPONENT, {"configs": [{"tool": "t", "actions": []}]}) != []


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"config": "x", "type": "multipart"}, "config"),
        ({"config": "x", "subtype": "a b"}, "subtype"),
        ({"config": "x", "subtype": "plain\r\nX-Other: 1"}, "subtype"),
        ({"config": "x", "filename": "a\r\nX-Other: 1"}, "filename"),
    ],
)
def test_invalid_parts_of_a_document_are_refused(
    types: TypeRegistry, part: Json, place: str
) -> None:
    assert places_of(types, MIME, {"parts": [part]}) == [f"parts[0].{place}"]


# -- MIME -----------------------------------------------------------------------------------------


def parts(text: str) -> list[Message]:
    read = message_from_string(text)
    assert read.get_content_type() == "multipart/mixed"
    found = read.get_payload()
    assert isinstance(found, list)
    return [one for one in found if isinstance(one, Message)]


def content(part: Message) -> str:
    raw = part.get_payload(decode=True)
    assert isinstance(raw, bytes)
    return raw.decode(part.get_content_charset("ascii"))


async def test_a_document_has_its_parts_in_order(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    other = UUID(int=9)
    await software_store.store_config("p", other, NewConfig("c", "g", "#cloud-config\nx: grün\n"))
    text = await text_of(types, {"parts": [
        {"config": "#!/bin/sh\n"},
        {"config": str(other), "subtype": "cloud-config", "filename": "c.yaml"},
        {"config": "def", "filename": "part-handler.py"},
        {"config": "odd", "filename": "my file.txt"},
    ]})  # fmt: skip
    found = parts(text)
    assert [(one.get_content_type(), one.get_filename(), content(one)) for one in found] == [
        ("text/plain", None, "#!/bin/sh\n"),
        ("text/cloud-config", "c.yaml", "#cloud-config\nx: grün\n"),
        ("text/part-handler", "part-handler.py", "def"),
        ("text/plain", "my file.txt", "odd"),
    ]
    assert text == await text_of(types, {"parts": [
        {"config": "#!/bin/sh\n"},
        {"config": str(other), "subtype": "cloud-config", "filename": "c.yaml"},
        {"config": "def", "filename": "part-handler.py"},
        {"config": "odd", "filename": "my file.txt"},
    ]})  # fmt: skip


async def test_the_parts_of_a_nested_document_are_merged(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    inner = await text_of(types, {"parts": [{"config": "grün", "filename": "a.txt"}]})
    await software_store.store_config("p", UUID(int=9), NewConfig("c", "g", inner))
    text = await text_of(types, {"parts": [
        {"config": "first"},
        {"config": inner, "type": "multipart"},
        {"config": str(UUID(int=9)), "type": "multipart"},
    ]})  # fmt: skip
    assert [content(one) for one in parts(text)] == ["first", "grün", "grün"]


async def test_a_missing_or_invalid_part_is_named(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    await software_store.store_config("p", UUID(int=8), NewConfig("c", "g", {"a": 1}))
    await software_store.store_config("p", UUID(int=9), NewConfig("c", "g", "plain"))
    for part, message in (
        ({"config": str(UUID(int=7))}, f"Software config with id {UUID(int=7)} not found"),
        ({"config": str(UUID(int=8))}, f"the software config {UUID(int=8)} is a map, not text"),
        ({"config": str(UUID(int=9)), "type": "multipart"}, "is not a multipart message"),
    ):
        outcome = await create(types, MIME, {"parts": [{"config": "x"}, part]})
        assert isinstance(outcome, Failed)
        assert outcome.reason == f"parts[1]: {message}"
