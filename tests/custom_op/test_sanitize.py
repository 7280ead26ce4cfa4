"""`faultlens op sanitize` on real ops: the right line for each kind of mistake, nothing for healthy ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from faultlens.custom_op.sanitize import passes
from sanitize_command import sanitized

HERE = Path(__file__).parent / "sanitized"
pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    pytest.mark.timeout(300),
]


def line_of(file: str, text: str) -> int:
    lines = (HERE / file).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.rstrip().endswith(text)]
    return number


def told(found: dict[str, Any]) -> set[tuple[str, int]]:
    return {(each["rule"], each["span"]["line"]) for each in found["findings"]}


def called(found: dict[str, Any], rule: str, line: int) -> int | None:
    (finding,) = [each for each in found["findings"] if (each["rule"], each["span"]["line"]) == (rule, line)]
    return finding.get("called_from", {}).get("line")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The program's own library is a link to nothing that could be run: only the sanitized one can have been."""
    folder = tmp_path_factory.mktemp("memory")
    library = folder / "ops.so"
    library.write_bytes(b"\x7fELF")
    command = ["--", sys.executable, HERE / "memory.py", library]
    found, output = sanitized([HERE / "memory.cc", library, *command], folder, 1)
    assert "to the end" in output
    return found


EXPECTED = {
    "heap-overflow": ("WritePast", "// heap write"),
    "heap-overflow of a read": ("ReadPast", "// heap read"),
    "use-after-free": ("UsedAfterFree", "// used"),
    "double-free": ("FreedTwice", "// second"),
    "stack-overrun": ("StackArray", "// stack write"),
    "stack-exhausted": ("Recursive", "// recursion"),
    "unwritten-output": ("UnsetOutput", "// uninitialised"),
    "unwritten-output of a sum": ("SumNotBegun", "// never zero"),
    "missing-output": ("Forgetful", "// nothing is allocated"),
    "undefined-behaviour": ("Overflowing", "// signed overflow"),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_the_line_of_the_op_and_the_line_that_called_it(memory: dict[str, Any], kind: str) -> None:
    op, comment = EXPECTED[kind]
    rule, line = kind.split(" ")[0], line_of("memory.cc", comment)
    assert (rule, line) in told(memory)
    assert called(memory, rule, line) == line_of("memory.py", f"# {op}")


def test_leaks_of_the_op_and_nothing_else(memory: dict[str, Any]) -> None:
    """Neither of the healthy op, nor of TensorFlow and the interpreter."""
    assert ("memory-leak", line_of("memory.cc", "// leak")) in told(memory)
    assert len(memory["findings"]) == len(EXPECTED) + 1


def test_who_allocated_and_who_freed(memory: dict[str, Any]) -> None:
    (finding,) = [each for each in memory["findings"] if each["rule"] == "use-after-free"]
    assert [(each["says"], each["span"]["line"]) for each in finding["related"]] == [
        ("freed here", line_of("memory.cc", "// freed")),
        ("allocated here", line_of("memory.cc", "// allocated")),
    ]


def test_races_but_not_what_locks_and_shards_order(tmp_path: Path) -> None:
    library = tmp_path / "ops.so"
    library.write_bytes(b"\x7fELF")
    command = ["--tsan", "--", sys.executable, HERE / "races.py", library]
    found, _ = sanitized([HERE / "races.cc", library, *command], tmp_path, 1)
    races = {("data-race", line_of("races.cc", f"// race of {who}")) for who in ("kernels", "shards")}
    assert told(found) == races


C_LIBRARY = """\
#include <stdlib.h>
static void *volatile kept;
void lose(int count) {
  for (int i = 0; i < count; ++i) kept = malloc(48);  // leak
}
int fine(int count) { return count; }
"""


def test_a_plain_library_known_by_its_source_alone(tmp_path: Path) -> None:
    """Built by the program itself, at a place that nobody told; leaks of the interpreter are not told."""
    source = tmp_path / "lossy.c"
    source.write_text(C_LIBRARY)
    program = tmp_path / "program.py"
    program.write_text(
        "import ctypes, subprocess, sys\n"
        f"subprocess.run(['gcc', '-shared', '-fPIC', {str(source)!r}, '-o', 'built.so'], check=True)\n"
        "library = ctypes.CDLL('./built.so')\n"
        "getattr(library, sys.argv[1])(5)\n"
    )
    found, _ = sanitized([source, "--", sys.executable, program, "lose"], tmp_path, 1)
    assert told(found) == {("memory-leak", 4)}
    found, _ = sanitized([source, "--", sys.executable, program, "fine"], tmp_path, 0)
    assert found["findings"] == []


@pytest.mark.parametrize(
    ("end", "status", "says"),
    [
        ("os._exit(86)", 2, "the sanitizer gave up: the program ended with exit status 86"),
        ("os._exit(3)", 0, "the program ended with exit status 3"),
        ("os.kill(os.getpid(), 9)", 0, "the program died by SIGKILL"),
        ("", 0, "the program ended with exit status 0"),
    ],
)
def test_how_the_program_ended(tmp_path: Path, end: str, status: int, says: str) -> None:
    source = tmp_path / "lossy.c"
    source.write_text(C_LIBRARY)
    program = tmp_path / "program.py"
    program.write_text(
        "import ctypes, os, subprocess\n"
        f"subprocess.run(['gcc', '-shared', '-fPIC', {str(source)!r}, '-o', 'built.so'], check=True)\n"
        f"ctypes.CDLL('./built.so').fine(5)\n{end}\n"
    )
    found, output = sanitized([source, "--asan", "--", sys.executable, program], tmp_path, status)
    assert says in " ".join((*found["done"], *found["skipped"]))
    assert says in " ".join(output.split())
    assert found["coverage"] == {"os._exit(86)": "insufficient", "os.kill(os.getpid(), 9)": "part"}.get(end, "whole")


USED_TOO_LATE = """\
#include <stdlib.h>
#include <string.h>
int total(int count) {
  int *block = malloc(count * sizeof(int));  // allocated
  memset(block, 1, count * sizeof(int));
  free(block);  // freed
  return block[count / 2];  // used
}
"""


@pytest.mark.parametrize("sanitizer", ["gwp-asan", "valgrind", "asan"])
def test_who_allocated_who_freed_who_used(tmp_path: Path, sanitizer: str) -> None:
    """The function has a name that stands in other libraries as well, and the program starts others before."""
    missing = [tool.name for tool in passes.SANITIZERS[sanitizer].tools if tool.find() is None]
    if missing:
        pytest.skip(f"needs {missing[0]}")
    source = tmp_path / "late.c"
    source.write_text(USED_TOO_LATE)
    program = tmp_path / "program.py"
    program.write_text(
        "import ctypes, subprocess\n"
        f"subprocess.run(['gcc', '-shared', '-fPIC', {str(source)!r}, '-o', 'built.so'], check=True)\n"
        "library = ctypes.CDLL('./built.so')\n"
        "for _ in range(2000):\n"
        "    library.total(100)\n"
    )
    found, _ = sanitized([source, f"--{sanitizer}", "--", sys.executable, program], tmp_path, 1)
    (finding,) = found["findings"]
    assert (finding["rule"], finding["span"]["line"]) == ("use-after-free", 7)
    assert [(each["says"], each["span"]["line"]) for each in finding["related"]] == [
        ("freed here", 6),
        ("allocated here", 4),
    ]
    if sanitizer != "valgrind":
        assert finding["called_from"]["line"] == 5


def test_a_program_that_never_loads_it(tmp_path: Path) -> None:
    source = tmp_path / "lossy.c"
    source.write_text(C_LIBRARY)
    command = [sys.executable, "-m", "faultlens", "op", "sanitize", source, "--", sys.executable, "-c", "pass"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "never loaded" in done.stderr


def test_a_tool_that_is_missing_is_named_with_its_package(tmp_path: Path) -> None:
    """Nothing is installed without consent; without a terminal nobody can give it."""
    source = tmp_path / "lossy.c"
    source.write_text(C_LIBRARY)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("gcc", "g++", "nm", "ld", "as", "apt-get", "apt-cache"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    done = subprocess.run(
        [sys.executable, "-m", "faultlens", "op", "sanitize", source, "--valgrind", "--", sys.executable, "-c", "pass"],
        env={**os.environ, "PATH": str(tools)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "valgrind, which is missing" in done.stderr
    if shutil.which("apt-get"):
        assert "apt-get install -y valgrind" in done.stderr


def test_without_source_the_heap_is_checked(tmp_path: Path) -> None:
    """A library whose source nobody knows: the cheap sanitizers, on the program's own build."""
    source = tmp_path / "gone.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\n"
        "void spill(int size) {\n  char *block = malloc(40);\n  memset(block, 1, size);\n  free(block);\n}\n"
    )
    library = tmp_path / "libspill.so"
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-shared", "-fPIC", source, "-o", library], check=True)
    source.unlink()
    call = f"import ctypes; ctypes.CDLL({str(library)!r}).spill(49)"
    found, _ = sanitized([library, "--malloc", "--", sys.executable, "-c", call], tmp_path, 1)
    assert [each["rule"] for each in found["findings"]] == ["heap-damage"]
