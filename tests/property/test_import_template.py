"""A template that imports objects is valid, and has their values."""

from collections.abc import Mapping

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.hot.evaluation.resolver import resolve
from engine.hot.language.versions import VERSIONS
from engine.hot.schema.properties import fill_defaults
from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.hot.syntax.document import read_document
from engine.service.imports.import_template import ImportedObject, write_import_template
from engine.words import Json
from tests.unit.hot.hot_support import UniformView, defined

OBJECT = TypeSchema(
    "Test::Object",
    {
        "text": Property(Kind.STRING, default="none"),
        "any": Property(Kind.ANY),
        "map": Property(Kind.MAP, default={}),
        "list": Property(Kind.LIST),
        "flag": Property(Kind.BOOLEAN, default=True),
        "owner": Property(
            Kind.STRING, constraints=(Constraint("custom_constraint", name="test.object"),)
        ),
        "needed": Property(Kind.STRING, required=True),
        "password": Property(Kind.STRING, required=True, hidden=True),
    },
)
IDS = ["b44a1f34-5fd6-4e0d-a3ee-1e7a4ad0c001", "web", "b44a1f34-5fd6-4e0d-a3ee-1e7a4ad0c002"]
FUNCTIONS = sorted(VERSIONS["2026-12-01"].functions)
TEXTS = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
    | st.sampled_from(["${text}", "$${a}", "yes", "1e3", "2026-12-01", "0x1", "null", "~", " a",
                       "a: b", "# a", "\x85", "\u2028", "-", "=", "<<", *IDS])
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS | st.sampled_from(FUNCTIONS), inner, max_size=2)
    ),
    max_leaves=6,
)
MAPS = st.dictionaries(TEXTS | st.sampled_from(FUNCTIONS), VALUES, max_size=2)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "text": TEXTS,
        "any": VALUES,
        "map": MAPS,
        "list": st.lists(VALUES, max_size=3),
        "flag": st.booleans(),
        "owner": TEXTS,
        "needed": TEXTS,
        "password": TEXTS,
    },
)
REASONS = st.dictionaries(st.sampled_from(["text", "password"]), TEXTS, max_size=2)


def imported(
    number: int, properties: Mapping[str, Json], name: str = "", unread: Mapping[str, str] = {}
) -> ImportedObject:
    return ImportedObject(OBJECT, IDS[number], name, properties, unread, reference=IDS[number])


class Reference(UniformView):
    """Each resource has the ID of its object."""

    def __init__(self, ids: Mapping[str, str]) -> None:
        super().__init__()
        self._ids = ids

    def reference(self, resource: str) -> str:
        return self._ids[resource]


@settings(max_examples=100, deadline=None)
@example([{"map": {"get_resource": "x"}}], ["a"], {"text": "a\u2028resources: {}"})
@example([{"owner": IDS[2]}, {}, {"owner": IDS[0]}], ["a", "a", "a"], {})
@given(st.lists(PROPERTIES, max_size=3), st.lists(TEXTS, min_size=3, max_size=3), REASONS)
def test_a_template_has_what_exists(
    objects: list[dict[str, Json]], names: list[str], unread: dict[str, str]
) -> None:
    found = [imported(number, one, names[number], unread) for number, one in enumerate(objects)]
    template = write_import_template(found)
    assert template == write_import_template(found)  # the order is that of the request
    document = read_document(template.text, "template")
    types = {OBJECT.name: OBJECT}
    secret = dict.fromkeys(template.required, "given")
    definition = defined(document, parameters=secret, types=types)
    assert list(definition.resources) == list(template.names)
    ids = dict(zip(template.names, IDS, strict=False))
    assert dict(definition.imported) == ids
    for name, one in zip(template.names, objects, strict=True):
        resource = definition.resources[name]
        value = resolve(resource.properties, Reference(ids)) or {}
        known = {key: each for key, each in one.items() if each is not None}
        wanted = {"needed": "given", **known, "password": "given"}
        assert fill_defaults(OBJECT, value) == fill_defaults(OBJECT, wanted)
        written = document["resources"][name]["properties"]
        defaults = {key: each.default for key, each in OBJECT.properties.items()}
        assert not any(key in defaults and defaults[key] == each for key, each in written.items())


def test_an_id_becomes_a_reference_only_where_it_is_certainly_meant() -> None:
    found = [
        imported(0, {"text": IDS[2], "owner": IDS[1], "list": [IDS[0]], "needed": "web"}, "first"),
        imported(1, {"owner": IDS[0], "needed": ""}, "first"),
        imported(2, {"any": {"at": IDS[1]}, "map": {"own": [IDS[2]]}, "needed": ""}, "1 + 1"),
    ]
    template = write_import_template(found)
    assert list(template.names) == ["first", "first_2", "object_1_1"]
    resources = read_document(template.text, "template")["resources"]
    # "web" is a common word: only a property that names such an object refers to it.
    assert resources["first"]["properties"] == {
        "text": {"get_resource": "object_1_1"},
        "list": [IDS[0]],  # its own ID
        "owner": {"get_resource": "first_2"},
        "needed": "web",
        "password": {"get_param": "first_password"},
    }
    assert resources["first_2"]["properties"]["owner"] == IDS[0]  # it would close a cycle
    assert resources["object_1_1"]["properties"]["any"] == {"at": "web"}
