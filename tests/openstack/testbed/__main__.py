"""`python -m tests.openstack.testbed`: starts and stops a test bed in a directory."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.openstack.testbed.control import start, start_optional, stop, supervisor_id
from tests.openstack.testbed.layout import INDEPENDENT, OPTIONAL, prepare_layout
from tests.openstack.testbed.processes import TestBedError, adopt_orphans, end_with_parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.openstack.testbed")
    parser.add_argument("action", choices=("start", "stop", "supervise"))
    parser.add_argument("directory", type=Path)
    for service in OPTIONAL:
        parser.add_argument(f"--{service}", action="store_true", help=f"run {service}, too")
    parser.add_argument(
        "--only", choices=INDEPENDENT, help="run Keystone, this service and what it needs"
    )
    parser.add_argument("--computes", type=int, default=2, help="the number of hypervisors")
    parser.add_argument("--parent", type=int, help="the process that the test bed ends with")
    options = parser.parse_args()
    options.optional = [service for service in OPTIONAL if getattr(options, service)]
    if options.only and options.optional:
        parser.error("--only excludes other services")
    failures: Sequence[BaseException] = ()
    try:
        if options.action == "supervise":
            supervise(options)
        elif options.action == "stop":
            stop(options.directory)
        else:
            if supervisor_id(options.directory) is None:
                start(
                    options.directory, optional=options.optional, computes=options.computes,
                    only=options.only,
                )  # fmt: skip
            for service in options.optional:
                start_optional(options.directory, service)
            print(options.directory / "clouds.yaml")
    except* TestBedError as errors:
        failures = errors.exceptions
    for error in failures:
        print(f"testbed: {error}", file=sys.stderr)
    if failures:
        sys.exit(1)


def supervise(options: argparse.Namespace) -> None:
    """Run the test bed in this process until a signal ends it."""
    from tests.openstack.testbed.supervisor import supervise

    if options.parent is not None:
        end_with_parent(options.parent)
    adopt_orphans()
    layout = prepare_layout(
        options.directory, computes=options.computes, optional=options.optional, only=options.only
    )
    asyncio.run(supervise(layout, keep_data=options.parent is None))


if __name__ == "__main__":
    main()
