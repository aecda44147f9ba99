"""Templates of a size and shape."""

from tests.support.program import Json, resource

#: An environment that sets a breakpoint before each resource is created.
BREAKPOINTS = {"resource_registry": {"resources": {"*": {"hooks": "pre-create"}}}}


def wide(count: int, value: str = "") -> Json:
    """Independent resources."""
    return {f"r{n}": resource(f"{value}{n}") for n in range(count)}


def layered(count: int, layers: int = 10) -> Json:
    """Each resource depends on two of the layer before."""
    size = count // layers
    return {
        f"r{n}": resource(
            str(n),
            **(
                {"depends_on": [f"r{n - size}", f"r{(n // size - 1) * size + (n + 1) % size}"]}
                if n >= size
                else {}
            ),
        )
        for n in range(count)
    }


def chain(count: int) -> Json:
    """Each resource depends on the one before."""
    return {
        f"r{n}": resource(str(n), **({"depends_on": f"r{n - 1}"} if n else {}))
        for n in range(count)
    }


def value_chain(count: int) -> Json:
    """Each resource returns the value of the one before, and calls nothing."""
    return {
        f"r{n}": {
            "type": "OS::Heat::Value",
            "properties": {"value": {"get_attr": [f"r{n - 1}", "value"]} if n else "x"},
            **({"depends_on": f"r{n - 1}"} if n else {}),
        }
        for n in range(count)
    }
