"""The glossary explains every public word, and identifiers use the terms of the field.

A public word is a segment of an event type, of a setting, of a command group, of a field or query
parameter of Headgate's own routes, or a value of an enum in engine/words.py. PLAIN lists the words
that need no explanation. OFFENDERS is a ratchet: it lists the identifiers that still have a
FORBIDDEN word, and may only shrink.
"""

import ast
import enum
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, get_args

import pytest
import typer
from pydantic import BaseModel

import engine.words
from channels.schemas.event_schemas import SCHEMAS
from hub.api.headgate import ROUTES
from hub.api.openapi import openapi
from hub.cli.main import app
from hub.settings.settings import Settings
from tests.support.sql import tokens

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
PACKAGES = ("engine", "hub", "channels", "headgate")
TEST_PACKAGES = ("tests", "tools")

#: Ordinary English, file formats and protocols, which the glossary leaves out.
PLAIN = """
account address after alive all application arguments as at auth binaries bodies body bytes ca cache
cert code column command concurrency connect connections constraint cors counts created day days
decided default depth description dir directory document domain drain elements ended endpoint
endpoints error every expires failures fallback first folders for found from header help host hosts
http idle interface interval kept kind language last level line listen marker max message metadata
min mine minute most name needs nesting new next note older on only opened opens openstack ordered
page password patience paused per poll pool port prefetch prefix previous programs proxies proxy
public publish queue rate ratio reason recipients request requests response search sender
sentence service services show sign signing since size source statuses style target targets timeout
timezone to trusted ttl unrouted until updated used user users username variables when yaql
"""

#: Words that no identifier may have: the terms of the field replace them.
FORBIDDEN = """
anew anybody aside beneath bury carrying door elsewhere everybody examined examining
foreseeing interrupting kin letter news nobody outermost overfull plate presented
presuming referred repeating said somebody spelling tell telling tells told unheard untie
unwell visited visiting walks whatever whoever wish
"""

#: Words that no variable, argument or attribute may have either.
FORBIDDEN_IN_CODE = "nobody said somebody told whoever"

#: Words that no constant may have: a limit is MAX_... or MIN_...
LIMIT_WORDS = """
biggest deepest fewest greatest highest largest least longest lowest most shortest smallest
"""

#: Words that are no class of their own: a class is named with a noun.
NOT_NOUNS = """
actual adopted alive below dropped each ended existing given held hidden how late left lenient
locked pending pinned ready running scoped seen shown taken validated why written
"""

#: Words that are no function of their own: a function is named with a verb. Neither are other
#: words that end in -ed, except VERBS_IN_ED.
NOT_VERBS = """
begun broken built chosen done drawn found given held hidden kept known left lost made of paid
seen sent shown spent taken told written
"""
VERBS_IN_ED = "bleed embed exceed feed need proceed seed shed speed succeed"

#: The members of a union, which `match` statements read: a result, or an input of the node machine.
VARIANTS = "Answered Cancelled Claimed Delivered Expired Failed Stopped Succeeded Superseded"

#: Classes that describe documents of the API. They are components of /openapi.json, code names them
#: as `responses.NAME`, and each may have the name of the class whose objects it shows.
DOCUMENTS = ("hub.api.headgate.responses", "hub.api.orchestration.responses")

#: Generated from the documents of the API, with their names.
GENERATED = Path("headgate", "documents.py")

#: Names of version 1 of the interfaces of plug-ins, which stay (tests/compat/test_interfaces.py).
#: Each is imported from the interface that a plug-in implements.
INTERFACES = {
    "Ended": {"engine.lifecycle.contract"},
    "Failed": {"channels.contract", "engine.types.operation_outcomes"},
    "Refused": {"engine.lifecycle.contract", "engine.types.placement"},
}

#: Names that no table, column, function, variable or alias in SQL may have, also after the prefix
#: of a parameter or variable: the schema has a term of the field for what they meant.
FORBIDDEN_IN_SQL = """
arrived asked awaited awaits began broken cleared clock_mark confirmed drafted held hidden holds
hooked kept lost moved_node moved_to named_until notice pace paced passed past_graph publishing
requirers said sealed settled settled_at shown stale stream_floor tell_at unsignalled
update_clock waits wakes watched woken worked
"""

#: Words that no identifier and no docstring of tests and tools may have.
FORBIDDEN_IN_TESTS = """
anybody aside beneath everybody kin nobody outermost overfull said somebody told unheard unwell
whatever whoever wish
"""

