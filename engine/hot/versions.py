"""Versions of the language, with what each accepts; the table is read by parsing and the API.

A version's functions are those of the one before, with what was added, changed or taken away.
Versions of CFN stand beside those of HOT; no two have a date in common.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from engine.hot import cfn_functions as c
from engine.hot import data_functions as d
from engine.hot import text_functions as f
from engine.hot.function import Function
from engine.hot.spelling import AWS, HEAT, HOT, Spelling


class Unavailable(Enum):
    """Why a function that a version of the language names cannot be called."""

    REMOVED = "not supported in this version of HOT"


class Form(Enum):
    """Functions that read the stack itself; engine/hot/partial.py evaluates them.

    Those of CFN are in engine/hot/cfn_forms.py.
    """

    GET_PARAM = "get_param"
    GET_RESOURCE = "get_resource"
    GET_ATTR = "get_attr"
    GET_FILE = "get_file"
    IF = "if"
    FACADE = "resource_facade"
    REF = "Ref"
    GET_ATT = "Fn::GetAtt"
    FIND_IN_MAP = "Fn::FindInMap"
    CFN_FACADE = "Fn::ResourceFacade"
    YAQL = "yaql"


Entry = Function | Form | Unavailable
Table = dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Version:
    """What one ``heat_template_version`` means, or one version of CFN.

    conditions: functions usable in conditions. usual_keys: of resources, those most have.
    """

    date: str
    functions: Mapping[str, Entry]
    conditions: frozenset[str]
    has_conditions: bool
    if_may_lack_else: bool
    bare_get_attr: bool
    parameter_tags: bool
    lower_case_policies: bool
    modulo: bool
    spelling: Spelling
    resource_keys: frozenset[str]
    usual_keys: frozenset[str]

    def built(self) -> tuple[str, ...]:
        """Names of the functions that can be called, in alphabetical order."""
        return tuple(
            sorted(n for n, entry in self.functions.items() if not isinstance(entry, Unavailable))
        )


REMOVED = Unavailable.REMOVED
CFN: Table = {
    "Fn::GetAZs": c.GET_AZS,
    "Fn::Join": c.JOIN,
    "Fn::Split": c.SPLIT,
    "Fn::Replace": c.REPLACE,
    "Fn::Base64": c.BASE64,
    "Fn::MemberListToMap": c.MEMBER_LIST_TO_MAP,
    "Fn::ResourceFacade": Form.CFN_FACADE,
    "Ref": Form.REF,
}
V2013: Table = {
    "get_param": Form.GET_PARAM,
    "get_resource": Form.GET_RESOURCE,
    "get_attr": Form.GET_ATTR,
    "get_file": Form.GET_FILE,
    "list_join": f.LIST_JOIN_TEXT,
    "str_replace": f.STR_REPLACE_TEXT,
    "resource_facade": Form.FACADE,
    "Fn::Select": c.SELECT,
    **CFN,
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
    "yaql": Form.YAQL,
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

HEAT_2012 = CFN | {
    "Fn::FindInMap": Form.FIND_IN_MAP,
    "Fn::GetAtt": Form.GET_ATT,
    "Fn::Select": c.SELECT,
}
AWS_2010 = HEAT_2012 | {"Fn::If": Form.IF}

LOGIC = frozenset({"get_param", "equals", "not", "and", "or"})
CFN_LOGIC = frozenset({"Ref", "Fn::FindInMap", "Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or"})

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
        spelling=HOT,
        resource_keys=frozenset(HOT.resource_keys),
        usual_keys=_usual_keys(HOT),
    )


def _cfn_version(date: str, spelling: Spelling, functions: Table) -> Version:
    has_conditions = spelling is AWS
    return Version(
        date=date,
        functions=functions,
        conditions=CFN_LOGIC if has_conditions else frozenset(),
        has_conditions=has_conditions,
        if_may_lack_else=False,
        bare_get_attr=False,
        parameter_tags=False,
        lower_case_policies=False,
        modulo=False,
        spelling=spelling,
        resource_keys=frozenset(spelling.resource_keys),
        usual_keys=_usual_keys(spelling),
    )


def _usual_keys(words: Spelling) -> frozenset[str]:
    return frozenset({words.type, words.properties, words.metadata, words.depends_on})


VERSIONS: Mapping[str, Version] = {
    "2010-09-09": _cfn_version("2010-09-09", AWS, AWS_2010),
    "2012-12-12": _cfn_version("2012-12-12", HEAT, HEAT_2012),
    **{date: _version(date, table) for date, table in TABLES.items()},
}


def versions_of(key: str) -> tuple[str, ...]:
    """Every value that a key such as ``heat_template_version`` may have: dates, then aliases."""
    dates = [date for date, version in VERSIONS.items() if version.spelling.version == key]
    return (*dates, *(name for name, date in ALIASES.items() if date in dates))


def version_named(key: str, name: str) -> Version | None:
    """Return the version of a date or alias, where the key is the one that it goes with."""
    found = VERSIONS.get(ALIASES.get(name, name))
    return found if found is not None and found.spelling.version == key else None


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
