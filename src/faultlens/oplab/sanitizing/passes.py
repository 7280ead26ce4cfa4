"""The ladder: which rungs there are, what each needs, and how the program is run for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from faultlens.capture.fence.hunting import Wish
from faultlens.oplab.sanitizing import tools
from faultlens.oplab.sanitizing.tools import Tool


class Rung(NamedTuple):
    says: str
    tools: tuple[Tool, ...] = ()
    needs_source: bool = False
    together: str = ""  # rungs of the same name take one run
    needs_tensorflow: bool = False


RUNGS = {
    "malloc": Rung("checks of the C library's allocator", (tools.MALLOC_DEBUG,)),
    "fence": Rung("some blocks are put between guards, as by `faultlens run --hunt`"),
    "gwp-asan": Rung("an allocator that watches some of its blocks", (tools.SCUDO,)),
    "asan": Rung("AddressSanitizer and its leak check", (tools.COMPILER, tools.ASAN, tools.STDCXX), True, "checked"),
    "ubsan": Rung("UndefinedBehaviorSanitizer", (tools.COMPILER, tools.UBSAN), True, "checked"),
    "outputs": Rung("elements of outputs that the op never writes", (tools.COMPILER,), False, "checked", True),
    "tsan": Rung("ThreadSanitizer: data races", (tools.COMPILER, tools.TSAN), True),
    "valgrind": Rung("valgrind, the last resort: minutes", (tools.COMPILER, tools.VALGRIND)),
}
WITH_SOURCE = ("asan", "ubsan", "outputs")
WITHOUT_SOURCE = ("malloc", "fence")
OURS = "LD_PRELOAD"
_ASAN = {
    "detect_leaks": 1,
    "detect_stack_use_after_return": 1,
    "halt_on_error": 0,
    "abort_on_error": 0,
    "allocator_may_return_null": 1,  # as malloc does: TensorFlow answers it with an exception
    "alloc_dealloc_mismatch": 0,  # code without checks is full of it
    "new_delete_type_mismatch": 0,
    "verify_asan_link_order": 0,  # the guest comes first
    # 2: and nobody else may, as faulthandler would.
    "handle_segv": 2,
    "handle_sigbus": 2,
    "handle_sigfpe": 2,
    "handle_sigill": 2,
    "handle_abort": 2,
    "exitcode": 0,
}
_TSAN = {
    "ignore_noninstrumented_modules": 1,
    "report_signal_unsafe": 0,
    "report_thread_leaks": 0,
    "report_destroy_locked": 0,
    "report_mutex_bugs": 0,
    "halt_on_error": 0,
    "history_size": 7,
    "exitcode": 0,
}
# Its pool keeps what is freed, and hands it out again unseen.
_WITHOUT_POOL = {"TF_ENABLE_ONEDNN_OPTS": "0"}


@dataclass(frozen=True)
class Setting:
    """How a program is run for one pass."""

    variables: Mapping[str, str]
    before: tuple[str, ...] = ()  # words in front of the command
    hunt: Wish | None = None
    agent: bool = False  # the sanitizers look at deaths themselves


def grouped(rungs: Iterable[str]) -> list[tuple[str, ...]]:
    """Rungs that share a run, in the order of the ladder."""
    passes: dict[str, list[str]] = {}
    for name in sorted(rungs, key=list(RUNGS).index):
        passes.setdefault(RUNGS[name].together or name, []).append(name)
    return [tuple(names) for names in passes.values()]


def setting(
    names: Sequence[str], found: Mapping[Tool, Path], own: Mapping[str, str], log: Path, environment: Mapping[str, str]
) -> Setting:
    """`own`: variables for the guest, with itself under LD_PRELOAD."""
    if names == ("malloc",):
        preload = _preload([found[tools.MALLOC_DEBUG]], environment)
        return Setting({**preload, "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165", **_WITHOUT_POOL}, agent=True)
    if names == ("fence",):
        return Setting(_WITHOUT_POOL, hunt=Wish(tensors=True), agent=True)
    if names == ("gwp-asan",):
        watched = {"Enabled": 1, "SampleRate": 50, "MaxSimultaneousAllocations": 4096}
        options = ":".join(f"GWP_ASAN_{name}={value}" for name, value in watched.items())
        return Setting(
            {**_preload([found[tools.SCUDO]], environment), "SCUDO_OPTIONS": options, **_WITHOUT_POOL}, agent=True
        )
    guest = Path(own[OURS])
    variables = {**own, **_WITHOUT_POOL}
    if names == ("valgrind",):
        words = [str(found[tools.VALGRIND]), "--xml=yes", f"--xml-file={log}/valgrind.%p", "--error-limit=no", "-q"]
        words += ["--child-silent-after-fork=yes", "--num-callers=30", "--errors-for-leak-kinds=definite"]
        variables |= {**_preload([guest], environment), "PYTHONMALLOC": "malloc"}
        return Setting(variables, (*words, "--leak-check=full"))
    if names == ("tsan",):
        variables |= {
            **_preload([guest, found[tools.TSAN]], environment),
            "TSAN_OPTIONS": _options(_TSAN, f"{log}/tsan"),
        }
        return Setting(variables)
    libraries = [guest]
    libraries += [found[tools.ASAN]] if "asan" in names else []
    libraries += [found[tools.UBSAN]] if "ubsan" in names else []
    # Without it the first C++ exception dies: the sanitizer looks for what throws when it begins.
    libraries += [found[tools.STDCXX]] if "asan" in names else []
    # Of the two, AddressSanitizer believes the path in the other one's options.
    ubsan = {"print_stacktrace": 1}
    variables |= {"ASAN_OPTIONS": _options(_ASAN, f"{log}/asan"), "UBSAN_OPTIONS": _options(ubsan, f"{log}/asan")}
    return Setting({**variables, **_preload(libraries, environment)})


def _options(values: Mapping[str, int], path: str) -> str:
    return ":".join([*(f"{name}={value}" for name, value in values.items()), f"log_path={path}"])


def _preload(libraries: Sequence[Path], environment: Mapping[str, str]) -> dict[str, str]:
    before = environment.get(OURS, "")
    return {OURS: ":".join([*map(str, libraries), *([before] if before else [])])}