#: Identifiers that still have one of them. Remove a line when you rename its identifier; add none.
OFFENDERS = """
"""


def words_in(text: str) -> set[str]:
    return set(text.split())


def rows() -> list[tuple[str, str, str]]:
    """Term, definition and link of every row of the glossary."""
    cells = re.findall(r"^\| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", GLOSSARY.read_text(), re.M)
    return [row for row in cells if row[0] != "term"]


def singular(word: str) -> str:
    """``deliveries`` -> delivery, ``hooks`` -> hook; a word without a plural as it is."""
    if word.endswith("ies"):
        return word.removesuffix("ies") + "y"
    return word if word.endswith("ss") else word.removesuffix("s")


def explained() -> set[str]:
    """The words of all terms, and the literals in their definitions, in singular and lower case."""
    found: set[str] = set()
    for term, definition, _ in rows():
        for text in (term, *re.findall(r"`([^`]+)`", definition)):
            words = (text, *re.findall(r"[a-z_-]+", text.lower()), *re.findall(r"[^\W_]+", text))
            found |= {singular(word.lower()) for word in words}
    return found


def words_of_events() -> set[str]:
    return {word for kind in SCHEMAS for word in kind.split(".")}


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The section of settings inside a type such as ``Mapping[str, Section]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(model_in, get_args(annotation))), None)


def words_of_settings(model: type[BaseModel] = Settings) -> set[str]:
    """The segments of the names of all sections and settings."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        found |= set(name.split("_"))
        if (section := model_in(field.annotation)) is not None:
            found |= words_of_settings(section)
    return found


def words_of_commands(group: Any = None) -> set[str]:
    """The names of all command groups."""
    commands = getattr(group or typer.main.get_command(app), "commands", {})
    groups = {name: one for name, one in commands.items() if hasattr(one, "commands")}
    return set(groups).union(*map(words_of_commands, groups.values()))


#: Components of /openapi.json whose fields a standard or Heat names.
FOREIGN = {"AsyncApi", "CloudEvent", "EventSchema", "HeatError", "HeatProblem"}


def fields_in(schema: Any) -> Iterator[str]:
    """The names of the fields of an object, and of the objects in it."""
    if isinstance(schema, list):
        for one in schema:
            yield from fields_in(one)
    elif isinstance(schema, dict):
        fields = schema.get("properties") or {}
        yield from fields
        for one in (*fields.values(), *(schema[key] for key in schema if key != "properties")):
            yield from fields_in(one)


def words_of_fields() -> set[str]:
    """The segments of the names of fields and query parameters of Headgate's own routes; those of
    the Orchestration API and of the CloudFormation signals are Heat's."""
    document = openapi([one for one in ROUTES if not one.path.startswith("/cfn")])
    schemas = document["components"]["schemas"]
    names = {one for name in set(schemas) - FOREIGN for one in fields_in(schemas[name])}
    for operations in document["paths"].values():
        names |= set(fields_in(list(operations.values())))
        for operation in operations.values():
            names |= {one["name"] for one in operation.get("parameters", ()) if "name" in one}
    return {word for name in names for word in re.split("[_-]", name.lower())}


def words_of_enums() -> set[str]:
    ours = [one for one in vars(engine.words).values() if is_enum(one)]
    return {str(member.value) for kind in ours for member in kind}


def is_enum(one: object) -> TypeGuard[type[enum.Enum]]:
    """Whether it is an enum that engine/words.py defines."""
    return isinstance(one, enum.EnumType) and one.__module__ == engine.words.__name__


