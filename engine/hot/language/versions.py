"""Versions of the template language and the functions of each.

The functions of a version are those of the version before, with additions, changes and removals
(see Heat's documentation of `heat_template_version`). CFN versions are in the same table; no two
versions have the same date.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from engine.hot.functions import cfn as c
from engine.hot.functions import data as d
from engine.hot.functions import extended as e
from engine.hot.functions import text as f
from engine.hot.functions.function import Function
from engine.hot.language.dialect import AWS, HEAT, HOT, Dialect


class UnavailableReason(Enum):
    """Why a function that a version names cannot be called."""

    REMOVED = "not supported in this version of HOT"


class StackFunction(Enum):
    """Functions that read the stack; evaluation/evaluator.py evaluates them."""

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
    GET_LOCAL = "get_local"
    INTERPOLATE = "${}"
    STACK_OUTPUT = "stack_output"


Entry = Function | StackFunction | UnavailableReason
Table = dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Version:
    """One value of `heat_template_version`, or one version of CFN.

    conditions: names of functions usable in conditions. optional_else: `if` may have two arguments.
    bare_get_attr: `get_attr` may have one argument. sections, known_resource_keys, output_keys: all
    that are valid, in the order of messages. resource_keys: as a set. common_resource_keys:
    resource keys that need no further checks. extended: a version that Heat does not have.
    """

    date: str
    functions: Mapping[str, Entry]
    conditions: frozenset[str]
    has_conditions: bool
    optional_else: bool
    bare_get_attr: bool
    parameter_tags: bool
    lower_case_policies: bool
    modulo: bool
    dialect: Dialect
    resource_keys: frozenset[str]
    common_resource_keys: frozenset[str]
    sections: tuple[str, ...]
    known_resource_keys: tuple[str, ...]
    output_keys: tuple[str, ...]
    extended: bool = False

    def callable_functions(self) -> tuple[str, ...]:
        """Return the names of the functions that can be called, sorted."""
        return tuple(
            sorted(
                n for n, entry in self.functions.items() if not isinstance(entry, UnavailableReason)
            )
        )


REMOVED = UnavailableReason.REMOVED
#: Functions of HOT in place of those of CFN that were removed.
SUCCESSORS: Mapping[str, str] = {
    "Fn::Join": "list_join",
    "Fn::Split": "str_split",
    "Fn::Replace": "str_replace",
    "Fn::Select": "get_param or get_attr with a path",
    "Fn::GetAtt": "get_attr",
    "Fn::ResourceFacade": "resource_facade",
    "Ref": "get_resource or get_param",
}


def successor_remedy(name: str) -> str:
    """Return what to write in place of a removed function."""
    successor = SUCCESSORS.get(name)
    return f"Use {successor}." if successor else "Write the value without the function."


CFN: Table = {
    "Fn::GetAZs": c.GET_AZS,
    "Fn::Join": c.JOIN,
    "Fn::Split": c.SPLIT,
    "Fn::Replace": c.REPLACE,
    "Fn::Base64": c.BASE64,
    "Fn::MemberListToMap": c.MEMBER_LIST_TO_MAP,
    "Fn::ResourceFacade": StackFunction.CFN_FACADE,
    "Ref": StackFunction.REF,
}
V2013: Table = {
    "get_param": StackFunction.GET_PARAM,
    "get_resource": StackFunction.GET_RESOURCE,
    "get_attr": StackFunction.GET_ATTR,
    "get_file": StackFunction.GET_FILE,
    "list_join": f.LIST_JOIN_TEXT,
    "str_replace": f.STR_REPLACE_TEXT,
    "resource_facade": StackFunction.FACADE,
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
    "yaql": StackFunction.YAQL,
    "map_replace": d.MAP_REPLACE,
    "if": StackFunction.IF,
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
V2026_12 = V2017_09 | {
    "get_local": StackFunction.GET_LOCAL,
    "stack_output": StackFunction.STACK_OUTPUT,
    "length": e.LENGTH,
    "to_json": e.TO_JSON,
    "from_json": e.FROM_JSON,
    "first": e.FIRST,
    "distinct": e.DISTINCT,
    "coalesce": e.COALESCE,
    "lower": e.LOWER,
    "upper": e.UPPER,
    "lookup": e.LOOKUP,
    "add": e.ADD,
    "subtract": e.SUBTRACT,
    "multiply": e.MULTIPLY,
    "divide": e.DIVIDE,
    "modulo": e.MODULO,
}

#: Functions that Heat does not have.
EXTENDED_FUNCTIONS = frozenset(V2026_12) - frozenset(V2017_09)

HEAT_2012 = CFN | {
    "Fn::FindInMap": StackFunction.FIND_IN_MAP,
    "Fn::GetAtt": StackFunction.GET_ATT,
    "Fn::Select": c.SELECT,
}
AWS_2010 = HEAT_2012 | {"Fn::If": StackFunction.IF}

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
    "2026-12-01": V2026_12,
}
#: The first version of Headgate's own.
EXTENDED_SINCE = "2026-12-01"
EXTENDED_SECTIONS: tuple[str, ...] = (
    "locals", "rules", "data", "moved", "import", "convergence",
)  # fmt: skip
EXTENDED_RESOURCE_KEYS = ("for_each", "lifecycle", "preconditions", "postconditions")
EXTENDED_OUTPUT_KEYS = ("preconditions", "postconditions")

ALIASES: Mapping[str, str] = {
    "newton": "2016-10-14",
    "ocata": "2017-02-24",
    "pike": "2017-09-01",
    "queens": "2018-03-02",
    "rocky": "2018-08-31",
    "wallaby": "2021-04-16",
    "headgate": "2026-12-01",
}


def _version(date: str, functions: Table) -> Version:
    conditions: frozenset[str] = LOGIC if date >= "2016-10-14" else frozenset()
    if date >= "2017-09-01":
        conditions |= {"contains", "yaql"}
    extended = date >= EXTENDED_SINCE
    resource_keys = HOT.resource_keys + (EXTENDED_RESOURCE_KEYS if extended else ())
    return Version(
        date=date,
        functions=functions,
        conditions=conditions,
        has_conditions=date >= "2016-10-14",
        optional_else=date >= "2021-04-16",
        bare_get_attr=date >= "2015-10-15",
        parameter_tags=date >= "2018-03-02",
        lower_case_policies=date >= "2016-10-14",
        modulo=date >= "2017-02-24",
        dialect=HOT,
        resource_keys=frozenset(resource_keys),
        common_resource_keys=_common_keys(HOT),
        sections=HOT.sections + (EXTENDED_SECTIONS if extended else ()),
        known_resource_keys=resource_keys,
        output_keys=HOT.output_keys + (EXTENDED_OUTPUT_KEYS if extended else ()),
        extended=extended,
    )


def _cfn_version(date: str, dialect: Dialect, functions: Table) -> Version:
    has_conditions = dialect is AWS
    return Version(
        date=date,
        functions=functions,
        conditions=CFN_LOGIC if has_conditions else frozenset(),
        has_conditions=has_conditions,
        optional_else=False,
        bare_get_attr=False,
        parameter_tags=False,
        lower_case_policies=False,
        modulo=False,
        dialect=dialect,
        resource_keys=frozenset(dialect.resource_keys),
        common_resource_keys=_common_keys(dialect),
        sections=dialect.sections,
        known_resource_keys=dialect.resource_keys,
        output_keys=dialect.output_keys,
    )


def _common_keys(dialect: Dialect) -> frozenset[str]:
    return frozenset({dialect.type, dialect.properties, dialect.metadata, dialect.depends_on})


VERSIONS: Mapping[str, Version] = {
    "2010-09-09": _cfn_version("2010-09-09", AWS, AWS_2010),
    "2012-12-12": _cfn_version("2012-12-12", HEAT, HEAT_2012),
    **{date: _version(date, table) for date, table in TABLES.items()},
}


def known_versions(key: str) -> tuple[str, ...]:
    """Return every value that a key such as `heat_template_version` accepts: dates, then
    aliases.
    """
    dates = [date for date, version in VERSIONS.items() if version.dialect.version == key]
    return (*dates, *(name for name, date in ALIASES.items() if date in dates))


def find_version(key: str, name: str) -> Version | None:
    """Return the version of a date or alias; None if it does not belong to the key."""
    found = VERSIONS.get(ALIASES.get(name, name))
    return found if found is not None and found.dialect.version == key else None


def template_functions(version: str) -> tuple[str, ...]:
    """Return the sorted names of the functions of a version (date or alias), including those usable
    only in conditions. Raises KeyError for an unknown version.
    """
    found = VERSIONS[ALIASES.get(version, version)]
    unbuilt = {n for n, entry in found.functions.items() if isinstance(entry, UnavailableReason)}
    return tuple(sorted({*found.callable_functions(), *(found.conditions - unbuilt)}))


def date_of(name: str) -> str:
    """Return the date of a version (date or alias)."""
    return ALIASES.get(name, name)
