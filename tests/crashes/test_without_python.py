"""Programs without Python: their own executable is judged as a library of the user's own would be."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Run, Runner

from faultlens.report.make import make_report

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
struct counter { char pad[8]; int n; };
static int get(struct counter *c) {
  return c->n;
}
static int rec(int d) { volatile char big[4096]; big[d & 4095] = d; return rec(d + 1) + big[0]; }
int main(int argc, char **argv) {
  volatile int zero = 0;
  if (!strcmp(argv[1], "null")) return get(0);
  if (!strcmp(argv[1], "divide")) return argc / zero;
  if (!strcmp(argv[1], "overflow")) return rec(0);
  if (!strcmp(argv[1], "bounds")) { int *a = malloc(16), s = 0; for (long i = 0;; i++) s += ((volatile int *)a)[i]; }
  if (!strcmp(argv[1], "jump")) ((void (*)(void))0)();
  if (!strcmp(argv[1], "smash")) { char small[16]; memset(small, 'A', 300 + argc); zero = small[0]; }
  if (!strcmp(argv[1], "abort")) abort();
  if (!strcmp(argv[1], "free")) { char *b = malloc(10); free(b); free(b); }
  return 0;
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.c").write_text(PROGRAM.lstrip())
    flags = ["-g", "-O0", "-w", "-fno-stack-protector", "-U_FORTIFY_SOURCE"]
    subprocess.run(["gcc", *flags, "-o", "own", "own.c"], cwd=folder, check=True, timeout=60)
    return folder / "own"


@pytest.mark.parametrize(
    ("how", "cause", "line"),
    [
        ("null", "native-null-dereference", 5),
        ("divide", "native-division-by-zero", 11),
        ("overflow", "stack-overflow", 7),
        ("bounds", "native-out-of-bounds", 13),
        ("jump", "native-bad-function-pointer", None),
        ("smash", "native-stack-smash", 19),
        ("abort", "signal-raised-by-program", 16),
        ("free", "native-double-free", 17),
    ],
)
def test_the_verdict_and_the_line(run: Runner, program: Path, how: str, cause: str, line: int | None) -> None:
    done = run([program, how])
    assert _cause(done) == cause
    if line is not None:
        assert f"own.c:{line}  in " in done.stderr


def test_of_a_recursion_that_was_not_walked_in_full_no_number_is_claimed(run: Runner, program: Path) -> None:
    done = run([program, "overflow"])
    assert "rec stands on the stack at least " in done.stderr


def _cause(done: Run) -> str:
    return make_report(done.died).diagnoses[0].cause
