"""What each function of the template language is for, in a sentence."""

from collections.abc import Mapping

DESCRIPTIONS: Mapping[str, str] = {
    "get_param": "The value of a parameter.",
    "get_resource": "The reference of a resource, by which others know it.",
    "get_attr": "An attribute of a resource, once it is there.",
    "get_file": "The content of a file that came with the template.",
    "list_join": "Joins the texts of one or more lists to one text.",
    "list_concat": "Joins lists to one list.",
    "list_concat_unique": "Joins lists to one list that holds each item once.",
    "str_replace": "Replaces words in a text by values.",
    "str_replace_strict": "Replaces words in a text by values; each word has to be there.",
    "str_replace_vstrict": "Replaces words in a text by values; no value may be empty.",
    "str_split": "Splits a text to a list, at a separator.",
    "repeat": "Fills a piece of the template in for each item of one or more lists.",
    "digest": "The digest of a text, by an algorithm such as sha256.",
    "map_merge": "Merges maps to one; a later one wins.",
    "map_replace": "Replaces keys and values of a map.",
    "make_url": "Puts an address together from its parts.",
    "filter": "A list without some values.",
    "contains": "Whether a value is in a sequence.",
    "if": "One of two values, as a condition says.",
    "equals": "Whether two values are the same.",
    "not": "Whether a condition does not hold.",
    "and": "Whether all of several conditions hold.",
    "or": "Whether one of several conditions holds.",
    "yaql": "The value of a YAQL expression.",
    "resource_facade": "What the parent template says of the resource that stands for this one.",
}
