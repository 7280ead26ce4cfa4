"""Keeps secrets out of reports: only values known to be harmless are stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

HIDDEN = "<redacted>"

# Settings that decide how a native Python program behaves, and hold no secrets.
HARMLESS_NAMES = re.compile(
    r"(PATH|HOME|SHELL|TERM|LANG|LC_\w+|TZ|TMPDIR|PWD|VIRTUAL_ENV|CONDA_(PREFIX|DEFAULT_ENV)"
    r"|PYTHON(?!.*STARTUP)\w*|LD_\w+|MALLOC_\w+|GLIBC_TUNABLES|ASAN_OPTIONS|UBSAN_OPTIONS|TSAN_OPTIONS"
    r"|TF_\w+|TF2_\w+|KERAS_(HOME|BACKEND)|XLA_\w+|CUDA_\w+|NVIDIA_(VISIBLE_DEVICES|DRIVER_CAPABILITIES)|NCCL_\w+"
    r"|ROCM_\w+|HIP_\w+|OMP_\w+|KMP_\w+|MKL_\w+|OPENBLAS_\w+|DNNL_\w+|ONEDNN_\w+|GOTO_NUM_THREADS|NUMEXPR_\w+"
    r"|JAX_\w+|RAY_(?!.*TOKEN)\w+|SLURM_(JOB_ID|NTASKS|PROCID|LOCALID|MEM_PER_\w+)|FAULTLENS_\w+)"
)
SECRET_NAMES = re.compile(r"(?i)(secret|token|password|passwd|credential|api_?key|access_?key|private|auth|cookie)")


def redact_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value if _harmless(name) else HIDDEN for name, value in environment.items()}


def redact_command(command: Sequence[str]) -> tuple[str, ...]:
    """Keeps the program, Python's script or module, and the names of options; hides all other words."""
    if not command:
        return ()
    kept = [command[0]]
    words = iter(command[1:])
    if re.match(r"python|pypy", PurePath(command[0]).name):
        kept += _interpreter_words(words)
    for word in words:
        name, equals, _ = word.partition("=")
        is_option = word.startswith("-") and not re.fullmatch(r"-\d+(\.\d+)?", word)
        kept.append(name + (f"={HIDDEN}" if equals else "") if is_option else HIDDEN)
    return tuple(kept)


def _interpreter_words(words: Iterator[str]) -> Iterator[str]:
    """Python's own options up to and including the script or module."""
    for word in words:
        yield word
        if word in ("-W", "-X", "-m"):
            yield next(words, "")
        if word == "-c":
            yield HIDDEN
            next(words, None)
        if word in ("-c", "-m") or not word.startswith("-"):
            return


def hide_values(text: str, environment: Mapping[str, str]) -> str:
    """Removes the values of secret variables from a text such as the program's output."""
    for name, value in environment.items():
        if len(value) >= 6 and SECRET_NAMES.search(name):
            text = text.replace(value, HIDDEN)
    return text


def _harmless(name: str) -> bool:
    return bool(HARMLESS_NAMES.fullmatch(name)) and not SECRET_NAMES.search(name)
