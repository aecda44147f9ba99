"""Prepares the pages of docs for MkDocs, which builds the site: see mkdocs.yml and `make docs`.

The pages link to files of the repository, as GitHub shows them. The site contains these files: a
Markdown file is a page, any other file is copied, so that it can be read without a network.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

#: The folder of the site with the files of the repository.
REPOSITORY = "repository"
#: A script for the search in pages that a browser reads from files. The theme loads it from a
#: server, and the site has a copy.
SHIM = "iframe-worker.js"
REMOTE_SHIM = re.compile(r'https://[^"]*/iframe-worker/shim')
#: `make docs` takes these from npm, and writes the description of the API.
SCRIPTS = ("mermaid.min.js", SHIM, "swagger-ui-bundle.js", "swagger-ui.css", "openapi.js")
#: [text](target), without titles. The pages use no other form of link.
LINK = re.compile(r"(?<=\]\()(?P<path>[^)#\s:]+)(?=(#[^)\s]*)?\))")
#: In Markdown files, code is not searched for links.
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)


def place_in_repository(page: str, target: str) -> str | None:
    """Return the path of a link's target from the root of the repository, or None for one in docs.

    page: the path of the page in docs. target: the link as it is written.
    """
    if page.startswith(f"{REPOSITORY}/"):
        path = normpath(PurePosixPath(page).relative_to(REPOSITORY).parent / target)
    else:
        path = normpath(PurePosixPath("docs", page).parent / target)
    return None if path.startswith("docs/") and path.endswith((".md", ".png", ".svg")) else path


def site_path(page: str, target: str) -> str:
    """Return the target of a link as it is in the site: relative to the page."""
    path = place_in_repository(page, target)
    folder = str(PurePosixPath(page).parent)
    if path is not None:
        return relpath(f"{REPOSITORY}/{path}", folder)
    if page.startswith(f"{REPOSITORY}/"):
        inside = normpath(PurePosixPath(page).relative_to(REPOSITORY).parent / target)
        return relpath(inside.removeprefix("docs/"), folder)
    return target


def replaced_links(page: str, text: str) -> str:
    """Return the text of a page with links to the files of the site."""
    parts: list[str] = []
    end = 0
    for code in CODE.finditer(text):
        parts += [_replaced(page, text[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*parts, _replaced(page, text[end:])])


def _replaced(page: str, text: str) -> str:
    return LINK.sub(lambda link: site_path(page, link["path"]), text)


def linked_files(root: Path, pages: dict[str, str]) -> Iterator[str]:
    """Yield the files of the repository that pages link to, and those that these link to.

    pages: the text of each page by its path in docs.
    """
    waiting = list(pages.items())
    found: set[str] = set()
    while waiting:
        page, text = waiting.pop()
        for link in LINK.finditer(CODE.sub("", text)):
            path = place_in_repository(page, link["path"])
            if path is None or path in found or not (root / path).is_file():
                continue
            found.add(path)
            yield path
            if path.endswith(".md"):
                waiting.append((f"{REPOSITORY}/{path}", (root / path).read_text()))


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the files of the repository that the pages link to. MkDocs calls this."""
    from mkdocs.structure.files import File, InclusionLevel

    root = Path(config.docs_dir).parent
    pages = {file.src_uri: file.content_string for file in files.documentation_pages()}
    for path in linked_files(root, pages):
        added = File.generated(config, f"{REPOSITORY}/{path}", abs_src_path=str(root / path))
        added.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(added)
    for script in SCRIPTS:
        files.append(File.generated(config, script, abs_src_path=str(root / "build" / script)))
    return files


def on_page_markdown(markdown: str, page: "Page", **_: object) -> str:
    """Return the page with links to the files of the site. MkDocs calls this."""
    return replaced_links(page.file.src_uri, markdown)


def on_post_page(output: str, page: "Page", **_: object) -> str:
    """Return the HTML of a page, which loads nothing from elsewhere. MkDocs calls this."""
    return REMOTE_SHIM.sub(relpath(SHIM, str(PurePosixPath(page.url).parent)), output)


def on_post_template(output_content: str, **_: object) -> str:
    """Do the same for the page of a wrong address. MkDocs calls this."""
    return REMOTE_SHIM.sub(SHIM, output_content)
