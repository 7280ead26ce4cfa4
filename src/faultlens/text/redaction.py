"""Keeps secrets out of reports: of arguments and variables only what is known to be harmless is stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from faultlens.text.secrets import HIDDEN, Scanner, is_secret_name, secret_values

__all__ = ["HIDDEN", "hide_values", "redact_command", "redact_environment", "taking_value"]

# Variables whose value is a path, or several.
_PATHS = re.compile(
    r"PATH|HOME|SHELL|TMPDIR|PWD|VIRTUAL_ENV|CONDA_PREFIX|PYTHON(?:PATH|HOME|PYCACHEPREFIX|USERBASE|EXECUTABLE)"
    r"|LD_\w+|KERAS_HOME|CUDA_(?:HOME|PATH|CACHE_PATH)|CUDNN_PATH|TF_(?:XLA_)?(?:DUMP|DEBUG)\w*|FAULTLENS_HOME"
)
# Settings of libraries that decide how native code behaves: words, numbers, flags, lists of them.
_SETTINGS = re.compile(
    r"TERM|LANG|LC_\w+|TZ|CONDA_DEFAULT_ENV|PYTHON(?!STARTUP)\w*|MALLOC_\w+|GLIBC_TUNABLES|[AUTLM]SAN_OPTIONS"
    r"|TF_(?:XLA_FLAGS|GPU_ALLOCATOR|CPP_VMODULE|GPU_THREAD_MODE)|XLA_FLAGS|KERAS_BACKEND"
    r"|CUDA_(?:VISIBLE_DEVICES|DEVICE_ORDER|MODULE_LOADING)|NVIDIA_(?:VISIBLE_DEVICES|DRIVER_CAPABILITIES)"
    r"|NCCL_(?:DEBUG|SOCKET_IFNAME|ALGO|PROTO|IB_HCA)|HIP_VISIBLE_DEVICES|JAX_PLATFORMS"
    r"|OMP_\w+|KMP_\w+|MKL_\w+|OPENBLAS_\w+|DNNL_\w+|ONEDNN_\w+|NUMEXPR_\w+"
    r"|SLURM_(?:JOB_ID|NTASKS|PROCID|LOCALID|MEM_PER_\w+)|FAULTLENS_\w+"
)
# All others of these libraries: only switches and numbers.
_SWITCHES = re.compile(r"(?:TF|TF2|XLA|CUDA|NCCL|ROCM|HIP|JAX|RAY|KERAS|GOTO)_\w+")
_PATH = re.compile(r"[\w/.~+:@%,={}$ -]*")
_SETTING = re.compile(r"[\w.,:;=/+%@*{}()<> -]{0,400}")
_SWITCH = re.compile(
    r"(?i)|true|false|on|off|yes|no|none|auto|[-+]?\d{1,12}(?:\.\d{1,6}){0,3}(?:[kmgt]i?b?|%)?(?:,\d{1,6})*"
)

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[a-z]?(?:-dbg|-debug|\.exe)?")
_LONG_OPTION = re.compile(r"--[A-Za-z][A-Za-z0-9_.-]{0,40}")


def redact_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value if _is_harmless(name, value) else HIDDEN for name, value in environment.items()}


def redact_command(command: Sequence[str]) -> tuple[str, ...]:
    """Keeps the program, Python's script or module, and the names of options; hides all other words."""
    if not command:
        return ()
    words = iter(command[1:])
    kept = [command[0]]
    if _PYTHON.fullmatch(PurePath(command[0]).name):
        kept += _interpreter_words(words)
    kept += map(_option_name, words)
    scanner = Scanner()
    return tuple(word if word in (command[0], HIDDEN) else scanner.name(word) for word in kept)


def hide_values(text: str, environment: Mapping[str, str]) -> str:
    """Removes secrets from a text such as the program's output, the values of its variables among them."""
    return Scanner(secret_values(environment)).text(text)


def _interpreter_words(words: Iterator[str]) -> Iterator[str]:
    """Python's own options up to and including the script or module."""
    for word in words:
        if word == "--check-hash-based-pycs":
            yield from (word, next(words, ""))
        elif word.startswith("--") or not word.startswith("-") or word == "-":
            yield word
            if not word.startswith("--"):
                return
        else:
            letter, joined = taking_value(word)
            value = joined or (next(words, "") if letter else "")
            value = HIDDEN if letter == "c" and value else value
            yield from (word.removesuffix(joined) + value,) if joined or not value else (word, value)
            if letter in ("c", "m"):
                return


def taking_value(word: str) -> tuple[str, str]:
    """Of Python's options, which stand in a row: the one that takes a value, and the value if it follows at once."""
    for place, letter in enumerate(word[1:], 2):
        if letter in "cmWX":
            return letter, word[place:]
    return "", ""


def _option_name(word: str) -> str:
    """The name of an option, if it is one: a value may begin with a dash, or be joined to a letter (-pSECRET)."""
    name, equals, _ = word.partition("=")
    if _LONG_OPTION.fullmatch(name) and not Scanner().text(name).count(HIDDEN):
        return f"{name}={HIDDEN}" if equals else name
    if re.match(r"-[A-Za-z]", word):
        return word if len(word) == 2 else f"{word[:2]}{HIDDEN}"
    return word if word == "--" else HIDDEN


def _is_harmless(name: str, value: str) -> bool:
    if value == HIDDEN:
        return True
    if is_secret_name(name) and name != "PWD":
        return False
    if _PATHS.fullmatch(name):
        shape = _PATH
    elif _SETTINGS.fullmatch(name):
        shape = _SETTING
    elif _SWITCHES.fullmatch(name):
        shape = _SWITCH
    else:
        return False
    return bool(shape.fullmatch(value)) and Scanner().text(value) == value
