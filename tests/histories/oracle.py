"""What may land, told from the world's own records and from what people did: nothing of the product decides here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from bot.emulators.github.records import Pull, Repository
from tests.histories.memory_git import MemoryGit

WRITERS = frozenset({"write", "maintain", "admin"})


@dataclass(frozen=True, slots=True)
class Word:
    """An approval somebody gave, and the change it was given for."""

    login: str
    digest: str


@dataclass
class Oracle:
    """Listens to what people do; `objection` says why what stands there may not land now."""

    git: MemoryGit
    repository: Repository
    words: list[Word] = field(default_factory=list)
    needed: int = 1
    """How many people have to approve."""
    owners: frozenset[str] = frozenset()
    """Of whom one has to be among them; nobody in particular when empty."""

    def digest(self, base_ref: str, base: str, head: str) -> str:
        """The change between the merge base and the head, as anybody can compute it."""
        fork = self.git.merge_base(base, head)
        raw = self.git.raw_diff(fork, head) if fork else b"unrelated"
        return hashlib.sha256(b"pullwright-change-v1\0" + base_ref.encode() + b"\0" + raw).hexdigest()

    def current(self, pull: Pull) -> str:
        return self.digest(pull.base_ref, self.git.refs[f"refs/heads/{pull.base_ref}"], pull.head_sha)

    def approved(self, login: str, pull: Pull, commit: str) -> None:
        """Somebody approved this commit, looking at the pull request as it is."""
        base = self.git.refs[f"refs/heads/{pull.base_ref}"]
        self.words.append(Word(login, self.digest(pull.base_ref, base, commit)))

    def named(self, login: str, digest: str) -> None:
        """Somebody approved this change by its digest, whatever the head was just then."""
        self.words.append(Word(login, digest))

    def withdrawn(self, login: str) -> None:
        """This person objects, or the approval was dismissed: all earlier words are void."""
        self.words = [word for word in self.words if word.login != login]

    def may(self, login: str) -> bool:
        return self.repository.roles.get(login, "none") in WRITERS

    def objection(self, digest: str, pull: Pull) -> str:
        """Why this change may not land now; empty when a person who may has approved it and nobody objects."""
        people = {word.login for word in self.words if word.digest == digest and self.may(word.login)}
        if len(people) < self.needed or (self.owners and not people & self.owners):
            given = ", ".join(f"{word.login} for {word.digest[:12]}" for word in self.words) or "nothing"
            return f"not enough of those who may have approved {digest[:12]} (approved: {given})"
        standing = {}
        for review in pull.reviews:
            if review.state in {"APPROVED", "CHANGES_REQUESTED", "DISMISSED"}:
                standing[review.user.login] = review.state
        against = [login for login, state in standing.items() if state == "CHANGES_REQUESTED" and self.may(login)]
        return f"{against} ask for changes" if against else ""
