"""Which paths, links and combinations of them may cross the line (specs/security.md §3, rows D). Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from bot.custody.faults import ForbiddenPath
from bot.custody.raw import octets

MAX_PATH_BYTES = 400
MAX_DEPTH = 40
MAX_LINK_HOPS = 40

HIDDEN = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"
)
"""Characters that people do not see, or that change what they see: controls, bidi, zero width, tags, selectors."""

_UNSEEN_IN_TEXT = re.compile(f"(?![\t\n\r\ufe0f]){HIDDEN.pattern}")
_SHORT_NAME = re.compile(r"git~\d+|gi[0-9a-f]{4}~\d+")
_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_READ_BY_GIT = frozenset({".gitmodules", ".gitattributes", ".gitignore", ".mailmap"})


def visible(text: str) -> str:
    """The text with every hidden character written out as <U+XXXX>."""
    return _UNSEEN_IN_TEXT.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def folded(path: str) -> str:
    """The path as the most forgiving file systems compare it."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def is_dot_git(component: str) -> bool:
    """Whether some file system or tool takes this name for `.git`."""
    bare = unicodedata.normalize("NFKC", HIDDEN.sub("", component)).casefold()
    bare = bare.replace("\\", "/").rpartition("/")[2].split(":")[0].rstrip(" .")
    return bare == ".git" or _SHORT_NAME.fullmatch(bare) is not None


def _holds_dot_git(path: str) -> bool:
    suspicious = not path.isascii() or "~" in path or "git" in path.lower()
    return suspicious and any(map(is_dot_git, path.split("/")))


def check_known_path(path: str) -> None:
    """What holds even for a path that the base already has: UTF-8, never `.git`, nothing hidden. Raises ForbiddenPath."""
    check_nameable(path)
    if not (path.isascii() and path.isprintable()) and HIDDEN.search(path):
        raise ForbiddenPath("hidden_character", path)
    if _holds_dot_git(path):
        raise ForbiddenPath("dot_git", path)


def check_new_path(path: str) -> None:
    """The whole grammar, for a path that the change brings. Raises ForbiddenPath."""
    _check_form(path)
    check_known_path(path)
    for component in path.split("/"):
        if component in {"", ".", ".."}:
            raise ForbiddenPath("path_component", path)
        if component[-1] in " ." or _DEVICE.fullmatch(component) or ":$" in component:
            raise ForbiddenPath("path_not_portable", path)


def check_nameable(path: str) -> None:
    """GitHub's API cannot name a path that is no UTF-8, so nothing at it can be changed. Raises ForbiddenPath."""
    if not _encodes(path):
        raise ForbiddenPath("path_not_utf8", path)


def _encodes(path: str) -> bool:
    """Whether the path is UTF-8; bytes that are none stand in it as lone surrogates."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _check_form(path: str) -> None:
    check_nameable(path)
    length = len(path.encode("utf-8"))
    if path.startswith("/") or "\\" in path or _DRIVE.match(path):
        raise ForbiddenPath("path_not_relative", path)
    if not path or length > MAX_PATH_BYTES or path.count("/") >= MAX_DEPTH:
        raise ForbiddenPath("path_length", path)


def check_base_paths(paths: Iterable[str]) -> None:
    """Refuse to work on a repository whose tree carries a `.git` in any disguise."""
    for path in paths:
        if _holds_dot_git(path):
            raise ForbiddenPath("dot_git", path, "in the base commit")


def check_arrivals(added: Iterable[str], others: Iterable[str]) -> None:
    """No added path may collide with another path of the tree: same name folded, or a file where a directory is."""
    arrivals = sorted(added)
    if not arrivals:
        return
    files: dict[str, str] = {}
    directories: dict[str, str] = {}
    for path in others:
        files[folded(path)] = path
        for parent in _parents(path):
            directories[folded(parent)] = parent
    for path in arrivals:
        key = folded(path)
        if key in files:
            raise ForbiddenPath("path_collision", path, f"with {files[key]!a}")
        if key in directories:
            raise ForbiddenPath("file_and_directory", path)
        files[key] = path
        for parent in _parents(path):
            folded_parent = folded(parent)
            if folded_parent in files:
                raise ForbiddenPath("file_and_directory", path, f"{files[folded_parent]!a} is a file")
            if directories.setdefault(folded_parent, parent) != parent:
                raise ForbiddenPath("path_collision", path, f"with {directories[folded_parent]!a}/")


def _parents(path: str) -> Iterable[str]:
    position = path.find("/")
    while position >= 0:
        yield path[:position]
        position = path.find("/", position + 1)


def check_link(path: str, target: bytes) -> str:
    """A symlink's own text: relative, plain, not into `.git`. Its target as text. Raises ForbiddenPath."""
    if folded(path.rpartition("/")[2]) in _READ_BY_GIT:
        raise ForbiddenPath("link_read_by_git", path)
    try:
        text = target.decode("utf-8")
    except UnicodeDecodeError:
        raise ForbiddenPath("link_target", path, "not UTF-8") from None
    if not text or text.startswith("/") or "\\" in text or HIDDEN.search(text) or _DRIVE.match(text):
        raise ForbiddenPath("link_target", path, ascii(text))
    if len(octets(text)) > MAX_PATH_BYTES or any(map(is_dot_git, text.split("/"))):
        raise ForbiddenPath("link_target", path, ascii(text))
    return text


def escapes(path: str, links: Mapping[str, str]) -> bool:
    """Whether following the link at `path`, through all other `links`, leaves the tree, enters `.git` or never ends."""
    at = path.split("/")[:-1]
    rest = links[path].split("/")[::-1]
    hops = 0
    while rest:
        component = rest.pop()
        if component in {"", "."}:
            continue
        if component == "..":
            if not at:
                return True
            at.pop()
            continue
        at.append(component)
        here = "/".join(at)
        if here in links:
            hops += 1
            if hops > MAX_LINK_HOPS or links[here].startswith("/"):
                return True
            at.pop()
            rest.extend(links[here].split("/")[::-1])
    return any(map(is_dot_git, at))
