"""The glossary explains every public word, and identifiers use the terms of the field.

A public word is a segment of an event type, of a setting, of a command group, or a value of an enum
in engine/words.py. PLAIN lists the words that need no explanation. OFFENDERS is a ratchet: it lists
the identifiers that still have a FORBIDDEN word, and may only shrink.
"""

import ast
import enum
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard, get_args

import pytest
import typer
from pydantic import BaseModel

import engine.words
from channels.schemas.events import SCHEMAS
from hub.cli.main import app
from hub.settings.settings import Settings

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
PACKAGES = ("engine", "hub", "channels")

#: Ordinary English, file formats and protocols, which the glossary leaves out.
PLAIN = """
account address arguments as at auth binaries bodies body by bytes ca cert command
concurrency connect connections constraint cors day default depth dir directory document
domain drain elements endpoint every failures fallback file files first folders header
http idle interval kept kind language level listen max most name needs on ordered
origins password patience per poll pool programs proxies proxy public publish rate ratio
remembered request requests service sign signing size style target timeout trusted
unrouted user username variables when yaql
"""

#: Words that no identifier may have: the terms of the field replace them.
FORBIDDEN = """
anew anybody aside beneath bury carrying door elsewhere everybody examined examining
foreseeing interrupting kin letter news nobody outermost overfull plate presented
presuming referred repeating said somebody spelling tell telling tells told unheard untie
unwell visited visiting walks whatever whoever wish
"""

#: Identifiers that still have one of them. Remove a line when you rename its identifier; add none.
OFFENDERS = """
engine.words Door
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
            words = (text, *re.findall(r"[a-z_-]+", text.lower()), *re.findall(r"\w+", text))
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


def identifiers() -> Iterator[str]:
    """``engine.store.audit_log`` for modules; ``engine.store.audit_log record`` for public classes,
    functions and methods."""
    for path in sorted(one for package in PACKAGES for one in (ROOT / package).rglob("*.py")):
        if "node_modules" in path.parts:
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield module
        yield from (f"{module} {name}" for name in public(ast.parse(path.read_text()).body))


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
    """``store.kin lock_stack_tree`` -> store, kin, lock; ``PublishedEvent`` -> told, event."""
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
