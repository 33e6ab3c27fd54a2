"""What is different between the change that was approved and the one that stands there now, as text. Pure."""

from __future__ import annotations

import re
from difflib import unified_diff

from bot.domain.ids import short
from bot.domain.pull import Approval
from bot.prompting.secrets import mask_secrets

MOST_LINES = 150
LONGEST = 8_000
_PLACE = re.compile(r"^@@ -\S+ \+\S+ @@", re.MULTILINE)
_INDEX = re.compile(r"^(?:index [0-9a-f.]+.*|similarity index .*|dissimilarity index .*)\n", re.MULTILINE)


def changed_since(old: str, new: str) -> str:
    """A diff of two diffs: lines that only moved are no difference. Empty when both say the same; cut at `MOST_LINES`."""
    before, after = (_PLACE.sub("@@", _INDEX.sub("", text)).splitlines() for text in (old, new))
    lines = [line for line in unified_diff(before, after, lineterm="", n=2) if not line.startswith(("---", "+++"))]
    shown = "\n".join(lines[:MOST_LINES])[:LONGEST]
    left = len(lines) > MOST_LINES or len(shown) == LONGEST
    return f"{shown}\n… (cut; the whole is in the pull request)" if left else shown


def section(approval: Approval, text: str) -> str:
    """The paragraph of the gate's comment, folded; nothing in the text can close the fence or call anybody."""
    if not text:
        return ""
    safe = mask_secrets(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", safe)), default=0))
    head = f"What changed since @{approval.reviewer.login} approved {short(approval.digest)}"
    return f"<details><summary>{head}</summary>\n\n{fence}diff\n{safe}\n{fence}\n\n</details>\n"
