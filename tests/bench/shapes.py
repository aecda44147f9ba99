"""Templates of a size and shape."""

from tests.support.program import Json, resource


def wide(count: int) -> Json:
    return {f"r{n}": resource(str(n)) for n in range(count)}


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
    return {
        f"r{n}": resource(str(n), **({"depends_on": f"r{n - 1}"} if n else {}))
        for n in range(count)
    }
