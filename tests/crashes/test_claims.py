"""What people say about TensorFlow crashes, tried: the programs of examples/claims do what docs/myths.md says."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "examples" / "claims"
CANNOT_SHOW = 77
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONDONTWRITEBYTECODE": "1"}

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"),
]


@dataclass(frozen=True)
class Claim:
    printed: tuple[str, ...]  # one regular expression for each line
    signals: tuple[str, ...] = ()  # what the processes of the program die by
    places: tuple[str, ...] = ()  # functions or libraries in which some of them die


# Alternatives are endings that differ from run to run, or between TensorFlow 2.16 and 2.21.
SEEN = {
    "address_space_limit": Claim(
        (
            r"one_large_tensor: ResourceExhaustedError",
            r"many_tensors: (SIGSEGV|SIGABRT|ResourceExhaustedError)( bad_alloc)?",
            r"many_strings: (SIGSEGV|SIGABRT)( bad_alloc)?",
            r"thread_pools: SIGABRT pthread_create",
            r"import_tensorflow: ImportError",
        ),
        ("SIGABRT",),
    ),
    "bad_arguments": Claim(
        (
            r"matmul_of_wrong_shapes: InvalidArgumentError",
            r"expand_dims_beyond_rank_254: SIGABRT",
            r"shuffle_with_huge_buffer: SIGSEGV",
            r"parse_example_of_empty_shape: SIGFPE",
        ),
        ("SIGABRT", "SIGFPE", "SIGSEGV"),
    ),
    "buffer_lifetime": Claim(
        (
            r"ctypes_freed: SIGSEGV",
            r"ctypes_freed_and_filled: finished the sum is 5.0 times the right one",
            r"dlpack_freed: SIGSEGV",
            r"frombuffer_unmapped: SIGSEGV",
            r"dlpack_unaligned: SIGABRT IsAligned",
        ),
        ("SIGABRT", "SIGSEGV", "SIGSEGV", "SIGSEGV"),
    ),
    "careless_extension": Claim((r"extension without NumPy's table: SIGSEGV",), ("SIGSEGV",)),
    "changed_arrays": Claim(
        (
            r"constant: changed with the array: False",
            r"convert_to_tensor: changed with the array: False",
            r"from_dlpack: changed with the array: True",
            r"wrong_from_generator: aligned 4[0-9] of 50, unaligned 0 of 50",
            r"wrong_from_numpy_function: aligned 4[0-9] of 50, unaligned 0 of 50",
        )
    ),
    "cpu_without_avx": Claim((r"import on a Nehalem: SIGILL; AVX mentioned: False",)),
    "crafted_tensor": Claim((r"random_bytes: InvalidArgumentError", r"crafted_bytes: SIGSEGV"), ("SIGSEGV",)),
    "custom_op_abi": Claim(
        (
            r"old C\+\+ ABI: NotFoundError, undefined symbol",
            r"other version: NotFoundError, undefined symbol",
            r"right C\+\+ ABI: loaded",
        )
    ),
    "custom_op_bugs": Claim(
        (
            r"heap_overflow: (SIGABRT|SIGSEGV) the op has done its work",
            r"exception_eager: SIGSEGV",
            r"exception_in_function: SIGABRT",
            r"use_after_free: finished wrong 1[0-9] of 19",
            r"forgotten_output: finished shape \(0,\)",
            r"forgotten_output_in_function: InternalError",
        ),
        ("SIGABRT", "SIGSEGV"),
        ("PyErr_Occurred",),
    ),
    "damaged_data": Claim(
        (
            *(rf"{kind}: read without an error \d+ of 100, wrong \d+" for kind in ("JPEG", "PNG", "GIF", "BMP")),
            r"(WebP: read without an error \d+ of 100, wrong \d+)?",
            r"Example: read without an error \d+ of 100, wrong \d+",
            r"TFRecord: read without an error \d+ of 100, wrong \d+",
            r"\d00 damaged files, and still alive",
        )
    ),
    "damaged_models": Claim(
        (
            *[r"\S+: finished; raised \d, loaded \d of 8"] * 5,
            r"model.h5: (finished|still running); raised \d, loaded \d of 8",
            r"array.npy: finished; raised \d, loaded \d of 8",
            r"changed weight in model.h5: loads silently",
        )
    ),
    "damaged_tflite": Claim(
        (
            r"given as path: [1-8] of 8 crashed",
            r"given as bytes: 0 of 8 crashed",
            r"cut off while mapped: SIGBUS",
        )
    ),
    "deep_recursion": Claim(
        (
            r"usual_limit: RecursionError; faulthandler spoke: False",
            r"raised_limit: (SIGSEGV; faulthandler spoke: True|RecursionError; faulthandler spoke: False)",
            r"small_stack: SIGSEGV; faulthandler spoke: False",
        ),
        ("SIGSEGV",),
    ),
    "fork_after_tensorflow": Claim(
        (r"fork before the first op: finished", r"waits on a futex: True", r"fork after it: still running")
    ),
    "full_disk": Claim(
        (
            r"checkpoint: (ResourceExhaustedError|OSError)",
            r"saved_model: (ResourceExhaustedError|OSError)",
            r"numpy_save: OSError",
            r"keras_file: OSError",
            r"weights_file: OSError, then SIGSEGV",
            r"memmap: SIGBUS",
        ),
        ("SIGBUS", "SIGSEGV"),
        ("libhdf5",),
    ),
    "harmless": Claim(
        (r"reshape: \(1000, 10\)", r"gigantic: ResourceExhaustedError", r"lying_layer: saved", r"ragged: ValueError")
    ),
    "killed_save": Claim(
        (
            r"model.keras: previous model kept 0 of 2; loading: \w+Error, 'File not found'",
            r"model.weights.h5: previous model kept 0 of 2; loading: \w+Error",
            r"saved_model: previous model kept 2 of 2; loading: finished",
            r"checkpoint: previous model kept 2 of 2; loading: finished",
        )
    ),
    "mapped_files": Claim(
        (
            r"truncated_while_numpy_reads: SIGBUS",
            r"truncated_while_a_kernel_reads: SIGBUS",
            r"shared_memory_full: SIGBUS",
        ),
        ("SIGBUS", "SIGBUS", "SIGBUS"),
        ("Eigen::",),
    ),
    "odd_arrays": Claim((*[r".+: right: True"] * 6, *[r".+: ValueError"] * 4, r"wrong shape: InvalidArgumentError")),
    "old_protobuf": Claim((r"protobuf 3.19.6: ImportError", r"protobuf [\d.]+: finished")),
    "out_of_memory": Claim((r"ended by SIGKILL; complaints printed: 0; the group counted 1 kill",)),
    "preloaded_allocators": Claim(
        (
            r"training with libjemalloc.so.2: finished",
            r"training with libtcmalloc_minimal.so.4: finished",
            r"malloc of glibc, free of tcmalloc: SIGABRT; invalid pointer",
        ),
    ),
    "preloaded_tensorflow": Claim((r"import math: finished", r"import hashlib: SIGSEGV"), ("SIGSEGV",)),
    "saving_memory": Claim(
        (
            r"weights: 47 MiB, the largest 23 MiB",
            r"checkpoint: extra [12]?\d MiB",
            r"saved_model: extra [12]?\d MiB",
            r"keras: extra (4[7-9]|[5-9]\d|\d{3}) MiB",
            r"h5: extra \d+ MiB",  # less where memory that was freed is used again
            r"weights_h5: extra \d+ MiB",
        )
    ),
    "thread_and_file_limits": Claim(
        (
            r"limit_of_the_group: (SIGABRT pthread_create|PermissionError|FileNotFoundError)",
            r"limit_of_the_user: SIGABRT pthread_create",
            r"limit_of_the_address_space: SIGABRT pthread_create",
            r"limit_of_open_files: (SIGABRT random_device|\w+Error Too many open files)",
        ),
        ("SIGABRT", "SIGABRT"),
    ),
    "torch_and_tensorflow": Claim((r"torch first: finished", r"tensorflow first: finished")),
    "two_openmp": Claim(
        (
            r"use_both: SIGABRT; Error #15: True; done: False",
            r"use_both_allowed: (finished|still running); Error #15: False; done: True",
        ),
        ("SIGABRT",),
    ),
}  # fmt: skip


def check(lines: tuple[str, ...], returncode: int, stdout: str, stderr: str) -> None:
    if returncode == CANNOT_SHOW:
        pytest.skip(stdout.strip().splitlines()[-1])
    assert returncode == 0, stderr
    assert re.fullmatch(r"\n".join(lines) + r"\n", stdout), stdout


def run_plainly(slug: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CLAIMS / f"{slug}.py"], cwd=cwd, env={**os.environ, **QUIET}, capture_output=True,
        text=True, errors="replace", timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def plainly(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future]]:
    """The programs of the selected tests, started two at a time, because the import takes most of the time."""
    selected = [item for item in request.session.items if item.originalname == "test_the_claim_under_plain_python"]
    slugs = [item.callspec.params["slug"] for item in selected]
    with ThreadPoolExecutor(2) as pool:
        yield {slug: pool.submit(run_plainly, slug, tmp_path_factory.mktemp(slug)) for slug in slugs}
        pool.shutdown(cancel_futures=True)


# Where processes die, the run under faultlens shows both.
@pytest.mark.parametrize("slug", [slug for slug, claim in SEEN.items() if not claim.signals])
def test_the_claim_under_plain_python(slug: str, plainly: dict[str, Future]) -> None:
    done = plainly[slug].result()
    check(SEEN[slug].printed, done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("slug", [slug for slug, claim in SEEN.items() if claim.signals])
def test_the_claim_under_faultlens(slug: str, run, tmp_path: Path) -> None:
    """The program sees the same, and each of its processes that died by a fault has been recorded."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    done = run([sys.executable, CLAIMS / f"{slug}.py"], cwd=cwd, env=QUIET, timeout=150)
    check(SEEN[slug].printed, done.returncode, done.stdout, done.stderr)
    assert done.died.outcome.kind == "ok"
    recorded = [child.outcome.signal for child in done.died.children for _ in range(child.times)]
    assert all(recorded.count(name) >= SEEN[slug].signals.count(name) for name in SEEN[slug].signals), recorded
    assert {child.fault.signal for child in done.died.children if child.fault} >= set(SEEN[slug].signals)
    frames = [frame for child in done.died.children for frame in child.crashed_thread.frames]
    for place in SEEN[slug].places:
        assert any(place in f"{frame.function} {frame.library}" for frame in frames), place


def test_every_claim_has_its_row_and_its_test() -> None:
    programs = {path.stem for path in CLAIMS.glob("*.py")} - {"endings"}
    named = set(re.findall(r"claims/(\w+)\.py", (ROOT / "docs" / "myths.md").read_text()))
    assert programs == named == set(SEEN)
