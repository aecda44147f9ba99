"""The encryption keys of the rows of a project.

While a key is rotated, and after an interrupted rotation, a database has values of two keys. Such
rows do not move: the processes of the other cell may lack one of the keys.
"""

from collections.abc import Mapping

from engine import errors
from engine.store.access.token_keys import key_check
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Keyring
from engine.store.maintenance import project_moves as moves
from engine.store.maintenance.reencryption import TABLES, EncryptedTable

#: In documents, and in texts: see engine/store/encryption/secret_values.py. Texts of version 0.1
#: have no key.
_in_documents = r"""
select found[1] as key_id
  from {table} t
 cross join lateral regexp_matches(
           concat_ws(' ', {columns}), '\{{"\$sealed:v2:([0-9a-f]{{16}})": "', 'g') found
 where {condition}
"""
_in_texts = """
select encode(substr(t.{column}, 2, 8), 'hex') as key_id
  from {table} t where get_byte(t.{column}, 0) = 2 and ({condition})
"""


def _select_keys(table: EncryptedTable) -> str:
    condition = moves.MOVED[table.name]
    selects = [
        _in_texts.format(table=table.name, column=column, condition=condition)
        for column in table.texts
    ]
    if table.documents:
        columns = ", ".join(f"t.{name}::text" for name in table.documents)
        selects.append(_in_documents.format(table=table.name, columns=columns, condition=condition))
    return " union ".join(selects)


KEYS_IN_USE: Mapping[str, str] = {table.name: _select_keys(table) for table in TABLES}


async def check_keys_in_use(conn: Connection, cell: str, project: str, keyring: Keyring) -> None:
    """Raises Conflict if the project has values of another key than that of the database, or if the
    keyring lacks this key. cell: the name of the database's cell."""
    check = await key_check(conn)
    if check is None:  # there are no encrypted values
        return
    if (own := keyring.key_id_of(check)) is None:
        raise errors.Conflict(
            f'the database of the cell "{cell}" is encrypted with a key that is not configured',
            place="[credentials]",
            remedy="Name the file with its current key in fallback_key_files",
            code="OtherKey",
        )
    async with conn.transaction():
        await conn.execute(moves.SET_FORMAT)
        for table, statement in KEYS_IN_USE.items():
            found = {
                row["key_id"] for row in await conn.fetch(statement, project, timeout=moves.LONG)
            }
            if others := sorted(found - {own}):
                raise errors.Conflict(
                    f'the table "{table}" of the cell "{cell}" has values of the project'
                    f' "{project}" with the key {others[0]}, and the key of the cell is {own}: a'
                    " rotation of the key has not ended",
                    place="[credentials]",
                    remedy="First finish it with `headgate admin rotate-encryption-key`, with the"
                    " settings of an engine of the cell",
                    code="OtherKey",
                )
