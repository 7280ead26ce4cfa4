"""Crashes below and around the program: workers, forks, grandchildren, shutdown, other interpreters."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PROGRAMS

from faultlens.agent import LIBRARY

Call = Callable[..., str]


def test_multiprocessing_worker_while_the_parent_lives_on(run, native: Path, tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(
        "import ctypes, multiprocessing, sys\n"
        "def work():\n"
        f"    ctypes.CDLL({str(native)!r}).read_null()\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method(sys.argv[1])\n"
        "    p = multiprocessing.Process(target=work)\n"
        "    p.start(); p.join()\n"
        "    print('worker ended with', p.exitcode)\n"
    )
    for method in ("fork", "spawn", "forkserver"):
        done = run([sys.executable, "pool.py", method])
        assert (done.returncode, done.stdout) == (0, "worker ended with -11\n"), method
        assert done.died.outcome.kind == "ok"
        (child,) = done.died.children
        assert (child.outcome.signal, child.fault.address) == ("SIGSEGV", 0)
        assert any(frame.line == 3 for frame in child.crashed_thread.frames), method
        assert "SIGSEGV" in done.stderr
        assert done.saved


def test_forked_child(run, call: Call) -> None:
    done = run("import os\nif os.fork() == 0:\n" + _indented(call("read_null")) + "print(os.wait()[1])\n")
    assert (done.returncode, done.stdout) == (0, f"{int(signal.SIGSEGV)}\n")
    assert done.died.children[0].fault.address == 0
    assert done.died.children[0].parent_pid == done.died.pid


def test_grandchild(run, call: Call) -> None:
    inner = call("read_null")
    middle = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {inner!r}]).returncode)"
    done = run(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {middle!r}])")
    assert (done.returncode, done.stdout) == (0, "-11\n")
    assert done.died.children[0].parent_pid != done.died.pid


def test_children_can_be_spared(run) -> None:
    code = "import os, subprocess; print(os.environ.get('LD_PRELOAD'), flush=True); subprocess.run(['env'])"
    done = run(code, options=["--no-children"])
    assert "libfaultlens" not in done.stdout
    assert "FAULTLENS_AGENT" not in done.stdout


@pytest.mark.parametrize(
    "prefix", [["env", "-i"], ["env", "LD_PRELOAD="], ["nice", "-n", "1"], ["sh", "-c", 'exec "$@"', "sh"]]
)
@pytest.mark.parametrize("options", [[], ["--no-children"]])
def test_the_agent_goes_along_with_exec(run, call: Call, prefix: list[str], options: list[str]) -> None:
    done = run([*prefix, sys.executable, "-c", call("read_null")], options=options)
    assert done.returncode == -signal.SIGSEGV
    assert (done.died.method, done.died.crashed_thread.frames[0].function) == ("agent", "read_null")


def test_crash_during_interpreter_shutdown(run, call: Call) -> None:
    done = run(call("divide(1, 1)", after="import atexit; atexit.register(lib.read_null); print('done')"))
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "done\n")
    assert done.died.exiting


def test_a_program_without_python(run, tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "main.c").write_text("int inner(int *p) { return *p; }\nint main(void) { return inner(0) + 1; }\n")
    subprocess.run(["gcc", "-g", "-O0", "-o", tmp_path / "prog", tmp_path / "main.c"], check=True)
    done = run([tmp_path / "prog"])
    assert done.returncode == -signal.SIGSEGV
    functions = [frame.function for frame in done.died.crashed_thread.frames]
    assert functions[:2] == ["inner", "main"]
    assert done.died.program.python is None


def test_a_static_program_is_traced(run, tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "main.c").write_text("int main(void) { return *(volatile int *)64; }\n")
    subprocess.run(["gcc", "-static", "-g", "-o", tmp_path / "prog", tmp_path / "main.c"], check=True)
    done = run([tmp_path / "prog"])
    assert done.returncode == -signal.SIGSEGV
    assert (done.died.method, done.died.fault.address) == ("tracer", 64)
    assert done.stderr.count("faultlens: using ptrace, because") == 1


def test_a_program_that_closes_every_descriptor(run, call: Call) -> None:
    done = run(call("read_null", before="import os; os.closerange(0, 4096)"))
    assert done.returncode == -signal.SIGSEGV
    assert done.died.crashed_thread.frames[0].function == "read_null"


def test_a_program_out_of_descriptors(run, call: Call) -> None:
    before = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))"
    done = run(call("read_null", before=before))
    assert done.returncode == -signal.SIGSEGV
    assert done.died.limits["RLIMIT_NOFILE"].soft == 3


def _other_pythons() -> list[str]:
    places = [*Path("/usr/bin").glob("python3"), *(Path.home() / ".pyenv/versions").glob("3.*/bin/python3")]
    return sorted(str(place) for place in places if Path(sys.executable).resolve() != place.resolve())


@pytest.mark.parametrize("python", _other_pythons() or ["none"])
def test_another_python(run, call: Call, python: str, tmp_path: Path) -> None:
    if python == "none":
        pytest.skip("no other Python on this machine")
    asked = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    version = tuple(map(int, asked.stdout.split()))
    if version < (3, 9):
        pytest.skip("older than Python 3.9")
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    done = run([tmp_path / "venv/bin/python", "-c", call("read_null")])
    assert done.returncode == -signal.SIGSEGV
    assert done.died.program.python.version == f"{version[0]}.{version[1]}"
    assert done.died.program.python.prefix == str(tmp_path / "venv")
    assert any(frame.kind == "python" and frame.line == 4 for frame in done.died.crashed_thread.frames)


def _indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines() if line)


def test_a_program_of_an_earlier_run_is_left_alone(tmp_path: Path) -> None:
    """A daemon outlives faultlens. What its environment names then, /proc/PID/fd/N, may be anything by now."""
    os.mkfifo(tmp_path / "pipe")  # to open it would be to wait for a reader
    with open(tmp_path / "pipe", "wb", opener=lambda path, _: os.open(path, os.O_RDWR)) as pipe:
        stale = f"/proc/{os.getpid()}/fd/{pipe.fileno()}"
        environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "FAULTLENS_AGENT": stale}
        done = subprocess.run(
            ["sh", "-c", "echo lives; kill -SEGV $$"], env=environment, capture_output=True, timeout=20
        )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGSEGV, b"lives\n", b"")


def test_workers_that_crash_when_the_program_has_ended(run) -> None:
    for count, how, status in ((1, "crash", -signal.SIGSEGV), (6, "0", 0)):
        done = run([sys.executable, PROGRAMS / "undisturbed" / "late_workers.py", count, how])
        assert done.returncode == status
        assert done.died.outcome.kind == ("signal" if status else "ok")


def test_a_crash_in_a_namespace_of_processes(run) -> None:
    """It calls itself by a small number, which is another process here."""
    if os.geteuid() or subprocess.run(["unshare", "-pf", "true"]).returncode:
        pytest.skip("needs root and namespaces")
    crash = "import ctypes, os\nprint(os.getpid())\nctypes.string_at(8)"
    done = run(["unshare", "-pf", "sh", "-c", f"{sys.executable} -c '{crash}'; echo ended with $?"])
    assert done.stdout == "2\nended with 139\n"
    (child,) = done.died.children
    assert (child.fault.signal, child.fault.address) == ("SIGSEGV", 8)
    assert child.pid != 2
    assert any("ctypes" in (frame.file or frame.library or "") for frame in child.crashed_thread.frames)


def test_threads_get_no_arena_because_of_us(run, tmp_path: Path) -> None:
    (tmp_path / "threads.c").write_text(
        "#include <pthread.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"
        "static void *wait(void *a) { pause(); return a; }\n"
        "int main(void) {\n"
        "  pthread_attr_t small; pthread_attr_init(&small); pthread_attr_setstacksize(&small, 65536);\n"
        "  pthread_t each; for (int i = 0; i < 12; i++) pthread_create(&each, &small, wait, 0);\n"
        "  usleep(200000);\n"
        '  char line[256]; long size = 0; FILE *status = fopen("/proc/self/status", "r");\n'
        '  while (fgets(line, sizeof line, status)) sscanf(line, "VmSize: %ld", &size);\n'
        '  printf("%ld\\n", size); return 0; }\n'
    )
    subprocess.run(["gcc", "-pthread", "-o", "threads", "threads.c"], cwd=tmp_path, check=True)
    done = run([tmp_path / "threads"])
    assert int(done.stdout) < 100_000  # kB; an arena is 64 MiB each
