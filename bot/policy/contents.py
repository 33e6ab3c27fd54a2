"""Facts about the content of one changed file → flags. Only what is new in the file counts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.policy import locks
from bot.policy.flags import Flag, Weight
from bot.policy.limits import Limits

_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufff0-\ufffb]"
    "|(?<!^)\ufeff"
)
_TAGS = re.compile("[\U000e0000-\U000e0fff]")
_EMOJI_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")
_JOINED_EMOJI = re.compile(
    "(?<=[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff])"
)
_EXECUTABLE = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\x00asm")
_ARCHIVE = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd", b"!<arch>")
_LFS = b"version https://git-lfs.github.com/spec/"
_TEST_CASE = re.compile(
    r"^\s*(?:async\s+)?def\s+test_|^\s*(?:it|test|specify)(?:\.each[^\n]*)?\s*\(|^\s*func\s+(?:Test|Fuzz)\w*\s*\("
    r"|#\[(?:\w+::)?test\b|^\s*@(?:Test|ParameterizedTest)\b|\[(?:Fact|Theory|Test|TestMethod)\]",
    re.MULTILINE,
)
_ASSERTION = re.compile(
    r"^\s*assert\b|\bself\.assert\w+\(|\bexpect\s*\(|\bassert\w*[.!(]|\brequire\.\w+\(|\bt\.(?:Error|Fatal)\w*\(|\bpytest\.raises\b",
    re.MULTILINE,
)
_SKIP = re.compile(
    r"\b(?:pytest\.mark\.)?(?:skip|skipif|xfail)\b|\bunittest\.skip|\b(?:it|test|describe)\.(?:skip|todo|fails)\b"
    r"|\bx(?:it|test|describe)\s*\(|\bt\.Skip\w*\(|#\[ignore\b|@(?:Disabled|Ignore)\b",
)
_INSTALL_SOURCE = re.compile(
    r"git\+(?:https?|ssh)://|\b(?:https?|ssh|git)://[^\s\"']+|\"(?:pre|post)?install\"\s*:|--(?:extra-)?index-url|find-links",
    re.IGNORECASE,
)
_AT_INSTALLATION = re.compile(
    r"\"(?:pre|post)?install\"\s*:|\bgit\+|\bgit@|\bgit://|[\"'](?:github|gitlab|bitbucket|gist):|\bgit\s*=\s*[\"']"
)
_THRESHOLD = re.compile(r"\b((?:cov[-_])?fail[-_]under)[\"']?\s*[=:\s]\s*[\"']?(\d+(?:\.\d+)?)")
_COVERAGE_BLOCK = re.compile(r"\b(?:coverageThreshold|thresholds?)[\"']?\s*[:=]\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})")
_COVERAGE_KIND = re.compile(r"\b(branches|functions|lines|statements)[\"']?\s*:\s*(\d+(?:\.\d+)?)")
_HOST = re.compile(r"\b[a-z+]+://(?:[^\s/@\"']*@)?([^\s/:\"']+)", re.IGNORECASE)
_DEPENDENCIES = re.compile(
    r"(?:^|.*/)(?:package(?:-lock)?\.json|npm-shrinkwrap\.json|[^/]*\.lock(?:b)?|pnpm-lock\.yaml|go\.(?:mod|sum)"
    r"|pyproject\.toml|setup\.(?:cfg|py)|requirements[^/]*\.txt|pipfile|cargo\.toml|gemfile|\.npmrc|\.yarnrc[^/]*|pip\.conf)"
    r"|(?:^|.*/)requirements/[^/]+",
    re.IGNORECASE,
)


def flags_of_content(path: str, before: bytes, after: bytes, limits: Limits) -> Iterator[Flag]:
    """What the new bytes of a file bring that its old bytes did not have."""
    if is_binary(after):
        yield _binary(path, after)
        return
    old, new = before.decode("utf-8", "replace"), after.decode("utf-8", "replace")
    yield from _hidden(path, old, new)
    yield from _dense(path, old, new, limits)
    if len(after) - len(before) > limits.changed_bytes:
        yield Flag("large", Weight.NAMED, (path,), f"{len(after):,} bytes are more than people read.")
    if after.startswith(_LFS):
        yield Flag("lfs_pointer", Weight.NAMED, (path,), "Only a pointer is here; the content is elsewhere.")
    if _DEPENDENCIES.fullmatch(path):
        yield from _sources(path, old, new)
        yield from _pins(path, old, new)
    yield from _thresholds(path, old, new)


def is_binary(data: bytes) -> bool:
    """As git tells it for display: a zero byte near the start."""
    return b"\0" in data[:8000] or data.startswith(_EXECUTABLE + _ARCHIVE)


def _binary(path: str, data: bytes) -> Flag:
    if data.startswith(_EXECUTABLE):
        return Flag("binary_program", Weight.DENIED, (path,), "A compiled program cannot be reviewed.")
    if data.startswith(_ARCHIVE):
        return Flag("archive", Weight.DENIED, (path,), "The content of an archive cannot be reviewed.")
    return Flag("binary", Weight.NAMED, (path,), "A binary file is not shown as a diff.")


def _hidden(path: str, old: str, new: str) -> Iterator[Flag]:
    plain_old, plain_new = (_JOINED_EMOJI.sub("", _EMOJI_FLAG.sub("", text)) for text in (old, new))
    if len(_TAGS.findall(plain_new)) > len(_TAGS.findall(plain_old)):
        yield Flag("tag_characters", Weight.DENIED, (path,), "Invisible tag characters carry hidden text.")
    if len(_HIDDEN.findall(plain_new)) > len(_HIDDEN.findall(plain_old)):
        why = "Characters that are invisible or change the reading order are added."
        yield Flag("hidden_characters", Weight.NAMED, (path,), why)


def _dense(path: str, old: str, new: str, limits: Limits) -> Iterator[Flag]:
    if _longest_line(new) > max(limits.line_characters, _longest_line(old)):
        yield Flag("minified", Weight.NAMED, (path,), "A line is too long for anybody to read.")
    run = re.compile(rf"[A-Za-z0-9+/_-]{{{limits.encoded_characters},}}={{0,2}}")
    known = set(run.findall(old))
    if any(found not in known for found in run.findall(new)):
        yield Flag("encoded_blob", Weight.NAMED, (path,), "A long encoded text is added.")


def _longest_line(text: str) -> int:
    return max(map(len, text.splitlines()), default=0)


def _sources(path: str, old: str, new: str) -> Iterator[Flag]:
    hosts = {host.lower() for host in _HOST.findall(new)} - {host.lower() for host in _HOST.findall(old)}
    added = sum(1 for _ in _INSTALL_SOURCE.finditer(new)) - sum(1 for _ in _INSTALL_SOURCE.finditer(old))
    if hosts and old:
        yield Flag(
            "install_source", Weight.NAMED, (path,), f"Dependencies come from new hosts: {', '.join(sorted(hosts))}."
        )
    elif added > 0 and _scripts(new) > _scripts(old):
        yield Flag("install_source", Weight.NAMED, (path,), "A script that runs at installation is added.")


def _scripts(text: str) -> int:
    return len(_AT_INSTALLATION.findall(text))


def _pins(path: str, old: str, new: str) -> Iterator[Flag]:
    changed = locks.repinned(path, old, new)
    if changed:
        named = ", ".join(changed[:3])
        why = f"The same version has another content hash than before: {named}{' and more' if changed[3:] else ''}."
        yield Flag("repinned", Weight.NAMED, (path,), why)


def _thresholds(path: str, old: str, new: str) -> Iterator[Flag]:
    """The least that a check lets pass, by the names that test tools give it."""
    was, now = _least(old), _least(new)
    lowered = sorted(name for name, least in was.items() if now.get(name, 0.0) < least)
    if lowered:
        name = lowered[0]
        why = f"`{name}` was {was[name]:g} and is {now[name]:g}." if name in now else f"`{name}` is gone."
        yield Flag("threshold_lowered", Weight.NAMED, (path,), why)


def _least(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    wanted = [*_THRESHOLD.findall(text)]
    for block in _COVERAGE_BLOCK.findall(text):
        wanted += _COVERAGE_KIND.findall(block)
    for name, value in wanted:
        found[name] = min(found.get(name, float(value)), float(value))
    return found


def weakened_tests(path: str, before: bytes, after: bytes) -> Iterator[Flag]:
    """Fewer test cases or assertions, or more skips, in a test file that stays."""
    old, new = before.decode("utf-8", "replace"), after.decode("utf-8", "replace")
    for what, pattern in (("test cases", _TEST_CASE), ("assertions", _ASSERTION)):
        was, now = len(pattern.findall(old)), len(pattern.findall(new))
        if now < was:
            yield Flag("tests_removed", Weight.NAMED, (path,), f"{was} {what} before, {now} after.")
    was, now = len(_SKIP.findall(old)), len(_SKIP.findall(new))
    if now > was:
        yield Flag("tests_skipped", Weight.NAMED, (path,), f"{was} skip marks before, {now} after.")
