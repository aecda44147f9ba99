"""The requests that are sent to Heat and to Headgate, created from the tables in requests/.

A case is {"name": ..., "request": the body of POST /stacks without its name}. Names are unique, and
do not change when rows are added at the end of a table.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

REQUESTS = Path(__file__).parent / "requests"
RECORDED = Path(__file__).parent / "recorded"
NEWEST = "2021-04-16"
Case = dict[str, Any]
Json = Any

PARAMETERS: Mapping[str, Json] = {
    "text": {"type": "string", "default": "list"},
    "number": {"type": "number", "default": "5"},
    "switch": {"type": "boolean", "default": "false"},
    "items": {"type": "comma_delimited_list", "default": "a,b,c"},
    "file": {"type": "string", "default": "hello.txt"},
    "other_name": {"type": "string", "default": "other"},
    "value_name": {"type": "string", "default": "value"},
    "map": {
        "type": "json",
        "default": {
            "list": ["x", "y"],
            "inner": {"key": "deep"},
            "1": "one",
            "text": "t",
            "switch": True,
            "nothing": None,
        },
    },
}
FILES = {"hello.txt": "hello there\n", "data.json": '{"a": 1}'}
#: Resources that snippets read; `other` has attributes of all kinds.
OTHERS: Mapping[str, Json] = {
    "other": {
        "type": "OS::Heat::Value",
        "properties": {"value": {"list": ["x", "y"], "inner": {"key": "deep"}, "text": "t"}},
    },
    "thing": {"type": "OS::Heat::TestResource", "properties": {"value": "stored"}},
}


@cache
def read_table(table: str) -> Json:
    return yaml.safe_load((REQUESTS / f"{table}.yaml").read_text())


def cases_in(table: str) -> Json:
    """Return a table of its own: callers change it."""
    return deepcopy(read_table(table))


def template(body: Mapping[str, Json], version: str = NEWEST) -> dict[str, Json]:
    return {"heat_template_version": version, **body}


def conditional(version: str) -> dict[str, Json]:
    known = version >= "2016-10-14"
    named = {"yes_it_is": True, "no_it_is_not": {"not": "yes_it_is"}}
    return {"conditions": named} if known else {}


def as_property(snippet: Json, version: str, more: Mapping[str, Json] | None = None) -> Json:
    """A template with the snippet as a property, an output that shows it, and all names that the
    snippet uses.
    """
    resources = {
        **OTHERS,
        **(more or {}),
        "made": {"type": "OS::Heat::Value", "properties": {"value": snippet}},
    }
    body = {
        "parameters": dict(PARAMETERS),
        **conditional(version),
        "resources": resources,
        "outputs": {"made": {"value": {"get_attr": ["made", "value"]}}},
    }
    return {"template": template(body, version), "files": FILES}


def as_output(snippet: Json, version: str) -> Json:
    body = {
        "parameters": dict(PARAMETERS),
        **conditional(version),
        "resources": dict(OTHERS),
        "outputs": {"made": {"value": snippet}},
    }
    return {"template": template(body, version), "files": FILES}


def versioned(row: Json) -> tuple[str, Json]:
    if isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and row[0][:2] == "20":
        return row[0], row[1]
    return NEWEST, row


#: Functions whose arguments are read before the call, so they cannot be known late.
EAGER = ("get_param", "get_file", "get_resource", "get_attr", "if", "logic", "resource_facade")


def of_functions() -> Iterator[Case]:
    """Each snippet as a property, as an output, and with arguments that come from a resource."""
    for name, rows in cases_in("functions").items():
        for number, row in enumerate(rows):
            version, snippet = versioned(row)
            where = f"functions/{name}/{number}"
            yield {"name": f"{where} property", "request": as_property(snippet, version)}
            yield {"name": f"{where} output", "request": as_output(snippet, version)}
            late = None if name in EAGER or name == "data" else with_late_arguments(snippet)
            if late is not None:
                held, call = late
                resources = {"given": {"type": "OS::Heat::Value", "properties": {"value": held}}}
                yield {"name": f"{where} late", "request": as_property(call, version, resources)}


#: Arguments that Heat requires at once: it treats unknown ones as null, which it refuses.
KNOWN: Mapping[str, frozenset[int | str]] = {
    "list_join": frozenset({0}),
    "str_split": frozenset({0}),
    "digest": frozenset({0}),
    "contains": frozenset({0}),
    "str_replace": frozenset({"template"}),
    "str_replace_strict": frozenset({"template"}),
    "str_replace_vstrict": frozenset({"template"}),
    "repeat": frozenset({"template", "permutations"}),
    "yaql": frozenset({"expression"}),
    "make_url": frozenset({"scheme", "port"}),
}


def with_late_arguments(snippet: Json) -> tuple[Json, Json] | None:
    """The arguments of a call, and the call with those that can be known late read from `given`."""
    if not isinstance(snippet, dict) or len(snippet) != 1:
        return None
    ((name, args),) = snippet.items()
    known = KNOWN.get(name, frozenset())

    def read_given(*path: Json) -> Json:
        if path[0] in known:
            return args[path[0]]
        if isinstance(value := args[path[0]], dict) and len(path) == 1 and value:
            return {key: read_given(path[0], key) for key in value}
        return {"get_attr": ["given", "value", *path]}

    if isinstance(args, list) and args:
        return args, {name: [read_given(at) for at in range(len(args))]}
    if isinstance(args, dict) and args:
        return args, {name: {key: read_given(key) for key in args}}
    return None


def of_parameters() -> Iterator[Case]:
    for number, (schema, value) in enumerate(cases_in("parameters")):
        version = schema.pop("version", NEWEST) if isinstance(schema, dict) else NEWEST
        body: dict[str, Json] = {
            "parameters": {"p": schema},
            "resources": {"a": {"type": "OS::Heat::None"}},
            "outputs": {"p": {"value": {"get_param": "p"}}},
        }
        request: dict[str, Json] = {"template": template(body, version)}
        if value != "-":
            request["parameters"] = {"p": value}
        yield {"name": f"parameters/{number}", "request": request}


def of_conditions() -> Iterator[Case]:
    for number, row in enumerate(cases_in("conditions")):
        version, condition = versioned(row)
        body = {
            "parameters": dict(PARAMETERS),
            "conditions": {"always": True, "never": False, "c": condition},
            "resources": {
                **OTHERS,
                "chosen": {"type": "OS::Heat::None", "condition": "c"},
            },
        }
        request = {"template": template(body, version), "files": FILES}
        yield {"name": f"conditions/{number}", "request": request}


def of_sections() -> Iterator[Case]:
    for name, row in cases_in("sections").items():
        row = dict(row)
        version = row.pop("version", NEWEST)
        if "text" in row:
            row["template"] = row.pop("text")
        elif "bare" in row:
            row["template"] = row.pop("bare")
        else:
            row["template"] = template(row["template"], version)
        yield {"name": f"sections/{name}", "request": row}


ENVIRONMENT_TEMPLATE: Mapping[str, Json] = {
    "p": {"type": "string", "default": "d"},
    "n": {"type": "number", "default": 0},
    "l": {"type": "comma_delimited_list", "default": "d"},
    "j": {"type": "json", "default": {}},
    "flag": {"type": "boolean", "default": True},
}


def of_environments() -> Iterator[Case]:
    for name, row in cases_in("environments").items():
        row = dict(row)
        body = {
            "parameters": dict(ENVIRONMENT_TEMPLATE),
            "resources": row.pop("resources", {"x": {"type": "OS::Heat::None"}}),
            "outputs": {name: {"value": {"get_param": name}} for name in ENVIRONMENT_TEMPLATE},
        }
        files = row.pop("files", None)
        if files is not None:
            row["environment_files"] = row.pop("names", list(files))
            row["files"] = {one: yaml.safe_dump(text) for one, text in files.items()}
        yield {"name": f"environments/{name}", "request": {"template": template(body), **row}}


AWS = {"AWSTemplateFormatVersion": "2010-09-09"}
OLD_HEAT = {"HeatTemplateFormatVersion": "2012-12-12"}


def of_cfn() -> Iterator[Case]:
    tables = cases_in("cfn")
    for key, head in (("aws", AWS), ("heat", OLD_HEAT)):
        for name, body in tables[key].items():
            yield {"name": f"cfn/{key}/{name}", "request": {"template": {**head, **body}}}
    for number, snippet in enumerate(tables["snippets"]):
        resources = {
            "other": {"Type": "OS::Heat::Value", "Properties": {"value": {"list": ["x", "y"]}}},
            "made": {"Type": "OS::Heat::Value", "Properties": {"value": snippet}},
        }
        body = {
            "Parameters": {
                "Text": {"Type": "String", "Default": "list"},
                "List": {"Type": "CommaDelimitedList", "Default": "a,b"},
            },
            "Mappings": {"Map": {"top": {"second": "found"}}},
            "Resources": resources,
            "Outputs": {"made": {"Value": {"Fn::GetAtt": ["made", "value"]}}},
        }
        for key, head in (("aws", AWS), ("heat", OLD_HEAT)):
            request = {"template": {**head, **body}}
            yield {"name": f"cfn/snippets/{number} {key}", "request": request}


def of_combined() -> Iterator[Case]:
    """The snippets that Hypothesis once generated: see combined.py."""
    snippets = json.loads((RECORDED / "combined_snippets.json").read_text())
    for number, snippet in enumerate(snippets):
        yield {"name": f"combined/{number}", "request": as_property(snippet, NEWEST)}


def of_updates() -> Iterator[Case]:
    """A stack that `create` creates and `update` changes. `patch`: what the update omits stays."""
    for name, row in cases_in("updates").items():
        request = {"patch": row.get("patch", False)}
        for what in ("create", "update"):
            request[what] = dict(row[what])
            if "template" in row[what]:
                request[what]["template"] = template(row[what]["template"])
        yield {"name": f"updates/{name}", "asks": "update", "request": request}


def of_validations() -> Iterator[Case]:
    """Responses of POST /validate. `cfn`: the template is in CloudFormation syntax."""
    for name, row in cases_in("validations").items():
        row = dict(row)
        query = {key: row.pop(key) for key in ("show_nested", "ignore_errors") if key in row}
        whole = {**AWS, **row.pop("cfn")} if "cfn" in row else template(row["template"])
        files = {
            file: yaml.safe_dump(template(text)) for file, text in row.get("files", {}).items()
        }
        request = {**query, "body": {**row, "template": whole, "files": files}}
        yield {"name": f"validations/{name}", "asks": "validation", "request": request}


def of_versions() -> Iterator[Case]:
    """The versions of the language, and the functions of each."""
    yield {"name": "versions/all", "asks": "versions", "request": {}}
    for version in cases_in("versions"):
        for conditions in (False, True):
            request = {"version": version, "conditions": conditions}
            name = f"versions/{version} {'with conditions' if conditions else 'alone'}"
            yield {"name": name, "asks": "functions", "request": request}


def of_nested() -> Iterator[Case]:
    """A template in.yaml with two resources, created by a resource `nest` with `properties`; an
    output shows `read`.
    """
    tables = cases_in("nested")
    for name, row in tables["cases"].items():
        inside = {**tables["inside"], **row.get("inside", {})}
        resources = {
            "late": {"type": "OS::Heat::Value", "properties": {"value": row.get("late", "x")}},
            "nest": {"type": "in.yaml", "properties": row.get("properties", {})},
        }
        outputs = {
            f"o{at}": {"value": {"get_attr": ["nest", *path]}}
            for at, path in enumerate(row.get("read", []))
        }
        request = {
            "template": template({"resources": resources, "outputs": outputs}),
            "files": {"in.yaml": yaml.safe_dump(template(inside))},
        }
        yield {"name": f"nested/{name}", "request": request}


def digest(case: Case) -> str:
    """A digest of the request, which shows whether the case has changed since its response was
    recorded.
    """
    return sha256(json.dumps(case["request"], sort_keys=True).encode()).hexdigest()[:12]


TABLES: Mapping[str, Callable[[], Iterator[Case]]] = {
    "functions": of_functions,
    "parameters": of_parameters,
    "conditions": of_conditions,
    "sections": of_sections,
    "environments": of_environments,
    "cfn": of_cfn,
    "combined": of_combined,
    "updates": of_updates,
    "validations": of_validations,
    "versions": of_versions,
    "nested": of_nested,
}
