"""`Engine`: the services of one process, each of which is an attribute."""

from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from engine.hot.evaluation.stack_outputs import OutputName, StackOutput
from engine.service.actions.exports import Exports
from engine.service.actions.moves import Moves
from engine.service.actions.resource_health import ResourceHealth
from engine.service.actions.resource_signals import ResourceSignals
from engine.service.actions.snapshots import Snapshots
from engine.service.completions import StoredCompletions
from engine.service.converge_rounds import ConvergeStart
from engine.service.dry_run import DryRun
from engine.service.hooks.answering import Hooks
from engine.service.hooks.breakpoints import LiveBreakpoints
from engine.service.imports.imports import Imports
from engine.service.observations import Observations
from engine.service.reads.resource_details import ResourceInspection
from engine.service.reads.stack_outputs import Dependencies, read_dependencies
from engine.service.reads.stored_state import Reads
from engine.service.reads.usage import Usage
from engine.service.repair_credentials import RepairCredentials, RepairCredentialSource
from engine.service.repairs import Repairs
from engine.service.requests.blueprint import Limits
from engine.service.requests.external_validation import ExternalValidation
from engine.service.requests.quotas import Quotas
from engine.service.software.configs import Software
from engine.service.stacks import Stacks
from engine.service.successors import StoredSuccessors
from engine.service.traversals.nested import NestedStacks
from engine.service.traversals.start import Traversals
from engine.store.database import Database
from engine.store.encryption.secret_values import Keyring
from engine.store.read_database import ReadDatabase
from engine.store.records import StackRecord
from engine.types.registry import TypeRegistry
from engine.types.software.metadata_objects import MetadataServices
from engine.work.worker_metrics import WorkerMetrics


class Engine:
    """Builds the services and holds them.

    stacks: create, update, delete, in-place actions, cancel, stop. hooks: answers. breakpoints:
    of live stacks. reads: stored state. dry_run: previews.
    nested: nested stacks, for workers. imports: reads existing resources.

    The methods of all services raise the errors of engine/errors.py: Invalid, NotFound, Conflict,
    AnswerRefused, Forbidden, LimitReached, Unavailable.
    """

    def __init__(
        self,
        database: Database,
        registry: TypeRegistry,
        limits: Limits,
        *,
        new_id: Callable[[], UUID],
        wake: Callable[[], None] = lambda: None,
        lifecycle_plugins: bool = False,
        keyring: Keyring | None = None,
        metrics: WorkerMetrics | None = None,
        lists: ReadDatabase | None = None,
        polls: bool = False,
        handed_over: RepairCredentialSource | None = None,
        metadata_services: MetadataServices | None = None,
    ) -> None:
        """wake: notifies the workers of this process without waiting for the database's
        notification. lifecycle_plugins: True if any are installed. keyring: encrypts credentials;
        without it, no credential is stored. lists: serves lists and histories; None: the database
        does. polls: workers of this process find out themselves whether an accepted operation is
        complete, instead of the observer. handed_over: the credentials of projects, with which
        repairs act; None: the identity service has none. metadata_services: that can have
        the metadata of servers; None: there are none.
        """
        traversals = Traversals(
            registry, limits, new_id=new_id, database=database,
            lifecycle_plugins=lifecycle_plugins, keyring=keyring,
        )  # fmt: skip
        self._database = database
        self._traversals = traversals
        moves = Moves(traversals)
        self._limits = limits
        self.wake = wake
        self.thread_pool = traversals.thread_pool
        self.external_validation = ExternalValidation(database, registry, limits.constraint_timeout)
        self.dry_run = DryRun(database, traversals, moves, self.external_validation)
        self.stacks = Stacks(
            database,
            traversals,
            moves=moves,
            external_validation=self.external_validation,
            dry_run=self.dry_run,
            wake=wake,
        )
        self.breakpoints = LiveBreakpoints(database, traversals, new_id=new_id)
        self.hooks = Hooks(
            database,
            traversals,
            self.breakpoints,
            new_id=new_id,
            wake=wake,
            metrics=metrics or WorkerMetrics(),
        )
        self.reads = Reads(database, registry, limits, lists)
        self.resource_inspection = ResourceInspection(database, registry)
        self.resource_health = ResourceHealth(database)
        self.snapshots = Snapshots(database, traversals, wake)
        self.exports = Exports(database, traversals)
        credentials = RepairCredentials(database, registry, handed_over)
        self.repairs = Repairs(database, self.stacks.update, self.quotas_of, credentials)
        self.start_round = ConvergeStart(self.stacks.update, keyring)
        self.completions = StoredCompletions(database)
        self.observations = Observations(
            database, limits.convergence, self.completions, self.quotas_of
        )
        registry.connect(None if polls else self.completions, StoredSuccessors(database))
        self.imports = Imports(database, registry, limits, self.external_validation)
        self.usage = Usage(database)
        self.signals = ResourceSignals(database, traversals, wake)
        self.software = Software(database, new_id=new_id, lists=lists, services=metadata_services)
        self.nested = NestedStacks(
            database, traversals, self.external_validation, new_id=new_id, wake=wake
        )

    async def validation_outputs(
        self, project: str, wanted: Collection[OutputName]
    ) -> Mapping[OutputName, StackOutput]:
        """Outputs of other stacks, for a template that is validated."""
        return await self._traversals.blueprints.read_stack_outputs(
            wanted, project=project, stack_id=None
        )

    async def dependencies(self, stack: StackRecord) -> Dependencies:
        """The stacks that a stack reads outputs of, and those that read its outputs."""
        async with self._database.connection() as conn:
            return await read_dependencies(conn, stack)

    def limits_of(self, project: str) -> Limits:
        return self._limits.for_project(project)

    def quotas_of(self, project: str) -> Quotas:
        return self._limits.for_project(project).quotas
