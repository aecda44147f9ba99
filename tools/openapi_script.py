"""Writes the description of the API as a script for docs/reference/api.html: `make docs` runs it.

It is a script and not JSON, because a browser that reads the site from files loads no JSON.
"""

import json
import sys
from pathlib import Path

from hub.api.application import all_routes
from hub.api.openapi import openapi


def openapi_script() -> str:
    """The description that a server offers at /openapi.json, as the variable HEADGATE_API."""
    return f"const HEADGATE_API = {json.dumps(openapi(all_routes()))};\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(openapi_script())
