"""Words of Python that messages for users must not contain."""

import re
from typing import Final

#: Parts of the messages of Python's own errors, names of its types, and its forms of values.
PYTHON_WORDS: Final = re.compile(
    r"could not convert|has no attribute|NoneType|expected str\b|must be str\b|unhashable"
    r"|is not (?:iterable|subscriptable|callable)|unsupported operand|invalid literal for|base 10"
    r"|not supported between|can only concatenate|object is|positional argument|codec can't"
    r"|ordinal not|not enough values|(?:string|list|tuple) indices|sequence item|math domain"
    r"|'(?:dict|str|int|list|float|bool|tuple)'|\b(?:True|False|None)\b|<class|Traceback"
    r"|\b(?:Key|Type|Value|Attribute|Index)Error\b|\b(?:dict|tuple|frozenset)\b"
)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
#: Values that messages quote in Heat's notation: a list or map, which may contain words of the
#: template and is the innermost one; the beginning of a long one; and a single value.
_COLLECTION = re.compile(r"[\[{][^\[\]{}]*[\]}]")
_CUT_COLLECTION = re.compile(r"[\[{].{199}\.\.\.", re.DOTALL)
_QUOTED_VALUE = re.compile(
    r"(?<=[( ])(?:True|False|None)(?=[,)])"
    r"|'(?:True|False|None)'|(?:(?<=: )|(?<= not ))(?:True|False|None)\b"
)
#: A type, and parts of messages of Heat, which programs compare.
_ALLOWED: Final = ("OS::Heat::None", "min: None", "max: None")


def python_words(message: str) -> list[str]:
    """Words of Python outside of quoted text and quoted values."""
    for allowed in _ALLOWED:
        message = message.replace(allowed, "")
    message, found = _CUT_COLLECTION.sub("", _QUOTED.sub('""', message)), 1
    while found:
        message, found = _COLLECTION.subn("", message)
    return PYTHON_WORDS.findall(_QUOTED_VALUE.sub("", message))
