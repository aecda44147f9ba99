"""Evaluation of the signals of deployments. Pure."""

from collections.abc import Mapping, Sequence

from engine.types.software.software_store import Ended
from engine.words import Json, Status

STDOUT, STDERR, STATUS_CODE = "deploy_stdout", "deploy_stderr", "deploy_status_code"
#: The outputs of every deployment, in addition to those of its config.
COMMON_OUTPUTS = (STDOUT, STDERR, STATUS_CODE)
#: The fields of a progress signal: the status, and an optional reason.
PROGRESS, PROGRESS_REASON = "deploy_status", "deploy_status_reason"
_BEGAN = "Deployment started"
#: Maximum characters of a reason: error outputs may be long.
LONGEST_REASON = 4_000


def progress_of(signal: Mapping[str, Json]) -> str | None:
    """The reason in a progress signal; None for a final signal."""
    if signal.get(PROGRESS) != Status.IN_PROGRESS:
        return None
    return str(signal.get(PROGRESS_REASON) or _BEGAN)[:LONGEST_REASON]


def ended_by(
    signal: Mapping[str, Json], outputs: Sequence[Mapping[str, Json]], before: Mapping[str, Json]
) -> Ended:
    """The result in a final signal. outputs: of the config. before: earlier output values, which
    stay unless the signal has new ones."""
    given = {one["name"]: signal[one["name"]] for one in outputs if one["name"] in signal}
    common = {name: signal.get(name) for name in COMMON_OUTPUTS}
    wrong = _wrong(signal, outputs)
    values = {**before, **given, **common}
    if wrong:
        reason = ", ".join(f"{name} : {why}" for name, why in wrong.items())
        return Ended(Status.FAILED, reason[:LONGEST_REASON], values)
    return Ended(Status.COMPLETE, "Outputs received", values)


def _wrong(signal: Mapping[str, Json], outputs: Sequence[Mapping[str, Json]]) -> dict[str, str]:
    """The reasons of a failure, by output."""
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
    """The attributes; null for outputs without a value."""
    names = [*COMMON_OUTPUTS, *(str(one["name"]) for one in outputs)]
    return {name: values.get(name) for name in names} | dict(values)
