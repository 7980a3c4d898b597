"""For mkdocs: pages of the site that are made from files in the repository's root."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""File in the root: page of the site."""

LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages. Links to files that are no page lose their target."""
    for name, page in PAGES.items():
        text = Path(config.config_file_path).with_name(name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=LINK.sub(_within_the_site, text)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links of docs/*.md to the root's files to their pages."""
    return LINK.sub(_to_the_root, markdown)


def _to_the_root(link: re.Match[str]) -> str:
    page = PAGES.get(link[1].removeprefix("../"))
    return f"]({page}{link[2] or ''})" if page and link[1].startswith("../") else link[0]


def _within_the_site(link: re.Match[str]) -> str:
    target, anchor = link[1], link[2] or ""
    page = PAGES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
    return "]" if page is None else f"]({page}{anchor})"
