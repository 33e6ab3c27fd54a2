"""Tools that people use still work under the system call filter. Nothing here skips: a missing tool fails."""

from __future__ import annotations

import pytest
from e2b import CommandExitException

from tests.contracts.sandbox_server import fixtures

pytestmark = pytest.mark.asyncio(loop_scope="module")
endpoint, sandbox = fixtures()

RULES = """
rules:
- id: no-eval
  languages: [python]
  severity: ERROR
  message: eval runs text
  pattern: eval(...)
"""

NODE = """
const {Worker} = require("worker_threads");
require("child_process").execSync("true");
new Worker("1", {eval: true}).on("exit", () => {
  const server = require("http").createServer((ask, answer) => answer.end("x")).listen(0, "127.0.0.1", () =>
    require("http").get({port: server.address().port}, got => { console.log(got.statusCode); process.exit() }));
});
"""

PYTHON = """
import asyncio, concurrent.futures, multiprocessing, os, socket, subprocess, sys, tempfile, threading
async def child():
    process = await asyncio.create_subprocess_exec("true")
    return await process.wait()
def square(number): return number * number
if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(2) as pool: assert list(pool.map(square, [2, 3])) == [4, 9]
    assert asyncio.run(child()) == 0
    with multiprocessing.get_context("spawn").Pool(1) as pool: assert pool.map(square, [4]) == [16]
    with socket.create_server(("127.0.0.1", 0)) as server: socket.create_connection(server.getsockname()).close()
    with tempfile.NamedTemporaryFile() as file: os.chmod(file.name, 0o755)
    print("all right")
"""


async def test_git_keeps_its_own_repository(sandbox):
    result = await sandbox.commands.run(
        "git init -q r && cd r && echo a > a && git add -A && git -c user.name=a -c user.email=a@b commit -qm x"
        " && git gc -q && git fsck --strict && git clone -q . ../s && git -C ../s log --format=%s"
    )
    assert result.stdout == "x\n"


async def test_c_programs_are_compiled_and_run_with_threads(sandbox):
    program = "#include <pthread.h>\\nvoid *f(void *x) { return x; }\\nint main() { pthread_t t; pthread_create(&t, 0, f, 0); return pthread_join(t, 0); }"
    result = await sandbox.commands.run(f"printf '{program}' > a.c && gcc -O2 -pthread a.c -o a && ./a && echo ran")
    assert result.stdout == "ran\n"


async def test_node_runs_workers_children_and_a_server(sandbox):
    await sandbox.files.write("a.js", NODE)
    assert (await sandbox.commands.run("node a.js")).stdout == "200\n"


async def test_python_runs_processes_pools_sockets_and_pytest(sandbox):
    await sandbox.files.write("a.py", PYTHON)
    assert (await sandbox.commands.run("python a.py")).stdout == "all right\n"
    await sandbox.files.write("test_a.py", "def test_a(tmp_path): assert tmp_path.exists()\n")
    assert "1 passed" in (await sandbox.commands.run("pytest -q test_a.py")).stdout


async def test_semgreps_native_command_line_finds_things(sandbox):
    await sandbox.files.write("rules.yml", RULES)
    await sandbox.files.write("bad.py", "eval(input())\n")
    result = await sandbox.commands.run(
        "/opt/semgrep/bin/semgrep scan --experimental --metrics=off --disable-version-check --config rules.yml --json --quiet bad.py",
        timeout=120,
    )
    assert '"check_id":"no-eval"' in result.stdout


async def test_archives_and_permissions_work_but_setuid_does_not(sandbox):
    await sandbox.commands.run(
        "mkdir d && touch d/x && chmod 1777 d && chmod 755 d/x && tar cpf d.tar d && tar xpf d.tar -C /tmp"
    )
    with pytest.raises(CommandExitException, match="not permitted"):
        await sandbox.commands.run("chmod u+s d/x")
    assert (await sandbox.commands.run("stat -c %a d/x")).stdout == "755\n"
