"""The template and the environments of a command: names of files in errors, and warnings."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import ENVIRONMENT, TEMPLATE
from headgate.errors import RequestError, findings_text
from hub.cli.inputs.files import shown_path
from hub.cli.inputs.request_bodies import merge_bodies
from hub.cli.messages import warn
from hub.cli.printing.tables import plain

Json = Any


@dataclass(frozen=True, slots=True)
class Sources:
    """template: None: the stored one. environments: in order. files: paths of the files that these
    refer to, by the names that they have there; `body` fills it.
    """

    template: Path | None
    environments: Sequence[Path] = ()
    files: dict[str, Path] = field(default_factory=dict)

    def body(self) -> dict[str, Json]:
        """The template, the environments and the files that these refer to, as the body of a
        request. Raises InputError.
        """
        # Imported here, because YAML takes long to load, and most commands do not read it.
        from hub.cli.inputs.template_bodies import environment_body, template_body

        own = template_body(self.template, self.files) if self.template else {}
        return merge_bodies(own, environment_body(self.environments, self.files))

    @property
    def names(self) -> dict[str, str]:
        """The files by the names that the server has for them, if these are not the same."""
        names = {name: shown_path(path) for name, path in self.files.items()}
        names |= {} if self.template is None else {TEMPLATE: str(self.template)}
        return names | ({ENVIRONMENT: str(self.environments[0])} if self.environments else {})

    async def check_response(self, response: Awaitable[Json]) -> Json:
        """Await a response and print its warnings to standard error, also those of an error. Raises
        RequestError with the names of the files.
        """
        try:
            document = await response
        except RequestError as error:
            self._print_warnings(error.document)
            if "warnings" in error.document:
                named = named_warnings(error.document, self.names)
                error.document = {**error.document, "warnings": named}
            if not error.findings:
                raise
            raise _with_file_names(error, self.names) from None
        self._print_warnings(document)
        return document

    def _print_warnings(self, document: Mapping[str, Json]) -> None:
        for one in named_warnings(document, self.names):
            warn(one, warning_text(one))


def _with_file_names(error: RequestError, names: Mapping[str, str]) -> RequestError:
    """The error with the files of the user in place of the names that the server has for them."""
    findings = [_with_file_name(one, names) for one in error.findings]
    text = findings_text(findings, {})
    named = RequestError(error.status, text, error.code, findings, error.document)
    named.request_id = error.request_id
    return named


def _with_file_name(document: Mapping[str, Json], names: Mapping[str, str]) -> Json:
    file = document.get("file")
    return {**document, "file": names.get(file, file)} if file else document


def named_warnings(document: Mapping[str, Json], names: Mapping[str, str]) -> list[Json]:
    """The warnings of a response, with the files of the user."""
    return [_with_file_name(one, names) for one in warnings_of(document)]


def warning_text(warning: Mapping[str, Json]) -> str:
    """A line with the position or place of a warning, its message and its code, and the quoted line
    of the text."""
    line, file = warning["line"], warning["file"]
    where = f"{file}:{line}:{warning['column']}" if line else warning["path"]
    message = " ".join(f"{where}: {warning['message']} ({warning['code']})".split())
    quote = (f"    {plain(each)}" for each in (warning.get("quote") or "").splitlines())
    return "\n".join([f"headgate: warning: {plain(message)}", *quote])


def warnings_of(document: Mapping[str, Json]) -> Sequence[Json]:
    """The warnings of a response or an error; in the preview of a create they are in `stack`."""
    return document.get("warnings", document.get("stack", {}).get("warnings")) or ()
