"""The index of a plain folder: incremental, bounded, and never stopped by a file."""

import os
import sqlite3
import time
from pathlib import Path

import pytest

from bot.retrieval.build import Builder
from bot.retrieval.extract import LARGEST, VERSION
from bot.retrieval.files import of_folder
from bot.retrieval.index import Report, index_folder
from bot.retrieval.rank import rank
from bot.retrieval.segment import Source, build
from bot.retrieval.store import IndexFault, Store
from bot.retrieval.view import View


def put(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return root


def indexed(tmp_path: Path, root: Path) -> tuple[View, Report]:
    return index_folder(Store(tmp_path / "index.db"), root)


PROJECT: dict[str, str | bytes] = {
    "app/limits.py": "class RateLimiter:\n    def allow(self, key):\n        return key in self.seen\n",
    "app/views.py": "from app.limits import RateLimiter\n\n\ndef index(request):\n    return RateLimiter().allow(request.key)\n",
    "app/mail.py": "def send(message):\n    return message\n",
    "tests/test_limits.py": "from app.limits import RateLimiter\n\n\ndef test_allow():\n    assert RateLimiter().allow(1)\n",
    "README.md": "# The app\n\nLimits the rate.\n",
}


def test_the_file_that_a_task_is_about_comes_first(tmp_path: Path):
    view, report = indexed(tmp_path, put(tmp_path / "tree", PROJECT))
    found = rank(view, "RateLimiter forgets keys")
    assert found[0].path == "app/limits.py"
    assert found[0].why
    assert report.files == len(PROJECT)


def test_tests_and_documentation_are_ranked_apart(tmp_path: Path):
    view, _ = indexed(tmp_path, put(tmp_path / "tree", PROJECT))
    found = rank(view, "RateLimiter.allow forgets keys")
    places = {one.path: number for number, one in enumerate(found)}
    assert places["app/views.py"] < places["tests/test_limits.py"]
    assert "ranked apart: test" in next(one.why for one in found if one.path == "tests/test_limits.py")


def test_a_named_path_is_a_reason(tmp_path: Path):
    view, _ = indexed(tmp_path, put(tmp_path / "tree", PROJECT))
    assert "the task names its path" in next(
        one.why for one in rank(view, "Crash in app/mail.py") if one.path == "app/mail.py"
    )


def test_only_what_changed_is_read_again(tmp_path: Path):
    root = put(tmp_path / "tree", PROJECT)
    store = Store(tmp_path / "index.db")
    index_folder(store, root)
    assert index_folder(store, root)[1].read == 0
    put(root, {"app/mail.py": "def deliver_letters():\n    pass\n"})
    view, report = index_folder(store, root)
    assert report.read == 1
    assert rank(view, "deliver letters")[0].path == "app/mail.py"
    (root / "app/mail.py").unlink()
    view, _ = index_folder(store, root)
    assert "app/mail.py" not in view.paths


def test_two_writers_at_once_keep_one_row_for_a_blob(tmp_path: Path):
    sources = [Source(str(number), "python", f"def name_{number}(): pass\n".encode()) for number in range(20)]
    one, other = Store(tmp_path / "index.db"), Store(tmp_path / "index.db")
    one.add(build(sources[:15]))
    other.add(build(sources[5:]))
    assert len(one.documents(source.oid for source in sources)) == 20
    found = one.postings(0, ["name_7"]).of("name_7")
    assert one.documents(["7"])["7", "python"].id in found


def test_what_another_worker_has_brought_is_not_written_again(tmp_path: Path):
    sources = [Source(str(number), "python", b"def name(): pass\n") for number in range(20)]
    store = Store(tmp_path / "index.db")
    store.add(build(sources))
    store.add(build(sources[5:]))
    assert len(store.postings(0, ["name"]).of("name")) == 20


def test_what_was_written_before_a_kill_is_there_after_it(tmp_path: Path):
    store = Store(tmp_path / "index.db")
    store.add(build([Source("1", "python", b"def one(): pass\n")]))
    dying = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    dying.execute("BEGIN IMMEDIATE")
    dying.execute("INSERT INTO segment VALUES (1000, 5, 0, '[0, 0, 0]')")
    dying.close()  # as a killed process leaves it: never committed
    store.add(build([Source("2", "python", b"def two(): pass\n")]))
    assert set(store.documents(["1", "2"])) == {("1", "python"), ("2", "python")}


def test_a_full_disk_is_one_sentence_and_keeps_the_index(tmp_path: Path):
    store = Store(tmp_path / "index.db")
    store.add(build([Source("1", "python", b"def one(): pass\n")]))
    store.limit_pages(40)
    many = [Source(str(n), "python", " ".join(f"w{n}_{i}" for i in range(900)).encode()) for n in range(2, 60)]
    with pytest.raises(IndexFault, match="cannot grow"):
        store.add(build(many))
    assert set(store.documents(["1", "2"])) == {("1", "python")}


def test_a_file_that_is_no_database_is_said_to_be_damaged(tmp_path: Path):
    (tmp_path / "index.db").write_bytes(b"no database at all, " * 500)
    with pytest.raises(IndexFault, match="damaged"):
        Store(tmp_path / "index.db")


def test_hostile_files_are_named_and_the_others_are_found(tmp_path: Path):
    root = put(
        tmp_path / "tree",
        {
            **PROJECT,
            "one-line.json": b"[" + b"12345678," * 100_000 + b"1]",
            "five-mb.json": b"[" + b"12345678," * 560_000 + b"1]",
            "deep.py": "(" * 20_000,
            "nul.py": b"a\0b\0" * 100,
            "utf16.py": "def sixteen(): pass\n".encode("utf-16"),
            "latin.py": "# é\ndef latin(): pass\n".encode("latin-1"),
            "broken.py": b"\xff\xfe\xfd\xc3\x28 def broken(): pass\n" * 3,
            "big.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
            "empty.py": b"",
            os.fsdecode(b"caf\xe9.py"): b"def cafe(): pass\n",
        },
    )
    with (root / "huge.py").open("wb") as huge:
        huge.truncate(100_000_000)
    (root / "loop").symlink_to(root)
    (root / "self.py").symlink_to("self.py")
    os.mkfifo(root / "pipe")
    view, report = indexed(tmp_path, root)
    assert rank(view, "rate limiter")[0].path == "app/limits.py"
    assert rank(view, "sixteen")[0].path == "utf16.py"
    states = {item.path: item.state for item in view.items}
    assert states["huge.py"] == states["five-mb.json"] == "large"
    assert states["big.bin"] == "lfs"
    assert states["loop"] == states["self.py"] == "link"
    assert states["pipe"] == "special"
    assert states["deep.py"] == "nested"
    assert sum(report.by_name_only.values()) >= 7


def test_a_file_that_changed_since_it_was_listed_is_not_known_by_its_old_id(tmp_path: Path):
    root = put(tmp_path / "tree", {name: f"def {name[0]}(): pass\n" for name in ("a.py", "b.py", "c.py", "d.py")})
    listed = [
        Source(file.oid, "python", size=file.size, path=f"{root}/{file.path}") for file in of_folder(root, {}).files
    ]
    put(root, {"b.py": "def changed(): pass\n"})
    (root / "c.py").unlink()
    (root / "d.py").unlink()
    os.mkfifo(root / "d.py")
    assert [row.oid for row in build(listed).rows] == [listed[0].oid]


@pytest.mark.parametrize(("age", "again"), [(0, True), (60, False)])
def test_a_file_that_has_just_been_changed_is_looked_at_again(tmp_path: Path, age: int, again: bool):
    root = put(tmp_path / "tree", {"a.py": "def early(): pass\n"})
    then = time.time() - age
    os.utime(root / "a.py", (then, then))
    store = Store(tmp_path / "index.db")
    index_folder(store, root)
    inode = (root / "a.py").stat().st_ino
    put(root, {"a.py": "def later(): pass\n"})  # as long as before, and in the same moment
    os.utime(root / "a.py", (then, then))
    assert (root / "a.py").stat().st_ino == inode
    view, _ = index_folder(store, root)
    assert bool(rank(view, "later")) is again


def test_a_file_above_the_limit_is_not_read(tmp_path: Path):
    view, _ = indexed(tmp_path, put(tmp_path / "tree", {"a.py": b"x" * (LARGEST + 1)}))
    assert view.items[0].state == "large"


def test_processes_give_the_same_index_as_none(tmp_path: Path):
    sources = [Source(str(number), "python", f"def name_{number}(): pass\n".encode()) for number in range(30)]
    here, there = Store(tmp_path / "here.db"), Store(tmp_path / "there.db")
    with Builder(here, total=30, processes=0) as builder:
        builder.add(sources)
    with Builder(there, total=30, processes=1) as builder:
        builder.add(sources)
    oids = [source.oid for source in sources]
    assert here.documents(oids) == there.documents(oids)


def test_an_empty_folder_answers(tmp_path: Path):
    (tmp_path / "tree").mkdir()
    view, _ = indexed(tmp_path, tmp_path / "tree")
    assert rank(view, "anything") == ()


def test_merged_segments_answer_like_single_ones(tmp_path: Path):
    sources = [Source(str(n), "python", f"def name_{n}(): return other_{n % 5}\n".encode()) for n in range(90)]
    whole, parts = Store(tmp_path / "whole.db"), Store(tmp_path / "parts.db")
    whole.add(build(sources))
    for start in range(0, 90, 3):
        parts.add(build(sources[start : start + 3]))
    for field, terms in ((0, ["name_7", "other", "return"]), (1, ["name"]), (2, ["name_88"])):
        one, other = whole.postings(field, terms), parts.postings(field, terms)
        assert one.terms == other.terms
        assert one.documents.tolist() == other.documents.tolist()
        assert one.frequencies.tolist() == other.frequencies.tolist()


def test_an_index_of_an_earlier_version_is_built_anew_and_of_a_later_one_left_alone(tmp_path: Path):
    index_folder(Store(tmp_path / "index.db"), put(tmp_path / "tree", PROJECT))
    database = sqlite3.connect(tmp_path / "index.db")
    database.execute("PRAGMA user_version=1")
    assert Store(tmp_path / "index.db").size() == 0
    database.execute(f"PRAGMA user_version={VERSION + 1}")
    with pytest.raises(IndexFault, match="newer"):
        Store(tmp_path / "index.db")


def test_a_task_that_shares_no_word_with_the_files_finds_nothing(tmp_path: Path):
    view, _ = indexed(tmp_path, put(tmp_path / "tree", PROJECT))
    assert rank(view, "zzyzx qwrtp") == ()
