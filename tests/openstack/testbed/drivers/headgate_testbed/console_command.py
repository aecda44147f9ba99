"""Runs a console command of the environment, after adding the drivers to nova.virt, the only
package that Nova loads hypervisor drivers from. Arguments: the command's name and its arguments.
"""

import importlib.metadata
import sys
from pathlib import Path


def main() -> None:
    del sys.argv[0]
    name = sys.argv[0]
    if name == "nova-compute":
        import nova.virt

        nova.virt.__path__.append(str(Path(__file__).parent))
    (entry_point,) = importlib.metadata.entry_points(group="console_scripts", name=name)
    sys.exit(entry_point.load()())


if __name__ == "__main__":
    main()
