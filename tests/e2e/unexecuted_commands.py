"""The commands of the guides and examples that no test executes as written, and why.

`tests/repository/test_executed_commands.py` compares this list with the pages.
"""

from collections.abc import Mapping

FORM = "it shows the form of a command that other commands of the guides execute"
KUBERNETES = (
    "it needs a cluster or a registry; tests/integration/test_helm_chart.py renders the chart and starts the"
    " processes as its manifests say, and `make test-image` builds the image"
)
SYSTEMD = "it changes accounts, /etc or units of systemd on the machine; tests/integration/test_deploy.py checks the units"
OPENSTACK = "it needs an OpenStack; `make test-openstack` tests the same steps"
OPENSTACK_EXAMPLE = (
    "it needs an OpenStack with an image and a network; tests/openstack/test_examples.py creates, updates and"
    " deletes this stack"
)
DOMAIN = "it needs a server with TLS at a public name"
TOKENS = "it needs a server in mode tokens; tests/e2e/test_cli_access.py executes the command there"
TERMINAL = "the test has a server of its own"
HAPROXY = (
    "it needs HAProxy; tests/integration/examples/test_policies.py runs drain.py with a program that speaks its"
    " protocol"
)
DRILL = "tests/integration/admin/test_drill.py executes it with a database of its own"
AGENT = "tests/integration/examples/test_deployments.py runs agent.sh and the stack of the page"
ROTATION = (
    "it needs the keys of a server; tests/integration/admin/test_key_rotation.py and"
    " hooks/test_token_key_rotation.py execute the commands"
)
PACKAGES = "it installs packages into the environment of the reader"
SIGNAL = (
    "the URL and the token come from a notification; tests/integration/hooks sends the same request"
)
CLIENTS = (
    "tests/e2e/test_clients.py and test_readme.py execute it with the endpoint of the test's server"
)

#: By page: the beginning of a command, and the reason.
UNEXECUTED: Mapping[str, Mapping[str, str]] = {
    "README.md": {
        "make demo": "tests/e2e/test_demo.py runs the demo",
        "make test": "it runs this test",
    },
    "docs/how-to/README.md": {"headgate ": FORM},
    "docs/how-to/answer-a-hook.md": {
        "headgate subscription create": FORM,
        "curl -X POST": SIGNAL,
        "headgate hook history": FORM,
    },
    "docs/how-to/deploy-software.md": dict.fromkeys(
        ("openstack ", "server=$(openstack", "examples/deployments/agent.sh", "curl -X PUT", "headgate "),
        AGENT,
    ),
    "docs/how-to/guard-every-stack.md": {
        "python examples/policies/change_window.py": "the page of the example has the same command, which is executed",
    },
    "docs/how-to/harden.md": {
        "headgate admin": "it reads /etc; tests/integration/admin executes both commands with other settings",
        "systemd-analyze": SYSTEMD,
        "curl -si https://headgate.example.org": DOMAIN,
    },
    "docs/how-to/import-existing-resources.md": dict.fromkeys(
        ("headgate import OS::Neutron", "headgate stack from-resources lan"),
        "it needs an OpenStack; tests/openstack/test_import.py executes the commands with the same types",
    ),
    "docs/how-to/migrate-from-heat.md": {
        "export OS_": CLIENTS,
        "openstack stack": "it needs OpenStack Heat; tests/openstack/test_migration.py moves a stack",
        "headgate stack adopt": "it needs OpenStack Heat; tests/openstack/test_migration.py moves a stack",
    },
    "docs/how-to/repair-drift.md": {
        "openstack application credential": OPENSTACK,
        "headgate observation-credential": OPENSTACK,
    },
    "docs/how-to/rotate-keys.md": dict.fromkeys(
        ("umask 077", "headgate admin rotate", "headgate stack abandon"), ROTATION
    ),
    "docs/how-to/run-at-scale.md": {
        "systemctl": SYSTEMD,
        "headgate admin upgrade-check": "it reads /etc; tests/integration/database/test_rolling_upgrades.py executes the check",
        "headgate admin move-project": (
            "it needs two cells; tests/integration/database/test_project_moves.py executes it"
        ),
    },
    "docs/how-to/run-in-production.md": {
        **dict.fromkeys(
            ("useradd", "python3 -m venv /opt", "/opt/headgate", "install ", "cp deploy/systemd",
             "head -c 32", "systemctl"), SYSTEMD,
        ),
        "headgate admin": "it reads /etc; tests/integration/admin executes both commands with other settings",
        **dict.fromkeys(
            ("pg_dump", "createdb", "pg_restore", "HEADGATE_DATABASE__URL", "dropdb"), DRILL
        ),
    },
    "docs/how-to/run-on-kubernetes.md": dict.fromkeys(
        ("podman", "head -c 32", "openssl", "kubectl", "helm"), KUBERNETES
    ),
    "docs/how-to/scale-a-group.md": {"headgate hook continue crew:workers --data": FORM},
    "docs/how-to/set-up-access.md": {
        **dict.fromkeys(("export HEADGATE_TOKEN", "headgate token"), TOKENS),
        "export OS_": DOMAIN,
        "openstack ": OPENSTACK,
        "headgate admin doctor": "tests/integration/admin/test_doctor.py executes it",
        "curl -si https://headgate.example.org": DOMAIN,
    },
    "docs/how-to/step-through-a-stack.md": {
        "headgate hook history": FORM,
        "headgate admin verify-audit": "it needs the settings of the server; tests/integration/audit_log/test_signed_checkpoints.py executes it",
    },
    "docs/how-to/trace-a-change.md": {"pip install": PACKAGES},
    "docs/how-to/use-ansible-and-terraform.md": {"pip install": PACKAGES},
    "docs/how-to/use-openstack-clients.md": dict.fromkeys(("export OS_", "openstack stack"), CLIENTS),
    "docs/how-to/use-openstack.md": dict.fromkeys(
        (
            "openstack application credential", "headgate observation-credential",
            "openstack domain", "openstack user", "openstack role",
        ),
        OPENSTACK,
    ),
    "docs/how-to/wait-for-a-signal.md": {"curl -X PUT": FORM},
    "docs/how-to/write-a-listener.md": {
        "headgate subscription create": "tests/unit/headgate/test_guide.py runs the code of the page",
    },
    "examples/group/README.md": {"curl -X POST URL": FORM},
    "examples/openstack/rolling-web/README.md": dict.fromkeys(
        ("openstack stack", "python examples/openstack"), OPENSTACK_EXAMPLE
    ),
    "examples/openstack/scaling-servers/README.md": {"openstack stack": OPENSTACK_EXAMPLE},
    "examples/openstack/web-server/README.md": dict.fromkeys(
        ("openstack stack", "headgate hook"), OPENSTACK_EXAMPLE
    ),
    "examples/policies/README.md": dict.fromkeys(
        ("haproxy", "python -m http.server", "SECRET=whsec_ZHJhaW4t", "headgate stack create site", "headgate stack update site",
         "headgate hook list --stack site"), HAPROXY,
    ),
    "examples/shop/README.md": {"make serve": TERMINAL},
}  # fmt: skip
