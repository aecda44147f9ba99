"""What a server's signal says of its deployment. Pure."""

from collections.abc import Mapping, Sequence

from engine.types.software.software_store import Ended
from engine.words import Json, Status

STDOUT, STDERR, STATUS_CODE = "deploy_stdout", "deploy_stderr", "deploy_status_code"
#: What every deployment gives back, besides the outputs of its config.
USUAL = (STDOUT, STDERR, STATUS_CODE)
#: By which a signal says that the work goes on; with a reason, if there is one.
PROGRESS, PROGRESS_REASON = "deploy_status", "deploy_status_reason"
_BEGAN = "Deployment started"
#: Letters of a reason: error outputs may be long.
LONGEST_REASON = 4_000


def progress_of(signal: Mapping[str, Json]) -> str | None:
    """What a signal that ends nothing says; None for one that does."""
    if signal.get(PROGRESS) != Status.IN_PROGRESS:
        return None
    return str(signal.get(PROGRESS_REASON) or _BEGAN)[:LONGEST_REASON]


def ended_by(
    signal: Mapping[str, Json], outputs: Sequence[Mapping[str, Json]], before: Mapping[str, Json]
) -> Ended:
    """outputs: of the config. before: values that were given back earlier; unless they are given
    again, they stay."""
    given = {one["name"]: signal[one["name"]] for one in outputs if one["name"] in signal}
    usual = {name: signal.get(name) for name in USUAL}
    wrong = _wrong(signal, outputs)
    values = {**before, **given, **usual}
    if wrong:
        reason = ", ".join(f"{name} : {why}" for name, why in wrong.items())
        return Ended(Status.FAILED, reason[:LONGEST_REASON], values)
    return Ended(Status.COMPLETE, "Outputs received", values)


def _wrong(signal: Mapping[str, Json], outputs: Sequence[Mapping[str, Json]]) -> dict[str, str]:
    """By output, why it says that the deployment has failed."""
    code = signal.get(STATUS_CODE)
    wrong: dict[str, str] = {}
    if code is not None and str(code) not in ("", "0"):
        wrong[STATUS_CODE] = f"Deployment exited with non-zero status code: {code}"
    for one in outputs:
        value = signal.get(one["name"])
        if one.get("error_output") and value not in (None, ""):
            wrong[one["name"]] = str(value)
    return wrong


def attributes_of(
    outputs: Sequence[Mapping[str, Json]], values: Mapping[str, Json]
) -> dict[str, Json]:
    """What ``get_attr`` reads: null for what was not given back (yet)."""
    names = [*USUAL, *(str(one["name"]) for one in outputs)]
    return {name: values.get(name) for name in names} | dict(values)
