"""The form of labels of workers: ``region=eu``."""

import re

#: The most characters of a label.
MAX_LENGTH = 100
EXAMPLE = "region=eu"
_LABEL = re.compile(
    r"[a-z0-9](?:[a-z0-9._/-]*[a-z0-9])?=[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
)


def label_problem(text: str) -> str:
    """Return why a text is not a label, or an empty string if it is."""
    if len(text) > MAX_LENGTH:
        return f"has {len(text)} characters, and a label has at most {MAX_LENGTH}"
    if _LABEL.fullmatch(text):
        return ""
    if "=" not in text:
        return f'"{text}" is not a label: it has no ='
    return f'"{text}" is not a label'


#: What to do about a text that is no label.
LABEL_REMEDY = (
    f"Write KEY=VALUE, such as {EXAMPLE}. The key has lower-case letters, digits and . _ - /, the"
    " value letters, digits and . _ -, and both begin and end with a letter or digit"
)
