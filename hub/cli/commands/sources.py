"""The template and the environments of a command: names of files in errors, and warnings."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import ENVIRONMENT, TEMPLATE
from headgate.errors import RequestError, findings_text
from hub.cli.inputs.files import shown_path
from hub.cli.inputs.request_bodies import merge_bodies
from hub.cli.printing.consoles import standard_error
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
            if not error.findings:
                raise
            text = findings_text(error.findings, self.names)
            raise RequestError(
                error.status, text, error.code, error.findings, error.document
            ) from None
        self._print_warnings(document)
        return document

    def _print_warnings(self, document: Mapping[str, Json]) -> None:
        for line in warning_lines(document, self.names):
            standard_error().print(line, markup=False, soft_wrap=True)


def warning_lines(document: Mapping[str, Json], names: Mapping[str, str]) -> Iterator[str]:
    """For each warning of a response a line with its position or place, its message and its code,
    and the quoted line of the text."""
    for one in warnings_of(document):
        file = names.get(one["file"], one["file"])
        where = f"{file}:{one['line']}:{one['column']}" if one["line"] else one["path"]
        message = " ".join(f"{where}: {one['message']} ({one['code']})".split())
        yield f"headgate: warning: {plain(message)}"
        yield from (f"    {plain(line)}" for line in (one.get("quote") or "").splitlines())


def warnings_of(document: Mapping[str, Json]) -> Sequence[Json]:
    """The warnings of a response or an error; in the preview of a create they are in `stack`."""
    return document.get("warnings", document.get("stack", {}).get("warnings")) or ()
