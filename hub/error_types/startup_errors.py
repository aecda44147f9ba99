"""Errors that end a process or a command before it does anything."""

from engine.errors import Conflict, Invalid, NotFound, Unavailable
from hub.error_types.error_type import ErrorType

TYPES = (
    ErrorType(
        "InvalidSettings", Invalid,
        "A setting is unknown or not valid. The message names the file and the key.",
        "Correct the setting. `headgate admin doctor` checks a file.",
        "headgate.toml, line 2: [server] lisen", "unknown setting", 'Did you mean "listen"?',
    ),
    ErrorType(
        "DatabaseNewer", Conflict,
        "A later release has upgraded the database, which no longer works with this release.",
        "Start the release that the message names ([Upgrade one process at a"
        " time](../how-to/run-at-scale.md#upgrade-one-process-at-a-time)).",
        "[database]",
        "the database's schema is newer than this headgate, which does not know 0092_new_table.sql",
        "Run the version that migrated it, or a later one",
    ),
    ErrorType(
        "OlderProcesses", Conflict,
        "A running process has a release that does not work beside this release.",
        "Stop that process, or upgrade it to the release before this one first. `headgate admin"
        " upgrade-check` lists the running processes.",
        "[database]",
        "process 4711 on node-2 runs headgate 1.1.0, which does not know 0070_new_column.sql;"
        " headgate 1.3.0 runs only beside programs that know it",
        "Stop it, or upgrade it to the release before headgate 1.3.0. A process that was killed"
        " counts as running for a minute",
    ),
    ErrorType(
        "DatabaseOlder", Conflict,
        "The database belongs to an earlier release.",
        "Run `headgate admin migrate`.",
        "[database]",
        "the database's schema is older than this headgate: migration 0070_new_column.sql is"
        " missing",
        "Upgrade it with `headgate admin migrate`; a server of this version upgrades it when it"
        " starts",
    ),
    ErrorType(
        "DatabaseUnreleased", Conflict,
        "A build between two releases created the newest migration of the database.",
        "Migrate with the build that the message names.",
        "[database]",
        "an unreleased build created the database's newest migration, 0030_unreleased.sql, and this"
        " headgate cannot upgrade it",
        "Run `headgate admin migrate` of the build whose newest migration is 0024_released.sql;"
        " then start this version again. If you have no such build, restore a backup of a released"
        " version",
    ),
    ErrorType(
        "MigrationMissing", Conflict,
        "The database has a later migration, but lacks an earlier one.",
        "Restore a backup of a released version.",
        "[database]", "the database has migration 0070_new_column.sql, but not 0069_new_table.sql",
        "Restore the database from a backup of a released version",
    ),
    ErrorType(
        "TransactionPooling", Conflict,
        "`[database] url` names a connection pooler that does not pool sessions.",
        "Name the PostgreSQL server there, and the pooler in `[database] pooler_url`; or set"
        " `pool_mode = session` ([Run in"
        " production](../how-to/run-in-production.md#use-a-connection-pooler)).",
        "[database] url",
        "the connection pooler in front of PostgreSQL does not use session mode, which prepared"
        " statements and LISTEN require",
        "Name the PostgreSQL server in [database] url and the pooler in [database] pooler_url, or"
        " set pool_mode = session for this database in the pooler",
    ),
    ErrorType(
        "UnsuitablePooler", Conflict,
        "The connection pooler of `[database] pooler_url` leads to another database than"
        " `[database] url`, or has no transactions.",
        "Name a pooler in transaction mode in front of the same database ([Run in"
        " production](../how-to/run-in-production.md#use-a-connection-pooler)).",
        "[database] pooler_url",
        "the connection pooler leads to another database than `url` beside it",
        "Name a pooler in front of the server of `url`, and the same database",
    ),
    ErrorType(
        "ReplicaNotPrimary", Conflict,
        "The only server of `[database] url` is a read-only replica.",
        "Name the primary, or [all servers of the"
        " cluster](../how-to/run-at-scale.md#replicate-the-database).",
        "[database] url", "the server is a read-only replica",
        "Name the primary, or all hosts of the cluster: postgresql://USER@HOST1,HOST2/DATABASE",
    ),
    ErrorType(
        "DifferentClusters", Conflict,
        "The hosts of `[database] url` are not replicas of each other.",
        "Name a primary and its own replicas.",
        "[database] url", "the hosts db-1 and db-2 belong to different database clusters",
        "Name a primary and its own replicas",
    ),
    ErrorType(
        "NotItsReplica", Conflict,
        "A server of `[database] read_url` has another database than `[database] url`.",
        "Name [replicas of the primary](../how-to/run-at-scale.md#read-from-replicas), and the same"
        " database.",
        "[database] read_url",
        "db-3 is no replica of the primary: it belongs to another database cluster",
        "Name replicas of the servers of [database] url, and the same database",
    ),
    ErrorType(
        "OtherCell", Conflict,
        "Two [cells](../how-to/run-at-scale.md#cells) have the same database, or a cell has another"
        " name than before. Or `headgate admin create-token` names a project of another cell than"
        " the one of its settings.",
        "Give each cell its own database, and keep its name. Create tokens with the settings of an"
        " API process.",
        '[cells] databases "north"', 'the database of the cell "north" is that of the cell "south"',
        "Give each cell its own database, and keep its name",
    ),
    ErrorType(
        "UnknownCell", NotFound,
        "`headgate admin move-project` names a cell that is not in `[cells] databases`. The message"
        " lists the cells.",
        "Name one of these cells, or add the cell first.",
        "--to", 'there is no cell "east"; the cells are north, south',
        "Name one of them, or add the cell to [cells] databases first",
    ),
    ErrorType(
        "UnknownProject", NotFound,
        "No cell has the project that `headgate admin move-project` names.",
        "Check the ID of the project.",
        "PROJECT", 'no cell has the project "web"',
        "Check its ID. A project is in a cell with its first change; name a new one in projects of"
        " [cells] databases",
    ),
    ErrorType(
        "SameCell", Conflict,
        "The project is already in the cell that `headgate admin move-project` names.",
        "There is nothing to do.",
        "--to", 'the project "web" is already in the cell "north"', "There is nothing to do",
    ),
    ErrorType(
        "MoveUnderWay", Conflict,
        "Another command is [moving the project](../how-to/run-at-scale.md#move-a-project), or the"
        " project is being moved to another cell. Until then, neither the encryption key nor the"
        " schema of a database with its rows is changed.",
        "Wait, or continue or undo that move.",
        "move-project", 'the project "web" is being moved from "north" to "south"',
        "Continue with --to south, or end this move with --undo",
    ),
    ErrorType(
        "NoMove", Conflict,
        "There is no [move](../how-to/run-at-scale.md#move-a-project) to undo.",
        "If the project has arrived in another cell, move it back.",
        "move-project", 'the project "web" is not being moved',
        "Move it back with --to, if it has arrived in another cell",
    ),
    ErrorType(
        "MoveArrived", Conflict,
        "The project has arrived in the new cell, so the"
        " [move](../how-to/run-at-scale.md#move-a-project) cannot be undone.",
        "Finish the move, then move the project back.",
        "--undo", 'the project "web" has arrived in the cell "south"',
        "Finish the move with --to south; then move it back with --to north",
    ),
    ErrorType(
        "MoveLost", Conflict,
        "The project had [moved](../how-to/run-at-scale.md#move-a-project), and the database of the"
        " new cell lost it: it failed over to a standby without the last commits. The former cell"
        " still has the rows.",
        "Put the project back in the former cell with `--undo`.",
        "move-project",
        'the project "web" had arrived in the cell "south", whose database does not have it any'
        ' more; its rows are in "north"',
        "Put it back in north with --undo",
    ),
    ErrorType(
        "ProjectInTwoCells", Conflict,
        "More than one cell has the project: a database failed over to a standby that lacked a"
        " [move](../how-to/run-at-scale.md#move-a-project), or was restored from a backup.",
        "Compare the stacks in the cells, then remove the project from the cell with the older rows"
        " with `--discard CELL`. The command shows the rows of both before it deletes any.",
        "move-project",
        'the project "web" is in more than one cell: "north" (120 rows, last changed at 2026-11-29'
        ' 08:00:00 UTC) and "south" (131 rows, last changed at 2026-11-30 14:12:09 UTC)',
        "Compare the stacks in the cells. Then remove the project from the cell with the older rows"
        " with --discard CELL",
    ),
    ErrorType(
        "MoveLeftovers", Conflict,
        "A cell still has rows of an earlier [move of the"
        " project](../how-to/run-at-scale.md#move-a-project).",
        "Finish or undo the earlier move, or remove the copies with `--discard CELL`, as the"
        " message says.",
        "move-project",
        'the cell "south" has rows of a move of the project "web" that has ended',
        "They are copies; remove them with --discard south",
    ),
    ErrorType(
        "StandbysBehind", Unavailable,
        "Standbys of a cell's database have not received the"
        " [move of the project](../how-to/run-at-scale.md#move-a-project). Until those of the"
        " former cell have its departure, the project does not arrive, so that a failover does not"
        " bring it back; until those of the new cell have the arrival, the former one keeps the"
        " rows.",
        "Run the same command again when the standbys have caught up. Drop the replication slot of"
        " a standby that no longer exists.",
        '[cells] databases "south"',
        'standbys of the cell "south" have not received the move of the project "web" yet:'
        ' replica; it has arrived; the cell "north" keeps its rows',
        "Run the same command again when they have caught up: it continues. Drop the replication"
        " slot of a standby that no longer exists",
    ),
    ErrorType(
        "MoveDiffers", Conflict,
        "Rows of a table are not the same in both cells, so the project was not"
        " [moved](../how-to/run-at-scale.md#move-a-project).",
        "Undo the move with `--undo`.",
        "move-project",
        'the rows of the table "stack" are not the same in both cells: 12 rows in one, 11 in the'
        " other",
        "Undo the move with --undo; nothing was lost",
    ),
    ErrorType(
        "OtherVersion", Conflict,
        "The databases of the cells have different schemas, or another schema than this program.",
        "Upgrade them to one version before you"
        " [move](../how-to/run-at-scale.md#move-a-project) a project.",
        "[cells] databases", 'the cells "north" and "south" have different schemas',
        "Upgrade both to the same version, then move the project",
    ),
    ErrorType(
        "OtherKey", Conflict,
        "The cells have different encryption keys, or values of the project have another key than"
        " its cell, so it cannot [move](../how-to/run-at-scale.md#move-a-project).",
        "Give both cells the same key with `headgate admin rotate-encryption-key`, and let it end.",
        "[credentials] key_file", 'the cells "north" and "south" have different encryption keys',
        "Give both the same key with `headgate admin rotate-encryption-key`, with the settings of"
        " an engine of the cell",
    ),
    ErrorType(
        "NoRightToMove", Conflict,
        "The account of the database of a cell cannot create the schema in which a project is read"
        " while it [moves](../how-to/run-at-scale.md#move-a-project).",
        "Grant the account the right to create schemas in the database of the cell, and run the"
        " command again.",
        "move-project",
        "the account of the database cannot create a schema: permission denied for database"
        " headgate",
        "Grant it the right: `grant create on database NAME to ACCOUNT`. Rows of the project are"
        " read in this schema while they move",
    ),
    ErrorType(
        "ProjectsOfOtherCells", Conflict,
        "A database that becomes a cell has projects that Headgate would look for in other cells.",
        "Start with [this cell alone](../how-to/run-at-scale.md#start-with-cells).",
        '[cells] databases "north"',
        'the database of the cell "north" has projects of other cells, 2 in all: web, shop',
        "Start with this cell alone, and add the others with the next revision; or name these"
        " projects in its projects",
    ),
    ErrorType(
        "ApiWithoutCells", Conflict,
        "A running process with the role `api` uses a database that becomes a"
        " [cell](../how-to/run-at-scale.md#start-with-cells), and it does not know cells. It would"
        " create projects that belong to other cells.",
        "Stop that process first. A process that was killed counts as running for a minute.",
        '[cells] databases "north" url',
        "process 4711 on node-2 has the role api without [cells], and the database of the cell"
        ' "north"',
        "Stop it, and start it with [cells], or with other roles. A process that was killed counts"
        " as running for a minute",
    ),
    ErrorType(
        "OtherPlacement", Conflict,
        "`[cells]` differs from the settings that the cells have stored for its `revision`.",
        "Use the same section for all processes, and raise `revision` with each change.",
        "[cells] revision", "revision 3 of [cells] differs from the one that is stored",
        "Use the same [cells] for all processes; raise revision with each change",
    ),
    ErrorType(
        "CellMissing", Conflict,
        "`[cells]` lacks a cell of an earlier revision.",
        "Keep the cell in the list, with `new_projects = false`.",
        "[cells] databases", "[cells] lacks north of an earlier revision",
        "Keep each cell in the list, with new_projects = false if it gets no new ones",
    ),
    ErrorType(
        "DatabaseIsCell", Conflict,
        "The database of a process with the role `api` is a cell, and the settings of the process"
        " have no `[cells]`.",
        "Start the process with other roles, or with `[cells]`.",
        "[database] url",
        'the database is the cell "north", and this process has the role api without [cells]',
        "Start it with --role engine, dispatch or purge; serve the API with [cells]",
    ),
    ErrorType(
        "TwoPrimaries", Conflict,
        "Two hosts of `[database] url` accept writes.",
        "Stop the former primary, and make it a replica of the current one.",
        "[database] url", "the hosts db-1 and db-2 both accept writes",
        "Stop the former primary, and make it a replica of the current one",
    ),
    ErrorType(
        "ClocksApart", Conflict,
        "The clock of a database server differs by more than 5 minutes from the clock of this"
        " machine.",
        "Synchronize both with NTP.",
        "[database] url", "the clock of db-1 is 420 s ahead of the clock of this machine",
        "Synchronize both clocks with NTP",
    ),
)  # fmt: skip
