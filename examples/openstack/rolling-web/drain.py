"""Takes members out of a load balancer before a batch of a rolling update changes them.

    python drain.py --connections ./connections.sh

Waits for hooks at `pre-batch`. For each, it sets the weight of the members of the batch to 0, so
that they get no new connections, and waits until they have none: until the command prints 0 for the
address of each. Then it answers `continue`. Without a command, it waits for --seconds. If a member
still has connections after --at-most seconds, it restores the weights and answers `reject`. It also
restores them if Headgate refuses the answer: the hook has been answered, or its batch has changed.

It acts as the user whose credentials are in the environment, as for `openstack`: OS_CLOUD, or
OS_AUTH_URL and others. The change continues with the token of its answers.
"""

import argparse
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

import openstack
from openstack.connection import Connection
from openstack.exceptions import ConflictException, NotFoundException


def members_of(balancing: Any, pool: Any, names: Sequence[str]) -> list[Any]:
    """The members of the pool with the tag `member-NAME`."""
    tags = {f"member-{name}" for name in names}
    return [one for one in balancing.members(pool) if tags & set(one.tags or [])]


def set_weight(balancing: Any, pool: Any, member: Any, weight: int) -> None:
    """A load balancer takes one change at a time."""
    (balancer,) = pool.loadbalancers
    while True:
        balancing.wait_for_load_balancer(balancer["id"], interval=1)
        try:
            balancing.update_member(member, pool, weight=weight)
            break
        except ConflictException:  # another change has begun
            time.sleep(1)
        except NotFoundException:  # the batch has replaced the member
            return
    balancing.wait_for_load_balancer(balancer["id"], interval=1)


def connections(command: str, address: str) -> int:
    printed = subprocess.run([command, address], stdout=subprocess.PIPE, text=True, check=True)
    return int(printed.stdout)


def is_drained(options: argparse.Namespace, addresses: Sequence[str], began: float) -> bool:
    if options.connections is None:
        return bool(time.monotonic() - began >= options.seconds)
    return not any(connections(options.connections, one) for one in addresses)


def handle(
    cloud: Connection, endpoint: str, hook: Mapping[str, Any], options: argparse.Namespace
) -> None:
    """Take the members of a batch out of the pool, and answer the hook."""
    balancing: Any = cloud.load_balancer
    pool = balancing.find_pool(hook["stack_name"], ignore_missing=False)
    names = hook["resource"]["seen"]["members"]
    members = members_of(balancing, pool, names)

    def restore() -> None:
        for one in members:
            set_weight(balancing, pool, one, weights[one.id])

    # A run of this program that has ended may have left a weight of 0.
    weights = {one.id: one.weight or options.weight for one in members}
    for one in members:
        set_weight(balancing, pool, one, 0)
    decision, began = "continue", time.monotonic()
    while not is_drained(options, [one.address for one in members], began):
        if time.monotonic() - began > options.at_most:
            decision = "reject"
            restore()
            break
        time.sleep(1)
    # Headgate refuses the answer if the batch differs from the drained one, or if the hook has been
    # answered meanwhile.
    answer = {"decision": decision, "digest": hook["digest"]}
    url = f"{endpoint}/hooks/{hook['id']}/signal"
    response = cloud.session.post(url, json=answer, raise_exc=False)
    print(hook["path"], names, decision, response.status_code, flush=True)
    if response.status_code >= 400:
        restore()


def main() -> None:
    parser = argparse.ArgumentParser(description="Drains the members of each batch.")
    parser.add_argument("--endpoint", help="of Headgate; the default is in the service catalog")
    parser.add_argument("--connections", help="prints the number of connections of an address")
    parser.add_argument("--seconds", type=float, default=30, help="the wait without a command")
    parser.add_argument("--at-most", type=float, default=600, help="seconds until it gives up")
    parser.add_argument(
        "--weight", type=int, default=1, help="restored if a member has the weight 0 before"
    )
    options = parser.parse_args()
    with openstack.connect() as cloud:
        endpoint: Any = options.endpoint or cloud.orchestration.get_endpoint()
        while True:
            waiting = cloud.session.get(f"{endpoint}/hooks?state=waiting").json()["hooks"]
            for hook in waiting:
                if hook["point"] == "pre-batch":
                    handle(cloud, endpoint, hook, options)
            time.sleep(2)


if __name__ == "__main__":
    main()
