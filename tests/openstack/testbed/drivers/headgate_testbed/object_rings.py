"""Writes the rings of Swift. Arguments: a directory, and the ports of the account, container and
object server."""

import sys
from pathlib import Path

from swift.common.ring import RingBuilder

#: 64 partitions, one replica, and no pause between two changes.
SIZE = (6, 1, 0)


def main() -> None:
    directory, *ports = sys.argv[1:]
    for kind, port in zip(("account", "container", "object"), ports, strict=True):
        builder = RingBuilder(*SIZE)
        address = {"ip": "127.0.0.1", "port": int(port)}
        replication = {f"replication_{name}": value for name, value in address.items()}
        builder.add_dev(
            {"region": 1, "zone": 1, "weight": 1, "device": "d1", **address, **replication}
        )
        builder.rebalance()
        builder.get_ring().save(str(Path(directory) / f"{kind}.ring.gz"))


if __name__ == "__main__":
    main()
