"""The commands of the guides and examples that no test executes as written, and why.

`tests/repository/test_executed_commands.py` compares this list with the pages. `make test` executes the
others, except those that need an OpenStack, which `make test-openstack` executes: those of examples/openstack
and of docs/how-to/import-existing-resources.md (`tests/openstack/test_examples.py`), of
docs/how-to/migrate-from-heat.md with OpenStack Heat (`test_migration.py`) and of
docs/how-to/wait-for-a-signal.md with Swift (`test_swift_signal.py`).
"""

from collections.abc import Mapping

KUBERNETES = (
    "it needs a cluster or a registry; tests/integration/test_helm_chart.py renders the chart and starts the"
    " processes as its manifests say, and `make test-image` builds the image"
)
SYSTEMD = "it changes accounts, /etc or units of systemd on the machine; tests/integration/test_deploy.py checks the units"
TERMINAL = "the test has a server of its own"
PACKAGES = "it installs packages, which takes half a minute or more; {}"

#: By page: the beginning of a command, and the reason.
UNEXECUTED: Mapping[str, Mapping[str, str]] = {
    "README.md": {
        "make demo": "tests/e2e/test_demo.py runs the demo",
        "make test": "it runs this test",
    },
    "docs/how-to/harden.md": {
        "systemd-analyze": SYSTEMD,
    },
    "docs/how-to/run-at-scale.md": {
        "systemctl": SYSTEMD,
    },
    "docs/how-to/run-in-production.md": {
        **dict.fromkeys(("useradd", "systemctl"), SYSTEMD),
        **dict.fromkeys(
            ("python3 -m venv", "/opt/headgate"),
            PACKAGES.format("tests/integration/test_wheels.py installs the server from its wheel"),
        ),
    },
    "docs/how-to/run-on-kubernetes.md": dict.fromkeys(
        ("podman", "kubectl", "helm"), KUBERNETES
    ),
    "docs/how-to/use-ansible-and-terraform.md": {
        "pip install": PACKAGES.format("`make test-ansible` installs requirements/ansible.lock"),
    },
    "examples/shop/README.md": {"make serve": TERMINAL},
}  # fmt: skip
