"""Barbican's application. Its own entry point reads the pipeline from a fixed path in /etc."""

import sys
from pathlib import Path

import barbican.api.app  # configures the application
from paste import deploy

__all__ = ["application", "barbican"]
PIPELINES = Path(sys.prefix) / "etc/barbican/barbican-api-paste.ini"
application = deploy.loadapp(f"config:{PIPELINES}")