SOURCES = {
    "events": words_of_events,
    "settings": words_of_settings,
    "commands": words_of_commands,
    "fields": words_of_fields,
    "enums": words_of_enums,
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_public_word_is_explained(source: str) -> None:
    words = SOURCES[source]()
    assert len(words) > 5
    known, plain = explained(), words_in(PLAIN)
    missing = {one for one in words if one not in plain and singular(one.lower()) not in known}
    assert missing == set(), f"add a row to {GLOSSARY.name}, or a plain word to PLAIN"


def test_the_list_of_plain_words_has_no_word_too_many() -> None:
    words = set[str]().union(*(source() for source in SOURCES.values()))
    assert words_in(PLAIN) - words == set(), "no longer a public word"
    assert {one for one in words_in(PLAIN) if singular(one) in explained()} == set(), (
        "it is in the glossary"
    )


def test_each_term_has_one_row_with_a_sentence_and_a_link() -> None:
    found = rows()
    assert len(found) > 80
    counts = Counter(term.lower() for term, _, _ in found)
    assert [term for term, count in counts.items() if count > 1] == []
    for term, definition, link in found:
        assert re.fullmatch(r"[A-Z].*\.", definition), term
        assert re.fullmatch(r"\[[^\]]+\]\([^)]+\)", link), term


def test_the_glossary_has_no_forbidden_word_but_as_a_literal() -> None:
    prose = re.sub(r"`[^`]*`", "", GLOSSARY.read_text()).lower()
    assert words_in(FORBIDDEN) & set(re.findall(r"[a-z]+", prose)) == set()


class Module(NamedTuple):
    """What the tests compare of a module: not its syntax tree, which is large.

    public: the names of its public classes, functions and methods. classes: of all classes, private
    ones too. functions: of all functions and methods, except properties and those that return an
    object of the class with their own name, as `done` does. names: of all variables, arguments,
    attributes, functions and classes, private ones too. strings: of an f-string, the constant
    parts. docstrings: without literals in backquotes.
    """

    name: str
    public: list[str]
    classes: list[str]
    functions: list[str]
    names: set[str]
    strings: list[str]
    docstrings: list[str]


def texts(packages: tuple[str, ...]) -> dict[str, str]:
    """The source of the modules of these packages, by name."""
    paths = sorted(one for package in packages for one in (ROOT / package).rglob("*.py"))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text()
        for path in paths
        if "node_modules" not in path.parts and path != ROOT / GENERATED
    }


@cache
def modules() -> list[Module]:
    """The modules of the product."""
    return list(starmap(read_module, texts(PACKAGES).items()))


def may_have(text: str, words: set[str]) -> bool:
    """Whether a name or a docstring in this source may have one of these words. Parsing only these
    sources takes a tenth of the time."""
    lowered = text.lower()
    return any(word in lowered and as_a_part(word).search(text) for word in words)


@cache
def as_a_part(word: str) -> re.Pattern[str]:
    """Finds the word where `parts` would return it, and in a few more places."""
    part = rf"{word}(?<![a-z]{word})(?![a-z])"
    return re.compile(rf"{part}|{word.capitalize()}(?![a-z])|{word.upper()}")


#: Nodes with a docstring.
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def read_module(name: str, text: str) -> Module:
    tree = ast.parse(text)
    module = Module(name, list(public(tree.body)), [], [], set(), [], [])
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (docstring := ast.get_docstring(node, clean=False)):
            module.docstrings.append(re.sub(r"`[^`]*`", "", docstring))
        match node:
            case ast.Name(id=word) | ast.arg(arg=word) | ast.Attribute(attr=word):
                module.names.add(word)
            case ast.Constant(value=str(string)):
                module.strings.append(string)
            case ast.JoinedStr(values=parts):
                constants = (str(one.value) for one in parts if isinstance(one, ast.Constant))
                module.strings.append("".join(constants))
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word):
                module.names.add(word)
                if not is_property(node) and not returns_its_name(node):
                    module.functions.append(word)
            case ast.ClassDef(name=word):
                module.names.add(word)
                module.classes.append(word)
            case ast.alias(asname=str(word)):
                module.names.add(word)
    return module


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(one) for one in node.decorator_list)


