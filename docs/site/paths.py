"""Pages named in a page, `docs/model.md`, as links."""

from __future__ import annotations

import posixpath
import re
from typing import Any

NAMED = re.compile(r"^```.*?^```$|(?<!\[)`docs/(?P<page>[\w/]+\.md)`", re.DOTALL | re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Link every page that is named by its path; a path that leads nowhere fails the build."""
    here = posixpath.dirname(page.file.src_uri) or "."

    def link(found: re.Match[str]) -> str:
        if found["page"] is None or found["page"] == page.file.src_uri:
            return found[0]
        return f"[{found[0]}]({posixpath.relpath(found['page'], here)})"

    return NAMED.sub(link, markdown)
