"""Versions of the language, with what each accepts; the table is read by parsing and the API.

A version's functions are those of the one before, with what was added, changed or taken away.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from engine.hot import data_functions as d
from engine.hot import text_functions as f
from engine.hot.function import Function


class Unavailable(Enum):
    """Why a function that a version of the language names cannot be called."""

    NOT_YET = "not available yet in this release"
    REMOVED = "not supported in this version of HOT"


class Form(Enum):
    """Functions that read the stack itself; engine/hot/partial.py evaluates them."""

    GET_PARAM = "get_param"
    GET_RESOURCE = "get_resource"
    GET_ATTR = "get_attr"
    GET_FILE = "get_file"
    IF = "if"


Entry = Function | Form | Unavailable
Table = dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Version:
    """What one ``heat_template_version`` means. ``conditions``: functions usable in conditions."""

    date: str
    functions: Mapping[str, Entry]
    conditions: frozenset[str]
    has_conditions: bool
    if_may_lack_else: bool
    bare_get_attr: bool
    parameter_tags: bool
    lower_case_policies: bool
    modulo: bool

    def built(self) -> tuple[str, ...]:
        """Names of the functions that can be called, in alphabetical order."""
        return tuple(
            sorted(n for n, entry in self.functions.items() if not isinstance(entry, Unavailable))
        )


NOT_YET, REMOVED = Unavailable.NOT_YET, Unavailable.REMOVED
CFN: tuple[str, ...] = ("Fn::GetAZs", "Fn::Join", "Fn::Split", "Fn::Replace", "Fn::Base64")
CFN += ("Fn::MemberListToMap", "Fn::ResourceFacade", "Ref")

V2013: Table = {
    "get_param": Form.GET_PARAM,
    "get_resource": Form.GET_RESOURCE,
    "get_attr": Form.GET_ATTR,
    "get_file": Form.GET_FILE,
    "list_join": f.LIST_JOIN_TEXT,
    "str_replace": f.STR_REPLACE_TEXT,
    "resource_facade": NOT_YET,
    "Fn::Select": NOT_YET,
    **dict.fromkeys(CFN, NOT_YET),
}
V2014 = V2013 | dict.fromkeys(CFN, REMOVED)
V2015_04 = V2014 | {"repeat": f.REPEAT_LISTS, "digest": f.DIGEST}
V2015_10 = V2015_04 | {
    "str_split": f.STR_SPLIT,
    "list_join": f.LIST_JOIN,
    "str_replace": f.STR_REPLACE,
    "Fn::Select": REMOVED,
}
V2016_04 = V2015_10 | {"map_merge": d.MAP_MERGE}
V2016_10 = V2016_04 | {
    "yaql": NOT_YET,
    "map_replace": d.MAP_REPLACE,
    "if": Form.IF,
    "repeat": f.REPEAT,
}
V2017_02 = V2016_10 | {"filter": d.FILTER, "str_replace_strict": f.STR_REPLACE_STRICT}
V2017_09 = V2017_02 | {
    "make_url": d.MAKE_URL,
    "list_concat": d.LIST_CONCAT,
    "list_concat_unique": d.LIST_CONCAT_UNIQUE,
    "contains": d.CONTAINS,
    "str_replace_vstrict": f.STR_REPLACE_VSTRICT,
    "repeat": f.REPEAT_PERMUTING,
}

LOGIC = frozenset({"get_param", "equals", "not", "and", "or"})

TABLES: Mapping[str, Table] = {
    "2013-05-23": V2013,
    "2014-10-16": V2014,
    "2015-04-30": V2015_04,
    "2015-10-15": V2015_10,
    "2016-04-08": V2016_04,
    "2016-10-14": V2016_10,
    "2017-02-24": V2017_02,
    "2017-09-01": V2017_09,
    "2018-03-02": V2017_09,
    "2018-08-31": V2017_09,
    "2021-04-16": V2017_09,
}

ALIASES: Mapping[str, str] = {
    "newton": "2016-10-14",
    "ocata": "2017-02-24",
    "pike": "2017-09-01",
    "queens": "2018-03-02",
    "rocky": "2018-08-31",
    "wallaby": "2021-04-16",
}


def _version(date: str, functions: Table) -> Version:
    conditions: frozenset[str] = LOGIC if date >= "2016-10-14" else frozenset()
    if date >= "2017-09-01":
        conditions |= {"contains", "yaql"}
    return Version(
        date=date,
        functions=functions,
        conditions=conditions,
        has_conditions=date >= "2016-10-14",
        if_may_lack_else=date >= "2021-04-16",
        bare_get_attr=date >= "2015-10-15",
        parameter_tags=date >= "2018-03-02",
        lower_case_policies=date >= "2016-10-14",
        modulo=date >= "2017-02-24",
    )


VERSIONS: Mapping[str, Version] = {date: _version(date, table) for date, table in TABLES.items()}


def template_versions() -> tuple[str, ...]:
    """Every value that ``heat_template_version`` may have: dates first, then aliases."""
    return (*VERSIONS, *ALIASES)


def version_named(name: str) -> Version | None:
    """Return the version of a date or alias."""
    return VERSIONS.get(ALIASES.get(name, name))


def template_functions(version: str) -> tuple[str, ...]:
    """Names of the functions that a version (date or alias) can call; KeyError when unknown.

    Functions usable only in conditions are among them (equals, not, and, or).
    """
    found = VERSIONS[ALIASES.get(version, version)]
    unbuilt = {n for n, entry in found.functions.items() if isinstance(entry, Unavailable)}
    return tuple(sorted({*found.built(), *(found.conditions - unbuilt)}))


def date_of(name: str) -> str:
    """The date that a version (date or alias) stands for."""
    return ALIASES.get(name, name)
