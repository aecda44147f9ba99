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
TERMINAL = "the test has a server of its own"
HAPROXY = (
    "it needs HAProxy; tests/integration/examples/test_policies.py runs drain.py with a program that speaks its"
    " protocol"
)
DRILL = "tests/integration/admin/test_drill.py executes it with a database of its own"
AGENT = "tests/integration/examples/test_deployments.py runs agent.sh and the stack of the page"
DAMAGED = (
    "it needs a value that cannot be decrypted; tests/integration/secrets/test_copied_ciphertext.py abandons"
    " a stack with one"
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
    "docs/how-to/answer-a-hook.md": {"curl -X POST": SIGNAL},
    "docs/how-to/deploy-software.md": dict.fromkeys(
        ("openstack ", "server=$(openstack", "examples/deployments/agent.sh", "curl -X PUT", "headgate "),
        AGENT,
    ),
    "docs/how-to/guard-every-stack.md": {
        "python examples/policies/change_window.py": "the page of the example has the same command, which is executed",
    },
    "docs/how-to/harden.md": {
        "systemd-analyze": SYSTEMD,
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
    "docs/how-to/rotate-keys.md": {"headgate stack abandon": DAMAGED},
    "docs/how-to/run-at-scale.md": {
        "systemctl": SYSTEMD,
        "headgate admin move-project": (
            "it needs two cells; tests/integration/database/test_project_moves.py executes it"
        ),
        "headgate admin create-token": (
            "it needs two cells; tests/integration/database/test_tokens_in_cells.py executes its code"
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
        "openstack ": "it changes the service catalog of an OpenStack",
    },
    "docs/how-to/step-through-a-stack.md": {
        "headgate admin verify-audit": "it needs the settings of the server; the page about hardening has it, too, and is executed",
    },
    "docs/how-to/trace-a-change.md": {"pip install": PACKAGES},
    "docs/how-to/use-ansible-and-terraform.md": {"pip install": PACKAGES},
    "docs/how-to/use-openstack-clients.md": dict.fromkeys(
        ("export OS_AUTH_TYPE=http_basic", "export OS_AUTH_TYPE=admin_token"),
        "it needs a server in mode tokens; set-up-access.md has the same commands, which are executed",
    ),
    "docs/how-to/use-openstack.md": dict.fromkeys(
        (
            "openstack application credential", "headgate observation-credential",
            "openstack domain", "openstack user", "openstack role",
        ),
        OPENSTACK,
    ),
    "docs/how-to/wait-for-a-signal.md": {"curl -X PUT": FORM},
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
