"""Several processes on one index: at the same time, and killed in the middle."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bot.retrieval import parsers
from bot.retrieval.build import Builder
from bot.retrieval.index import index_folder
from bot.retrieval.rank import rank
from bot.retrieval.segment import Source
from bot.retrieval.store import Store

PROGRAM = (
    "import sys; from pathlib import Path; from bot.retrieval.index import index_folder; from bot.retrieval.store import Store;"
    "print(index_folder(Store(Path(sys.argv[1])), Path(sys.argv[2]))[1].files)"
)


def tree(root: Path, files: int) -> Path:
    root.mkdir()
    for number in range(files):
        body = "".join(f"def work_{number}_{i}(value):\n    return value + {i}\n\n\n" for i in range(20))
        (root / f"module_{number}.py").write_text(body)
    return root


def started(index: Path, root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(index), str(root)], stdout=subprocess.PIPE)


def test_three_workers_index_one_folder_at_the_same_time(tmp_path: Path):
    root = tree(tmp_path / "tree", 50)
    workers = [started(tmp_path / "index.db", root) for _ in range(3)]
    assert [worker.communicate(timeout=120)[0].split() for worker in workers] == [[b"50"]] * 3
    view, report = index_folder(Store(tmp_path / "index.db"), root)
    assert report.read == 0
    assert rank(view, "work_7_3")[0].path == "module_7.py"


def test_a_program_on_standard_input_may_index(tmp_path: Path):
    """Its main module cannot be imported by a child; ours does not try."""
    root = tree(tmp_path / "tree", 80)
    command = [sys.executable, "-", str(tmp_path / "index.db"), str(root)]
    done = subprocess.run(command, input=PROGRAM.encode(), capture_output=True, timeout=120, check=True)
    assert done.stdout.split() == [b"80"]
    view, _ = index_folder(Store(tmp_path / "index.db"), root)
    assert {item.state for item in view.items} == {"read"}


def test_a_parsing_process_that_is_killed_costs_no_file(tmp_path: Path):
    parser = parsers.start()
    parser.process.kill()
    parser.process.wait()
    parser.give([Source("1", "python", b"x = 1\n")])
    assert parsers.finished([parser]) == [(parser, None)]
    store = Store(tmp_path / "index.db")
    others = children(os.getpid())  # such as the database server of other tests
    with Builder(store, total=3, processes=1) as builder:
        builder.add([Source(str(number), "python", b"def name(): pass\n") for number in range(3)])
        parsing = children(os.getpid()) - others
        assert parsing
        for child in parsing:
            os.kill(child, signal.SIGKILL)
    assert {oid for oid, _ in store.documents(["0", "1", "2"])} == {"0", "1", "2"}


def children(parent: int) -> set[int]:
    return {int(number) for number in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}


def test_a_killed_worker_loses_nothing_that_was_finished(tmp_path: Path):
    root = tree(tmp_path / "tree", 900)
    index = tmp_path / "index.db"
    worker = started(index, root)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and _known(index) == 0:
        time.sleep(0.05)
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    kept = _known(index)
    view, report = index_folder(Store(index), root)
    assert report.read <= 900 - kept
    assert len(view.items) == 900
    assert rank(view, "work_577_3")[0].path == "module_577.py"


def _known(index: Path) -> int:
    return Store(index).size() if index.exists() else 0
