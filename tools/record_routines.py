"""Records the version and digest of the routines in engine/store/routines/VERSIONS.

Run it before each release, by `make routines-version`. It adds nothing when the routines are those
of the last line.
"""

from pathlib import Path

from engine.store.schema.routine_versions import own_version

VERSIONS = Path(__file__).parents[1] / "engine" / "store" / "routines" / "VERSIONS"


def main() -> None:
    own = own_version()
    if not own.released:
        with VERSIONS.open("a", encoding="utf-8") as file:
            file.write(f"{own.number} {own.digest}\n")
    print(f"routines: version {own.number} {'recorded' if not own.released else 'as recorded'}")


if __name__ == "__main__":
    main()
