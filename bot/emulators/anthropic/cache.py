"""The prompt cache: what a request reads, what it writes, what stays billed in full."""

from dataclasses import dataclass, field

from bot.emulators.anthropic.prefix import Breakpoint, Position
from bot.emulators.anthropic.ruler import FRAMING

_LOOKBACK = 20
_SECONDS = {"5m": 300, "1h": 3600}


@dataclass(slots=True)
class Entry:
    """A written prefix; readable once the response that wrote it began."""

    ttl: int
    expires: float
    readable_at: float | None = None

    def live(self, at: float) -> bool:
        """Whether a request that starts at this moment can read it."""
        return self.readable_at is not None and self.readable_at <= at < self.expires


@dataclass(frozen=True, slots=True)
class Account:
    """The input side of one request's usage, and the prefixes it writes."""

    read: int
    write_5m: int
    write_1h: int
    uncached: int
    writes: tuple[tuple[str, int], ...]

    @property
    def prompt(self) -> int:
        """All input tokens."""
        return self.read + self.write_5m + self.write_1h + self.uncached


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered request: positions, their chained hashes, its breakpoints."""

    positions: tuple[Position, ...]
    hashes: tuple[str, ...]
    breakpoints: tuple[Breakpoint, ...]

    def cumulative(self) -> list[int]:
        """Tokens up to and including each position."""
        totals, running = [], 0
        for position in self.positions:
            running += position.tokens
            totals.append(running)
        return totals


@dataclass(slots=True)
class Cache:
    """All entries; keys are folded into the hashes, so accounts never meet."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def account(self, prompt: Prompt, *, at: float, min_prefix: int) -> Account:
        """Work out the bill of a request that starts at this moment, and refresh what it read."""
        totals = prompt.cumulative()
        hit = self._hit(prompt, at)
        self._refresh(prompt, hit, at)
        total = totals[-1] if totals else 0
        read = totals[hit] if hit is not None else 0
        after = -1 if hit is None else hit
        new = [b for b in prompt.breakpoints if b.index > after and totals[b.index] >= min_prefix]
        long_end = max((totals[b.index] for b in new if b.ttl == "1h"), default=read)
        end = max((totals[b.index] for b in new), default=long_end)
        return Account(
            read=read,
            write_5m=end - long_end,
            write_1h=long_end - read,
            uncached=total - end + FRAMING,
            writes=tuple((prompt.hashes[b.index], _SECONDS[b.ttl]) for b in new),
        )

    def _hit(self, prompt: Prompt, at: float) -> int | None:
        for breakpoint_ in reversed(prompt.breakpoints):
            found = self._look_back(prompt, breakpoint_.index, at)
            if found is not None:
                return found
        return None

    def _look_back(self, prompt: Prompt, start: int, at: float) -> int | None:
        index = start
        for _ in range(_LOOKBACK):
            if index < 0:
                return None
            entry = self.entries.get(prompt.hashes[index])
            if entry is not None and entry.live(at):
                return index
            index = _before_run(prompt.positions, index)
        return None

    def _refresh(self, prompt: Prompt, hit: int | None, at: float) -> None:
        """A read refreshes the entry it hit and the request's own breakpoints before it; nothing in between."""
        if hit is None:
            return
        for index in {hit, *(b.index for b in prompt.breakpoints if b.index <= hit)}:
            entry = self.entries.get(prompt.hashes[index])
            if entry is not None and entry.live(at):
                entry.expires = at + entry.ttl

    def write(self, account: Account, *, at: float) -> None:
        """Record the prefixes; nobody can read them until `begin`."""
        for digest, ttl in account.writes:
            known = self.entries.get(digest)
            readable = known.readable_at if known is not None and at < known.expires else None
            self.entries[digest] = Entry(ttl=ttl, expires=at + ttl, readable_at=readable)

    def begin(self, account: Account, *, at: float) -> None:
        """The response begins: what the request wrote becomes readable."""
        for digest, _ in account.writes:
            entry = self.entries.get(digest)
            if entry is not None and entry.readable_at is None:
                entry.readable_at = at


def _before_run(positions: tuple[Position, ...], index: int) -> int:
    run = positions[index].run
    index -= 1
    while run is not None and index >= 0 and positions[index].run == run:
        index -= 1
    return index