def returns_its_name(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it creates the object that it is named for, as `_failed` creates a `Failed`."""
    return isinstance(node.returns, ast.Name) and node.returns.id.lower() == node.name.strip("_")


def identifiers() -> Iterator[str]:
    """``engine.store.audit.audit_log`` for modules; ``engine.store.audit.audit_log record`` for
    public classes, functions and methods."""
    for module in modules():
        yield module.name
        yield from (f"{module.name} {name}" for name in module.public)


def names() -> set[tuple[str, str]]:
    """Module and name of all names in the product."""
    return {(module.name, name) for module in modules() for name in module.names}


def public(body: list[ast.stmt], within: str = "") -> Iterator[str]:
    for one in body:
        if not isinstance(one, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if one.name.startswith("_"):
            continue
        yield within + one.name
        if isinstance(one, ast.ClassDef):
            yield from public(one.body, f"{within}{one.name}.")


def parts(identifier: str) -> set[str]:
    """``record_entry`` -> record, entry; ``PublishedEvent`` -> published, event."""
    return {one.lower() for one in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", identifier)}


def own_name(identifier: str) -> str:
    """The part that the identifier itself adds: a module's or a method's name alone."""
    return re.split(r"[ .]", identifier)[-1]


def test_identifiers_use_the_terms_of_the_field() -> None:
    found = list(identifiers())
    assert len(found) > 1000
    offending = {one for one in found if words_in(FORBIDDEN) & parts(own_name(one))}
    listed = set(OFFENDERS.strip().splitlines())
    assert offending - listed == set(), "choose a term of the glossary"
    assert listed - offending == set(), "renamed or gone: remove it from OFFENDERS"


def test_variables_arguments_and_attributes_use_plain_words() -> None:
    found = names()
    assert len(found) > 10_000
    words = words_in(FORBIDDEN_IN_CODE)
    assert {one for one in found if words & parts(one[1])} == set(), "name it for what it holds"


def test_constants_of_limits_begin_with_max_or_min() -> None:
    constants = {one for one in names() if one[1].isupper()}
    assert len(constants) > 500
    limits = {one for one in constants if words_in(LIMIT_WORDS) & parts(one[1])}
    assert limits == set(), "name it MAX_... or MIN_..."


def shared_names(modules: Iterable[Module]) -> dict[str, set[str]]:
    """Names of public classes that several modules define, with the modules."""
    found: dict[tuple[bool, str], set[str]] = {}
    for module in modules:
        for name in module.classes:
            if not name.startswith("_"):
                found.setdefault((module.name in DOCUMENTS, name), set()).add(module.name)
    return {name: places for (_, name), places in found.items() if len(places) > 1}


def test_a_public_class_has_a_name_of_its_own() -> None:
    assert len({name for module in modules() for name in module.classes}) > 800
    shared = shared_names(modules())
    wrong = {name: places for name, places in shared.items() if places != INTERFACES.get(name)}
    assert wrong == {}, "say in the name what distinguishes them"


def test_a_class_that_shares_its_name_is_found() -> None:
    first, second = (
        read_module("engine.a", "class Plan: ..."),
        read_module("hub.b", "class Plan: ..."),
    )
    document = read_module(DOCUMENTS[0], "class Plan: ...\nclass Error: ...")
    assert shared_names([first, second]) == {"Plan": {"engine.a", "hub.b"}}
    assert shared_names([first, document]) == {}
    other = read_module(DOCUMENTS[1], "class Error: ...")
    assert shared_names([document, other]) == {"Error": set(DOCUMENTS)}


def is_noun(name: str) -> bool:
    """Whether a class is named with a noun, as far as its form tells."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    if len(words) != 1 or words[0] in {*words_in(VARIANTS), *INTERFACES}:
        return True
    word = words[0].lower()
    return word not in words_in(NOT_NOUNS) and (not word.endswith("ed") or word == "feed")


def test_classes_are_named_with_nouns() -> None:
    names = {(module.name, name) for module in modules() for name in module.classes}
    assert {one for one in names if not is_noun(one[1])} == set(), "name it for what it is"
    assert {*words_in(VARIANTS), *INTERFACES} - {name for _, name in names} == set(), "it is gone"


def is_participle(name: str) -> bool:
    """Whether a function is named with a participle or preposition alone, as far as its form tells:
    `mask_names`, `masked_names` and `is_masked` say what they do or return, `masked` does not."""
    word = name.strip("_")
    ends_in_ed = word.endswith("ed") and word.isalpha() and word not in words_in(VERBS_IN_ED)
    return ends_in_ed or word in words_in(NOT_VERBS)


def test_functions_are_named_with_verbs() -> None:
    found = {(module.name, name) for module in modules() for name in module.functions}
    assert len(found) > 3000
    wrong = {one for one in found if is_participle(one[1])}
    assert wrong == set(), "name it for what it does, or for what it returns"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("def masked(): ...", True),
        ("async def _observed(): ...", True),
        ("class A:\n    def kept(self): ...", True),
        ("def f():\n    def counted(): ...", True),
        ("def masked_names(): ...", False),
        ("def is_masked(): ...", False),
        ("def succeed(): ...", False),
        ("class A:\n    @property\n    def masked(self): ...", False),
        ("def _failed() -> Failed: ...", False),
        ("def _failed() -> str: ...", True),
    ],
)
def test_a_function_that_is_named_with_a_participle_is_found(text: str, wrong: bool) -> None:
    functions = read_module("engine.a", text).functions
    assert any(map(is_participle, functions)) is wrong


