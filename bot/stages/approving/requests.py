"""What a reviewer asks for, as the coder reads it: the whole review, cleaned and fenced. Text of people, never a rule. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.action import CommandMessage, ReviewMessage
from bot.prompting import clean_untrusted, fence_untrusted
from bot.providers.forge.port import LineComment

LONGEST = 6_000
LONGEST_COMMENT = 2_000
MOST_COMMENTS = 40


def asked(message: ReviewMessage | CommandMessage, text: str, comments: Sequence[LineComment], nonce: str) -> str:
    """The message's own words as they came, then what else stands in its review now: its text, and comments with path and line.

    A comment that was edited since is left out, and that is said. Empty when nothing is asked for.
    """
    own, listed = _own(message, text, comments)
    parts = [_cut(each, LONGEST) for each in own if each.strip()]
    for comment in listed[:MOST_COMMENTS]:
        where = comment.path if comment.line is None else f"{comment.path}, line {comment.line}"
        said = "(edited after it was written, so left out)" if comment.edited else _cut(comment.body, LONGEST_COMMENT)
        parts.append(f"On {where}:\n{said}")
    if len(listed) > MOST_COMMENTS:
        parts.append(f"({len(listed) - MOST_COMMENTS} more comments on lines are left out.)")
    if not parts:
        return ""
    return fence_untrusted(f"review by {message.actor.login}", clean_untrusted("\n\n".join(parts)).text, nonce)


def _own(
    message: ReviewMessage | CommandMessage, text: str, comments: Sequence[LineComment]
) -> tuple[tuple[str, ...], list[LineComment]]:
    """The texts, and the comments with the message's own one as it was when it came."""
    if isinstance(message, ReviewMessage):
        return (message.body,), list(comments)
    said = message.command.argument
    if message.comment_id is None:
        return (said,), list(comments)
    own = [replace(one, body=said, edited=False) if one.id == message.comment_id else one for one in comments]
    there = any(one.id == message.comment_id for one in comments)
    return (text,) if there else (said, text), own


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}\n(cut)"
