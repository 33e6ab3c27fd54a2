"""Prompt templates: files beside the stage, rendered with strict undefined."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from bot.prompting.unicode import encodable


def render(package: str, template: str, /, **values: Any) -> str:
    """The template `prompts/<template>` of this package, filled. A value that the template names and nobody gave is an error.

    The suffix `.md.j2` may be left out. Nothing is escaped: prompts are text, and untrusted parts come fenced.
    """
    name = template if template.endswith(".j2") else f"{template}.md.j2"
    return encodable(_environment(package).get_template(name).render(**values))


@cache
def _environment(package: str) -> Environment:
    return Environment(
        loader=PackageLoader(package, "prompts"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - prompts are Markdown for the model, never HTML
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
