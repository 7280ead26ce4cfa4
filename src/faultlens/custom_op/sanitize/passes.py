"""Which sanitizers there are, what each needs, and how the program is run for those that share a pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from faultlens.custom_op.sanitize import tools
from faultlens.custom_op.sanitize.tools import Tool
from faultlens.guard_alloc.hunting import HuntOptions


class Sanitizer(NamedTuple):
    says: str
    tools: tuple[Tool, ...] = ()
    needs_source: bool = False
    together: str = ""  # those of the same name share a pass
    needs_tensorflow: bool = False
    needs_cuda: bool = False


# Tools of compute-sanitizer, with what they are told beyond the default.
# Allocations lie side by side; the padding keeps them apart.
_OF_CUDA = {"memcheck": ("--leak-check=full", "--padding=1024"), "racecheck": (), "initcheck": (), "synccheck": ()}
SANITIZERS = {
    "malloc": Sanitizer("checks of the C library's allocator", (tools.MALLOC_DEBUG,)),
    "fence": Sanitizer("some blocks are put between guards, as by `faultlens run --hunt`"),
    "gwp-asan": Sanitizer("an allocator that watches some of its blocks", (tools.SCUDO,)),
    "asan": Sanitizer(
        "AddressSanitizer and its leak check", (tools.COMPILER, tools.ASAN, tools.STDCXX), True, "checked"
    ),
    "ubsan": Sanitizer("UndefinedBehaviorSanitizer", (tools.COMPILER, tools.UBSAN), True, "checked"),
    "outputs": Sanitizer("elements of outputs that the op never writes", (tools.COMPILER,), False, "checked", True),
    "tsan": Sanitizer("ThreadSanitizer: data races", (tools.COMPILER, tools.TSAN), True),
    "valgrind": Sanitizer("valgrind, the last resort: minutes", (tools.COMPILER, tools.VALGRIND)),
    **{
        name: Sanitizer(f"compute-sanitizer's {name}", (tools.COMPUTE_SANITIZER,), needs_cuda=True) for name in _OF_CUDA
    },
}
WITH_SOURCE = ("asan", "ubsan", "outputs")
WITHOUT_SOURCE = ("malloc", "fence")
WITH_CUDA = ("memcheck",)
OURS = "LD_PRELOAD"
ENDED_BY_IT = 86  # the exit code of a program that a sanitizer ends, or that leaks
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
    "protect_shadow_gap": 0,  # CUDA maps memory there
    "exitcode": ENDED_BY_IT,
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
_UBSAN = {"print_stacktrace": 1}
_GWP_ASAN = {"Enabled": 1, "SampleRate": 50, "MaxSimultaneousAllocations": 4096}
_VALGRIND = (
    "-q", "--xml=yes", "--error-limit=no", "--child-silent-after-fork=yes", "--num-callers=30", "--leak-check=full",
    "--errors-for-leak-kinds=definite",
)  # fmt: skip
# In the interpreter's own pools nobody looks for pointers: what only Python objects hold would count as lost.
_PLAIN_PYTHON = {"PYTHONMALLOC": "malloc"}
_COMPUTE_SANITIZER = ("--strip-paths=no", "--print-limit=1000", "--check-exit-code=no")

# Its pool keeps what is freed, and hands it out again unseen.
_WITHOUT_POOL = {"TF_ENABLE_ONEDNN_OPTS": "0"}
# So do those of GPU memory: one allocation holds many tensors, and nobody sees one reach into the next.
_WITHOUT_GPU_POOL = {"TF_GPU_ALLOCATOR": "cuda_malloc_async", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


@dataclass(frozen=True)
class Setting:
    """How a program is run for one pass."""

    libraries: tuple[Path, ...] = ()  # preloaded
    variables: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()  # words in front of the command
    hunt: HuntOptions | None = None
    agent: bool = False  # sanitizers look at deaths themselves

    def environment(self, guest: Mapping[str, str], present: Mapping[str, str]) -> dict[str, str]:
        """`guest`: what the library that brings in the sanitized build is to know, itself as LD_PRELOAD."""
        first, last = guest.get(OURS), present.get(OURS)
        preloaded = [*([first] if first else []), *map(str, self.libraries), *([last] if last else [])]
        variables = {**_WITHOUT_POOL, **guest, **self.variables}
        return {**variables, OURS: ":".join(preloaded)} if preloaded else variables


def grouped(sanitizers: Iterable[str]) -> list[tuple[str, ...]]:
    """Those that share a run of the program, the cheapest first."""
    passes: dict[str, list[str]] = {}
    for name in sorted(sanitizers, key=list(SANITIZERS).index):
        passes.setdefault(SANITIZERS[name].together or name, []).append(name)
    return [tuple(names) for names in passes.values()]


def setting(names: Sequence[str], found: Mapping[Tool, Path], log: Path) -> Setting:
    match names[0]:
        case "malloc":
            variables = {"MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}
            return Setting((found[tools.MALLOC_DEBUG],), variables, agent=True)
        case "fence":
            return Setting(hunt=HuntOptions(tensors=True), agent=True)
        case "gwp-asan":
            watched = ":".join(f"GWP_ASAN_{name}={value}" for name, value in _GWP_ASAN.items())
            return Setting((found[tools.SCUDO],), {"SCUDO_OPTIONS": watched}, agent=True)
        case "valgrind":
            before = (str(found[tools.VALGRIND]), *_VALGRIND, f"--xml-file={log}/valgrind.%p")
            return Setting(variables=_PLAIN_PYTHON, before=before)
        case name if name in _OF_CUDA:
            words = (*_COMPUTE_SANITIZER, f"--tool={name}", *_OF_CUDA[name], f"--log-file={log}/computesan.%p")
            return Setting(variables=_WITHOUT_GPU_POOL, before=(str(found[tools.COMPUTE_SANITIZER]), *words))
        case "tsan":
            return Setting((found[tools.TSAN],), {"TSAN_OPTIONS": _options(_TSAN, f"{log}/tsan")})
    libraries = [found[tools.ASAN]] if "asan" in names else []
    libraries += [found[tools.UBSAN]] if "ubsan" in names else []
    # Without it the first C++ exception dies: the sanitizer looks for what throws when it begins.
    libraries += [found[tools.STDCXX]] if "asan" in names else []
    # Of the two, AddressSanitizer believes the path in the other one's options.
    options = {"ASAN_OPTIONS": _options(_ASAN, f"{log}/asan"), "UBSAN_OPTIONS": _options(_UBSAN, f"{log}/asan")}
    return Setting(tuple(libraries), {**options, **_PLAIN_PYTHON} if "asan" in names else options)


def _options(values: Mapping[str, int], path: str) -> str:
    return ":".join([*(f"{name}={value}" for name, value in values.items()), f"log_path={path}"])
