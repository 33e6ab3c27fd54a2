"""Which commits of a history make a task, and in which words. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.change import ChangedPath, CommitFacts, FileMode
from bot.domain.event import Actor
from bot.domain.ids import CommitId, RepositoryId, TaskId, UserId
from bot.policy.engine import Policies
from bot.policy.facts import ChangeFacts, MayPublish
from bot.policy.flags import denied, to_name
from bot.policy.paths import flags_of, is_test

MOST_FILES = 20
MOST_LINES = 600
TITLE = 80
_WORDS = 3
_LETTERS = 12

_TRAILER = re.compile(
    r"(?:(?:[a-z]+-)+(?:by|to|id|on|from|url)|cc)\s*:\s.*|\(cherry picked from commit [0-9a-f]+\)", re.IGNORECASE
)
_MERGE = re.compile(r"Merge (?:pull request #\d+ from \S+|(?:remote-tracking )?branch(?:es)? .*|tag .*|commit .*)")
_HASH = re.compile(r"(?<![-\w/])(?:commit\s+)?(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![-\w])")
_LINK = re.compile(r"\S*/commits?/[0-9a-f]{7,40}\S*")
_RULE = re.compile(r"\n-{3,}$")
"""What GitHub puts before the people of a squashed pull request."""
_BOT = Actor(UserId(0), "pullwright", is_bot=True)


class Unfit(StrEnum):
    """Why a commit makes no task, as people read it after "N"."""

    ROOT = "have no parent"
    NO_TEST = "change no test"
    ONLY_TESTS = "change nothing but tests"
    SUBMODULE = "move a submodule"
    TOO_LARGE = f"are larger than {MOST_FILES} files or {MOST_LINES} lines"
    SILENT = "say too little"
    DENIED = "change what the policy lets no task change"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A task as cut: `words` are what is asked for, `hidden` the commit's changes to tests, `files` its other paths."""

    commit: CommitId
    base: CommitId
    words: str
    hidden: tuple[ChangedPath, ...]
    files: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.words.split("\n", 1)[0][:TITLE]


def cut(facts: CommitFacts, policies: Policies) -> Candidate | Unfit:
    """The task that this commit did, or why it is none."""
    if facts.parent is None:
        return Unfit.ROOT
    hidden = tuple(change for change in facts.changes if is_test(change.path))
    files = tuple(change.path for change in facts.changes if not is_test(change.path))
    if not any(change.new is not None for change in hidden):
        return Unfit.NO_TEST
    if not files:
        return Unfit.ONLY_TESTS
    sides = (side for change in facts.changes for side in (change.old, change.new) if side is not None)
    if any(side.mode is FileMode.GITLINK for side in sides):
        return Unfit.SUBMODULE
    if len(facts.changes) > MOST_FILES or facts.lines > MOST_LINES:
        return Unfit.TOO_LARGE
    words = words_of(facts.message)
    if not _says_something(words):
        return Unfit.SILENT
    if not _allowed(facts.changes, policies):
        return Unfit.DENIED
    return Candidate(facts.id, facts.parent, words, hidden, files)


def words_of(message: str) -> str:
    """A commit's message as a person would have asked for it: no trailers, no line that only says what was merged, no commit named."""
    lines = [line.rstrip() for line in message.strip().splitlines() if not _TRAILER.fullmatch(line.strip())]
    if lines and _MERGE.fullmatch(lines[0]):
        lines = lines[1:]
    text = _HASH.sub("an earlier commit", _LINK.sub("an earlier commit", "\n".join(lines)))
    return re.sub(r"\n{3,}", "\n\n", _RULE.sub("", text.strip())).strip()


def _says_something(words: str) -> bool:
    """Three words; or, for scripts that put no space between words, a dozen letters."""
    spoken = re.findall(r"[^\W\d_]{2,}", words)
    return len(spoken) >= _WORDS or (not words.isascii() and sum(map(len, spoken)) >= _LETTERS)


def _allowed(changes: tuple[ChangedPath, ...], policies: Policies) -> bool:
    """Whether the operator's rules would let a task publish a change of these paths."""
    flags = flags_of(changes, files_before=0, peek=lambda _: b"", limits=policies.limits)
    paths = tuple(change.path for change in changes)
    named, forbidden = to_name(flags), tuple(flag.name for flag in denied(flags))
    here = RepositoryId(0)
    facts = ChangeFacts(here, _BOT, _BOT, "agent/0-task-0", "base", paths, True, named, forbidden)
    return policies.decide(MayPublish(TaskId("eval"), here, facts)).allowed
