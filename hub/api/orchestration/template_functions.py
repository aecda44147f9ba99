"""The versions of the template language, and the functions of each."""

from collections.abc import Mapping

from aiohttp import web

from engine.errors import NotFound, nearest
from engine.hot.language.dialect import DIALECTS, HOT
from engine.hot.language.versions import ALIASES, VERSIONS, known_versions, template_functions
from hub.api.orchestration import responses
from hub.api.request_validation import query_flag
from hub.api.routes import Route, json_response

DESCRIPTIONS: Mapping[str, str] = {
    "get_param": "The value of a parameter.",
    "get_resource": "The reference of a resource, such as its physical ID.",
    "get_attr": "An attribute of a resource, after its creation.",
    "get_file": "The content of a file of the request.",
    "list_join": "Joins the items of one or more lists into a string.",
    "list_concat": "Concatenates lists.",
    "list_concat_unique": "Concatenates lists and removes duplicate items.",
    "str_replace": "Replaces keys in a string by values.",
    "str_replace_strict": "Replaces keys in a string by values; each key must occur.",
    "str_replace_vstrict": "Replaces keys in a string by values; no value may be empty.",
    "str_split": "Splits a string at a delimiter into a list.",
    "repeat": "Repeats a part of the template for each item of one or more lists.",
    "digest": "The digest of a string, with an algorithm such as sha256.",
    "map_merge": "Merges maps; later maps take precedence.",
    "map_replace": "Replaces keys and values of a map.",
    "make_url": "Builds a URL from its parts.",
    "filter": "A list without certain values.",
    "contains": "Whether a list or a string contains a value.",
    "if": "One of two values, selected by a condition.",
    "equals": "Whether two values are equal.",
    "not": "Whether a condition is false.",
    "and": "Whether all conditions are true.",
    "or": "Whether at least one condition is true.",
    "yaql": "The value of a YAQL expression.",
    "get_local": "The value of a local.",
    "stack_output": "The value of an output of another stack of the project.",
    "length": "The number of characters, items or keys.",
    "to_json": "A value as JSON text.",
    "from_json": "The value of JSON text.",
    "first": "The first item of a list.",
    "distinct": "A list without duplicate items.",
    "coalesce": "The first value that is neither null nor an empty string.",
    "lower": "A string in lower case.",
    "upper": "A string in upper case.",
    "lookup": "A value of a map or an item of a list, or a default.",
    "add": "The sum of integers.",
    "subtract": "The difference of two integers.",
    "multiply": "The product of integers.",
    "divide": "The quotient of two integers, rounded down.",
    "modulo": "The remainder of a division of two integers.",
    "Ref": "The value of a parameter, or the reference of a resource.",
    "Fn::GetAtt": "An attribute of a resource, after its creation.",
    "Fn::FindInMap": "A value of the section Mappings, by two keys.",
    "Fn::GetAZs": "The availability zones of a region.",
    "Fn::Select": "An item of a list by its index, or of a map by its key.",
    "Fn::Join": "Joins the items of a list into a string.",
    "Fn::Split": "Splits a string at a delimiter into a list.",
    "Fn::Replace": "Replaces keys in a string by values.",
    "Fn::Base64": "The string itself, as in Heat, which does not encode it.",
    "Fn::MemberListToMap": "A map from a list of strings such as .member.0.Name=a.",
    "Fn::ResourceFacade": "Metadata or a policy of this nested stack's resource in its parent.",
    "Fn::If": "One of two values, selected by a condition.",
    "Fn::Equals": "Whether two values are equal.",
    "Fn::Not": "Whether a condition is false.",
    "Fn::And": "Whether all conditions are true.",
    "Fn::Or": "Whether at least one condition is true.",
    "resource_facade": "Metadata or a policy of this nested stack's resource in its parent.",
}
#: Functions of conditions, which Heat lists only on request.
CONDITIONS = ("equals", "not", "and", "or", "Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or")


async def list_versions(_: web.Request) -> web.Response:
    return json_response(
        responses.SupportedTemplateVersions(
            template_versions=[
                {
                    "version": f"{version.dialect.version}.{date}",
                    "type": "hot" if version.dialect is HOT else "cfn",
                    "aliases": [
                        f"{HOT.version}.{one}" for one, of in ALIASES.items() if of == date
                    ],
                }
                for date, version in VERSIONS.items()
            ]
        )
    )


async def list_functions(request: web.Request) -> web.Response:
    version = request.match_info["version"]
    key, _, name = (version if "." in version else f"{HOT.version}.{version}").partition(".")
    if name not in known_versions(key):
        reason = f"Template with version {version} not found"
        near = nearest(name, known_versions(key)) or nearest(key, [*DIALECTS])
        remedy = near or "GET .../template_versions lists the versions."
        raise NotFound(reason, place="version", remedy=remedy, code="NotFound")
    with_conditions = query_flag(request, "with_condition_func")
    return json_response(
        responses.TemplateFunctions(
            template_functions=[
                {"functions": one, "description": DESCRIPTIONS.get(one, "")}
                for one in template_functions(name)
                if with_conditions or one not in CONDITIONS
            ]
        )
    )


ROUTES = (
    Route("GET", "/v1/{project}/template_versions", list_versions, "Template versions", "templates",
          response=responses.SupportedTemplateVersions),
    Route("GET", "/v1/{project}/template_versions/{version}/functions", list_functions,
          "Functions of a template version", "templates", response=responses.TemplateFunctions,
          query={"with_condition_func": "true: include functions of conditions"}),
)  # fmt: skip
