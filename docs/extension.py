"""For mkdocstrings: accel's docstrings are plain text. This makes Markdown of them.

An example begins with `>>>` and ends at a blank line. A line that begins with `name:` describes a parameter or field.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

NAME = re.compile(r"\n(\w+(?:, \w+)*): ")
RAISES = re.compile(r"\n(?=Raises )")
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class PlainText(Extension):
    """Puts a fence around each example, and begins a new line at each parameter and at what is raised."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            text = RAISES.sub("  \n", NAME.sub(r"  \n**\1**: ", obj.docstring.value))
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
