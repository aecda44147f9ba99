"""Examples in the help of each command."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer._click import Command

#: Command -> command lines without `headgate`. A test parses each.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "stack create": (
        "stack create web -t web.yaml -e prod.yaml -P size=3 --wait",
        "stack create web -t web.yaml --dry-run",
        "stack create web -t web.yaml --break-at db:pre-create --until-waiting",
    ),
    "stack update": (
        "stack update web -t web.yaml -e prod.yaml --dry-run",
        "stack update web --existing -P size=5 --wait",
        "stack update web -t web.yaml --only 'app_*'",
        "stack update web -t web.yaml --moved db=database",
    ),
    "stack list": (
        "stack list",
        "stack list --status FAILED --tag prod",
        "stack list -o name",
    ),
    "stack show": ("stack show web", "stack show web -o jsonpath='{.stack_status}'"),
    "stack delete": ("stack delete web --wait", "stack delete web --yes"),
    "stack history": ("stack history web", "stack history web --limit 10"),
    "stack template": ("stack template web", "stack template web --version 3 > web-3.yaml"),
    "stack diff": ("stack diff web -t web.yaml", "stack diff web --from 3 --to 5"),
    "stack decisions": ("stack decisions web", "stack decisions web --limit 20 -o wide"),
    "stack cancel": ("stack cancel web --wait", "stack cancel web --no-rollback"),
    "stack stop": ("stack stop web",),
    "stack check": ("stack check web --wait",),
    "stack suspend": ("stack suspend web --wait",),
    "stack resume": ("stack resume web --wait", "stack resume web --clear-hook db:pre-create"),
    "stack pin": ("stack pin web --reason 'kept for the audit'",),
    "stack unpin": ("stack unpin web",),
    "stack export": ("stack export web -o web.json",),
    "stack abandon": ("stack abandon web -o web.json",),
    "stack adopt": ("stack adopt web -f web.json --wait",),
    "stack from-resources": (
        "stack from-resources lan OS::Neutron::Net b44a1f34 OS::Neutron::Subnet 9c1d0e77 --dry-run",
        "stack from-resources site Headgate::HTTP 17 --properties 17=site.yaml --wait",
    ),
    "stack run-to": ("stack run-to web app",),
    "stack breakpoints list": ("stack breakpoints list web",),
    "stack breakpoints add": (
        "stack breakpoints add web db",
        "stack breakpoints add web 'app_*:post-create' pre-stack-update",
    ),
    "stack breakpoints remove": (
        "stack breakpoints remove web db:pre-update",
        "stack breakpoints remove web --all",
    ),
    "stack observe": ("stack observe web --wait",),
    "stack drift": ("stack drift web", "stack drift web -o json"),
    "stack converge": (
        "stack converge web --dry-run",
        "stack converge web --only 'db*' --rounds 3 --wait",
    ),
    "stack dependencies": ("stack dependencies web",),
    "stack snapshot create": ("stack snapshot create web --name before-upgrade --wait",),
    "stack snapshot list": ("stack snapshot list web",),
    "stack snapshot show": ("stack snapshot show web before-upgrade",),
    "stack snapshot delete": ("stack snapshot delete web before-upgrade",),
    "stack snapshot restore": ("stack snapshot restore web before-upgrade --wait",),
    "resource list": ("resource list web", "resource list web --nested-depth 2 -o wide"),
    "resource show": ("resource show web db",),
    "resource mark-unhealthy": ("resource mark-unhealthy web db --reason 'disk errors'",),
    "resource protect": ("resource protect web db",),
    "resource unprotect": ("resource unprotect web db",),
    "resource signal": ("resource signal web ready --data status=SUCCESS",),
    "hook list": (
        "hook list",
        "hook list --mine",
        "hook list --stack web --older 30m",
        "hook list --all-projects --mine",
    ),
    "hook show": ("hook show web:db", "hook show 3f2a91c0"),
    "hook history": ("hook history web:db",),
    "hook hand-over": ("hook hand-over web:db role:dba --note 'needs a backup first'",),
    "hook continue": (
        "hook continue web:db --reason 'backup done'",
        "hook continue web:db --data ticket=OPS-17",
        "hook continue --stack web --at 'mon_*'",
    ),
    "hook repair": ("hook repair web:db --reason 'deleted by mistake'",),
    "hook adopt": ("hook adopt web:db",),
    "hook ignore": ("hook ignore web:db --for 2h",),
    "hook step": ("hook step web:db", "hook step web:db --into"),
    "hook run": ("hook run web:db",),
    "hook patch": ("hook patch web:db --set size=20 --set 'tags=[big, slow]'",),
    "hook progress": ("hook progress web:db --extend 2h --reason 'backup runs'",),
    "hook reject": ("hook reject web:db --reason 'outside of the window'",),
    "observation report": ("observation report 7d1f0c52 --type OS::Nova::Server",),
    "observation-credential set": ("observation-credential set 5d1a6c6a3c8f4b6f9d0c1e2f3a4b5c6d",),
    "observation-credential show": ("observation-credential show --json",),
    "observation-credential delete": ("observation-credential delete --yes",),
    "subscription create": (
        "subscription create https://gate.example/hook --events 'headgate.hook.*'",
        "subscription create events --channel amqp --tags prod",
    ),
    "subscription list": ("subscription list",),
    "subscription show": ("subscription show 3f2a91c0",),
    "subscription change": ("subscription change 3f2a91c0 --tags prod --remove-filter events",),
    "subscription enable": ("subscription enable 3f2a91c0",),
    "subscription disable": ("subscription disable 3f2a91c0",),
    "subscription delete": ("subscription delete 3f2a91c0",),
    "subscription test": ("subscription test 3f2a91c0",),
    "subscription rotate": ("subscription rotate 3f2a91c0",),
    "subscription deliveries": ("subscription deliveries 3f2a91c0 --state dead",),
    "subscription redeliver": (
        "subscription redeliver 3f2a91c0 --dead",
        "subscription redeliver 3f2a91c0 --since 2026-11-01T00:00:00Z",
    ),
    "type list": ("type list",),
    "type show": ("type show OS::Heat::RandomString",),
    "template validate": (
        "template validate web.yaml -e prod.yaml",
        "template validate web.yaml --output github",
    ),
    "template schema": ("template schema > hot.schema.json",),
    "token create": (
        "token create ci --role author --expires-in 90d",
        "token create ann --role approver --password",
    ),
    "token list": ("token list --all",),
    "token revoke": ("token revoke 3f2a91c0",),
    "token whoami": ("token whoami",),
    "context list": ("context list",),
    "context show": ("context show production",),
    "context use": ("context use production",),
    "context delete": ("context delete production",),
    "admin create-token": ("admin create-token ann --role admin --everywhere",),
    "admin purge": ("admin purge --dry-run", "admin purge --older-than 30d"),
    "admin move-project": (
        "admin move-project 5ad1ebf9a2b64b9d --to b --config api.toml",
        "admin move-project 5ad1ebf9a2b64b9d --undo --config api.toml",
        "admin move-project 5ad1ebf9a2b64b9d --discard b --config api.toml",
    ),
    "admin migrate": ("admin migrate --dry-run",),
    "admin upgrade-check": ("admin upgrade-check", "admin upgrade-check -o json"),
    "admin doctor": ("admin doctor --config /etc/headgate.toml",),
    "admin backup-check": ("admin backup-check --config /etc/headgate.toml",),
    "admin rotate-encryption-key": ("admin rotate-encryption-key",),
    "admin rotate-token-key": (
        "admin rotate-token-key --keep-for 7d",
        "admin rotate-token-key --revoke",
    ),
    "admin sign-audit": ("admin sign-audit",),
    "admin audit-key": ("admin audit-key > audit-key.pem",),
    "admin verify-audit": ("admin verify-audit", "admin verify-audit --signed checkpoints.jsonl"),
    "serve": ("serve --data-dir /var/lib/headgate", "serve --config /etc/headgate.toml"),
    "demo": ("demo", "demo --look"),
    "man": ("man ~/.local/share/man/man1",),
    "watch": ("watch web", "watch web -o json", "watch --forward http://127.0.0.1:9000/"),
    "why": ("why web",),
    "graph": ("graph web", "graph web --dot | dot -Tsvg > web.svg"),
    "events": ("events web --limit 20", "events web --follow"),
    "login": (
        "login --context production --url https://headgate.example --project shop",
        "login --web --url https://headgate.example --project shop",
        "login --web --no-browser",
    ),
    "logout": ("logout", "logout --context production"),
    "import": (
        "import OS::Neutron::Net b44a1f34 OS::Neutron::Subnet 9c1d0e77 > lan.yaml",
        "import Headgate::HTTP 17 --properties 17=site.yaml",
    ),
    "quota": ("quota",),
    "usage": ("usage --from 2026-11-01 --to 2026-11-30 --csv > usage.csv",),
}


#: Group -> command lines without `headgate`; "": of the program itself. A test parses each.
GROUP_EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "stack create web -t web.yaml --wait",
        "hook continue web:db --reason 'backup done'",
    ),
    "stack": ("stack update web -t web.yaml --dry-run", "stack show web"),
    "stack breakpoints": (
        "stack breakpoints add web db:pre-update",
        "stack breakpoints remove web --all",
    ),
    "stack snapshot": (
        "stack snapshot create web --name before-upgrade --wait",
        "stack snapshot restore web before-upgrade --wait",
    ),
    "resource": ("resource list web", "resource show web db"),
    "hook": ("hook list --mine", "hook continue web:db --reason 'backup done'"),
    "observation": (
        "observation report 7d1f0c52 --type OS::Nova::Server",
        "observation report 7d1f0c52",
    ),
    "observation-credential": (
        "observation-credential set 5d1a6c6a3c8f4b6f9d0c1e2f3a4b5c6d",
        "observation-credential show",
    ),
    "subscription": (
        "subscription create https://gate.example/hook --events 'headgate.hook.*'",
        "subscription deliveries 3f2a91c0 --state dead",
    ),
    "type": ("type list", "type show OS::Heat::RandomString"),
    "template": ("template validate web.yaml -e prod.yaml", "template schema > hot.schema.json"),
    "token": ("token create ci --role author --expires-in 90d", "token whoami"),
    "context": ("context list", "context use production"),
    "admin": (
        "admin doctor --config /etc/headgate.toml",
        "admin create-token ann --role admin --everywhere",
    ),
}


#: Commands that a user can take for each other.
SEE_ALSO: Mapping[str, tuple[str, ...]] = {
    "events": ("watch", "stack decisions", "stack history"),
    "graph": ("why", "watch"),
    "hook continue": ("hook run", "hook step", "stack resume"),
    "hook history": ("stack decisions",),
    "hook list": ("why",),
    "hook reject": ("stack stop", "stack cancel"),
    "quota": ("usage",),
    "resource show": ("stack show", "why"),
    "stack cancel": ("stack stop",),
    "stack check": ("stack observe",),
    "stack decisions": ("hook history", "events"),
    "stack drift": ("stack observe", "stack converge"),
    "stack history": ("events", "stack decisions"),
    "stack observe": ("stack drift", "stack check"),
    "stack resume": ("hook continue",),
    "stack show": ("why", "watch", "events", "resource list"),
    "stack stop": ("stack cancel", "hook reject"),
    "template validate": ("stack create", "stack update"),
    "token create": ("admin create-token", "login"),
    "admin create-token": ("token create",),
    "usage": ("quota",),
    "watch": ("why", "events"),
    "why": ("watch", "graph", "hook list"),
}
#: What other tools call a command, or with its group, what the API calls it.
SYNONYMS: Mapping[str, str] = {
    "hook signal": "hook continue",
    "apply": "stack update",
    "approve": "hook continue",
    "deny": "hook reject",
    "destroy": "stack delete",
    "logs": "events",
    "plan": "stack update --dry-run",
    "status": "stack show",
}
#: Commands that a message names.
MAX_SUGGESTED = 4


def suggest_command(word: str, group: str = "") -> str:
    """``Did you mean `headgate events`?`` for a command of another group; empty: there is none.
    group: in which the word is no command."""
    if (meant := SYNONYMS.get(f"{group} {word}")) is not None:
        found = [meant]
    else:
        found = [path for path in EXAMPLES if path.rpartition(" ")[2] == word]
        found = sorted(found, key=lambda path: path.count(" "))[:MAX_SUGGESTED]
        found = found or [one for one in (SYNONYMS.get(word),) if one]
    commands = " or ".join(f"`headgate {path}`" for path in found)
    return f"Did you mean {commands}?" if commands else ""


def find_examples(path: str) -> tuple[str, ...]:
    """Those of a command or group; none of an unknown one. path: its name; "": the program."""
    return EXAMPLES.get(path) or GROUP_EXAMPLES.get(path, ())


def format_examples(path: str) -> str:
    """A paragraph of a help text. path: see `find_examples`."""
    lines = [f"  headgate {one}" for one in find_examples(path)]
    # The first character keeps the line breaks.
    return "\n".join(["\b", "Examples:", *lines])


def add_examples(command: "Command", path: str) -> None:
    """Append the examples to the help of a command. path: the words that call it."""
    if find_examples(path):
        others = ", ".join(f"headgate {one}" for one in SEE_ALSO.get(path, ()))
        command.epilog = format_examples(path)
        command.epilog += f"\n\nSee also: {others}." if others else ""
