"""References such as `${name}` in texts of Headgate's own versions of HOT."""

import re
from typing import Final

#: `$${`, or `${` with a name and, unless it is missing, its end.
REFERENCE: Final = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
