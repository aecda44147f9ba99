"""The commands of the guides and examples that no test executes as written, and why.

`tests/repository/test_executed_commands.py` compares this list with the pages. `make test` executes the
others, except those that need an OpenStack, which `make test-openstack` executes: those of examples/openstack
and of docs/how-to/import-existing-resources.md (`tests/openstack/test_examples.py`), of
docs/how-to/migrate-from-heat.md with OpenStack Heat (`test_migration.py`) and of
docs/how-to/wait-for-a-signal.md with Swift (`test_swift_signal.py`). `make test-ansible` executes `pip install`
of docs/how-to/use-ansible-and-terraform.md (`tests/ansible/test_playbooks.py`).
"""

from collections.abc import Mapping

KUBERNETES = (
    "it needs a cluster or a registry; tests/integration/test_helm_chart.py renders the chart and starts the"
    " processes as its manifests say, and `make test-image` builds the image"
)
CLEAN_MACHINE = "`make test-clean-machine` executes it, on a machine of its own"

#: By page: the beginning of a command, and the reason.
UNEXECUTED: Mapping[str, Mapping[str, str]] = {
    "README.md": dict.fromkeys(("make demo", "make test"), CLEAN_MACHINE),
    "docs/how-to/harden.md": {
        "systemd-analyze": CLEAN_MACHINE,
    },
    "docs/how-to/run-at-scale.md": {
        "systemctl": CLEAN_MACHINE,
    },
    "docs/how-to/run-in-production.md": dict.fromkeys(
        ("getent", "python3 -m venv", "/opt/headgate", "systemctl", "chown root"), CLEAN_MACHINE
    ),
    "docs/how-to/run-on-kubernetes.md": dict.fromkeys(
        ("podman", "kubectl", "helm"), KUBERNETES
    ),
}  # fmt: skip