@pytest.mark.parametrize(
    ("name", "noun"),
    [("Validated", False), ("_Left", False), ("Why", False), ("Feed", True), ("Expired", True),
     ("PinnedStack", True), ("Plan", True)],
)  # fmt: skip
def test_a_participle_is_no_noun(name: str, noun: bool) -> None:
    assert is_noun(name) is noun


#: A string of Python that is a statement.
STATEMENT = re.compile(
    r"(?s)\A(?:\s|--[^\n]*\n)*(?:select|insert|update|delete|with|create|alter)\s"
)


def sql_texts() -> Iterator[tuple[str, str]]:
    """The schema, the routines, and the statements of the stores; not the upgrades, which have the
    earlier names."""
    for directory in ("migrations", "routines"):
        for path in sorted((ROOT / "engine" / "store" / directory).glob("*.sql")):
            yield path.name, re.sub(r"(?m)^drop .*;$", "", path.read_text())
    for module in modules():
        if re.match(r"(engine|channels)\.store\.", module.name):
            yield from ((module.name, text) for text in module.strings if STATEMENT.match(text))


def sql_names(text: str) -> set[str]:
    """The names in a statement, those of parameters and variables without their prefix."""
    return {re.sub(r"^[pvh]_", "", one.word) for one in tokens(text) if one.kind == "name"}


def wrong_sql_names(text: str) -> set[str]:
    """Names that are forbidden, or have a word that no identifier may have."""
    names = sql_names(text)
    words = words_in(FORBIDDEN) | words_in(FORBIDDEN_IN_CODE)
    return {one for one in names if words & set(one.split("_"))} | names & words_in(
        FORBIDDEN_IN_SQL
    )


def test_names_in_sql_use_the_terms_of_the_field() -> None:
    found = list(sql_texts())
    assert len({place for place, _ in found if place.endswith(".sql")}) > 20
    assert len(found) > 300
    invalid = {(place, name) for place, text in found for name in wrong_sql_names(text)}
    assert invalid == set(), "name it as the glossary does"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("select t.held from traversal t where t.reason = 'told'", {"held"}),
        ("with said as (select 1) select * from said -- the nodes that it waits for", {"said"}),
        ("create function f(p_worked interval) returns void", {"worked"}),
        ("select r.told_at, r.blocked_nodes from jsonb_to_recordset($1) as r (told_at text)",
         {"told_at"}),
        ("update node set pending_dependencies = 0", set()),
    ],
    ids=["column", "alias", "parameter", "part", "none"],
)  # fmt: skip
def test_a_private_name_in_sql_is_seen(text: str, wrong: set[str]) -> None:
    assert wrong_sql_names(text) == wrong


def offences(modules: Iterable[Module]) -> set[tuple[str, str]]:
    """Module and name of each identifier with a word that tests must not have; module and word of
    each such word in a docstring."""
    words, found = words_in(FORBIDDEN_IN_TESTS), set()
    for module in modules:
        all_names = {own_name(module.name), *module.names}
        found |= {(module.name, name) for name in all_names if words & parts(name)}
        for text in module.docstrings:
            found |= {(module.name, word) for word in words & parts(text)}
    return found


def test_tests_and_tools_use_plain_words() -> None:
    found, words = texts(TEST_PACKAGES), words_in(FORBIDDEN_IN_TESTS)
    assert len(found) > 400
    perhaps = (one for one in found.items() if may_have("\n".join(one), words))
    parsed = starmap(read_module, perhaps)
    assert offences(parsed) == set(), "name it for what it is or does"


@pytest.mark.parametrize(
    ("text", "offence"),
    [
        ("def test_what_is_wrong_is_told(): ...", "test_what_is_wrong_is_told"),
        ("status, said = call()", "said"),
        ("def f(nobody): ...", "nobody"),
        ('def f():\n    "What somebody asked for."', "somebody"),
        ('"Whoever answers first."', "whoever"),
        ("one.told = 1", "told"),
        ("class WasToldTwice: ...", "WasToldTwice"),
        ("TOLD_ONCE = 1", "TOLD_ONCE"),
    ],
)
def test_a_word_that_tests_must_not_have_is_found(text: str, offence: str) -> None:
    assert may_have(text, words_in(FORBIDDEN_IN_TESTS))
    assert offences([read_module("tests.unit.test_x", text)]) == {("tests.unit.test_x", offence)}


def test_a_module_name_that_tests_must_not_have_is_found() -> None:
    assert offences([read_module("tests.unit.test_told", "")]) == {
        ("tests.unit.test_told", "test_told")
    }
