"""Programs of other versions: their sources in a directory, for `ServerProcess(program=...)`.

They use the packages that are installed for this one.
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("channels", "engine", "headgate", "hub")
SQL = ("migrations", "routines")
#: What the next version might add to the schema: a column to each table, a table, an index.
ADDITIONS = """
do $$
declare
    one text;
begin
    for one in select c.relname from pg_class c
                where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
                  and c.relname not in ('migration', 'routines')
    loop
        execute format('alter table %I add column next_text text, '
                       'add column next_number integer not null default 7', one);
    end loop;
end $$;
create table next (stack_id uuid not null);
create index next_index on node (resource_id);
"""


def build_next_program(
    directory: Path, version: str, migrations: Mapping[str, str], *, routines: bool = True
) -> Path:
    """A program that equals this one, but for its version and its SQL.

    migrations: their names and texts, in addition to those of this program. routines: whether its
    functions have another text.
    """
    store, own_store = directory / "engine" / "store", ROOT / "engine" / "store"
    store.mkdir(parents=True)
    _link(ROOT, directory, PACKAGES)
    _link(ROOT / "engine", directory / "engine")
    _link(own_store, store, without=SQL)
    for folder in SQL:
        (store / folder).mkdir()
        for file in (own_store / folder).iterdir():
            text = file.read_text()
            if folder == "routines" and routines:
                text = text.replace("$$;", f"-- of version {version}\n$$;")
            (store / folder / file.name).write_text(text)
    for name, text in migrations.items():
        (store / "migrations" / name).write_text(text)
    information = directory / f"headgate-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: headgate\nVersion: {version}\n"
    )
    return directory


def _link(
    source: Path, target: Path, names: Sequence[str] = (), without: Sequence[str] = ()
) -> None:
    """Link to the entries of a directory. names: none: all of them."""
    for name in names or [one.name for one in source.iterdir()]:
        if name not in without and not (target / name).exists():
            (target / name).symlink_to(source / name)


def extract_program(directory: Path, revision: str) -> Path:
    """The program of a revision of this repository."""
    directory.mkdir()
    archive = subprocess.run(
        ["git", "archive", revision, *PACKAGES], cwd=ROOT, check=False, capture_output=True
    )  # fmt: skip
    reason = archive.stderr.decode()
    assert archive.returncode == 0, f"no {revision} here; run git fetch --tags: {reason}"
    subprocess.run(["tar", "-x"], cwd=directory, check=True, input=archive.stdout)
    return directory
