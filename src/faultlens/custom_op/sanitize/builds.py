"""How the op, the library or the extension is built with checks in it."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faultlens.custom_op.building import CUDA, SECONDS, Target, build
from faultlens.custom_op.sanitize import tools
from faultlens.errors import FaultlensError
from faultlens.fs.state_dir import home
from faultlens.target_env.op_library import include_words

NATIVE = Path(__file__).parent / "native"
_SAID = 4000
DEBUG = ("-O1", "-g", "-fno-omit-frame-pointer", "-w")
# Left out: checks that do not compile with TensorFlow's headers (null), need type information that its libraries lack
# (vptr), or tell of what is done with empty tensors everywhere (pointer-overflow).
_NOT_CHECKED = "null,vptr,nonnull-attribute,returns-nonnull-attribute,pointer-overflow,object-size"
FLAGS = {
    "asan": ("-fsanitize=address", "-fsanitize-recover=address"),
    "ubsan": ("-fsanitize=undefined", f"-fno-sanitize={_NOT_CHECKED}"),
    "tsan": ("-fsanitize=thread",),
}
_FOR_NVCC = ("-I", "-D", "-U", "-std", "--std", "-l", "-L", "-isystem", "-arch", "-gencode", "--")
_LOCK = re.compile(r"Mutex|5mutex|nsync_mu", re.A)
_COMPUTE = re.compile(r"^_ZN(\w+?)(?:7Compute|12ComputeAsync)EP")
_WAIT = re.compile(
    r"Shard|ParallelFor|Schedule|Notification|BlockingCounter|CondVar|condition_variable\d*(wait|notify)|nsync_cv|"
    r"AwaitCommon|LockWhen|GOMP_|Barrier"
)


@dataclass(frozen=True)
class Recipe:
    """What is built, and for whom."""

    sources: tuple[Path, ...]
    python: str
    target: Target | None  # None: no op, but a plain library or an extension module
    flags: tuple[str, ...] = ()  # of the user

    @property
    def compiler(self) -> str:
        return "gcc" if all(source.suffix == ".c" for source in self.sources) else "g++"

    @property
    def host(self) -> tuple[Path, ...]:
        return tuple(source for source in self.sources if source.suffix != CUDA)

    @property
    def cuda(self) -> tuple[Path, ...]:
        return tuple(source for source in self.sources if source.suffix == CUDA)


def is_op(sources: Sequence[Path]) -> bool:
    return any(b"tensorflow/" in source.read_bytes() for source in sources)


def build_checked(recipe: Recipe, library: Path, flags: Sequence[str]) -> None:
    """Raises FaultlensError with what the compiler said."""
    objects, libraries = _kernels(recipe, library.parent)
    _compile(recipe, (*recipe.host, *objects), library, (*DEBUG, *flags, *libraries))


def build_for_races(recipe: Recipe, library: Path) -> None:
    """With what the sanitizer cannot see of TensorFlow: see native/happens_before.c."""
    objects, libraries = _kernels(recipe, library.parent)
    for number, source in enumerate(recipe.host):
        objects.append(library.with_name(f"{library.stem}.{number}.o"))
        _compile(recipe, (source,), objects[-1], (*DEBUG, *FLAGS["tsan"], "-c"))
    words, wrapped = synchronisation(_undefined(objects))
    order = library.with_name("happens_before.c")
    order.write_text((NATIVE / "happens_before.c").read_text() + words)
    _run(["gcc", "-O2", "-fPIC", "-c", str(order), "-o", str(order.with_suffix(".o"))], order)
    wraps = [f"-Wl,--wrap={name}" for name in wrapped]
    _compile(recipe, (*objects, order.with_suffix(".o")), library, (*FLAGS["tsan"], *wraps, *libraries))


def _kernels(recipe: Recipe, folder: Path) -> tuple[list[Path], tuple[str, ...]]:
    """Sources of CUDA as objects that know their lines, and what they are linked with."""
    if not recipe.cuda:
        return [], ()
    if (nvcc := tools.nvcc()) is None:
        raise FaultlensError(
            f"There is no nvcc here to build {recipe.cuda[0]}.", "It comes with NVIDIA's CUDA toolkit."
        )
    words = [str(nvcc), "-c", "-O1", "-lineinfo", "-std=c++17", "-arch=native", "--expt-relaxed-constexpr"]
    words += [f"-Xcompiler={flag}" for flag in ("-fPIC", *DEBUG)]
    if recipe.target:
        words += [*include_words(recipe.target.interface), "-DGOOGLE_CUDA=1"]
    words += [flag if flag.startswith(_FOR_NVCC) else f"-Xcompiler={flag}" for flag in recipe.flags]
    objects = []
    for number, source in enumerate(recipe.cuda):
        objects.append(folder / f"kernels.{number}.o")
        _run([*words, str(source), "-o", str(objects[-1])], source)
    folders = (f"-L{tools.cuda_home(nvcc) / name}" for name in ("lib64", "lib", "targets/x86_64-linux/lib"))
    return objects, (*folders, "-lcudart_static", "-lstdc++", "-lrt", "-ldl", "-lpthread")


def synchronisation(names: Sequence[str]) -> tuple[str, list[str]]:
    """C for the functions of others that bring order between threads, and the names to wrap."""
    lines, wrapped = [], ["__tsan_func_entry", "__tsan_func_exit"]
    for name in names:
        if name.startswith(("_ZT", "__tsan", "pthread_")):
            continue  # tables, and what the sanitizer knows by itself
        if _LOCK.search(name) and "ock" in name and not _WAIT.search(name):
            lines.append(f"{'UNLOCKS' if re.search('nlock', name) else 'LOCKS'}({name})\n")
        elif _WAIT.search(name):
            lines.append(f"WAITS({name})\n")
        else:
            continue
        wrapped.append(name)
    return "".join(lines), wrapped


def _undefined(objects: Sequence[Path]) -> list[str]:
    asked = subprocess.run(["nm", "-u", *map(str, objects)], capture_output=True, text=True)
    return sorted({words[-1] for line in asked.stdout.splitlines() if len(words := line.split()) == 2})


def marks_of(library: Path) -> dict[str, list[str]]:
    """What every build of the same sources has: names of the kernels' classes, or else of exported functions. By the
    variable that tells the guest."""
    asked = subprocess.run(["nm", "--defined-only", str(library)], capture_output=True, text=True)
    defined = [(words[1], words[2]) for line in asked.stdout.splitlines() if len(words := line.split()) == 3]
    kernels = {_class_name(found[1]) for _, name in defined if (found := _COMPUTE.match(name)) and "EZN" not in name}
    if kernels:
        return {"FAULTLENS_HAS": sorted(kernels)}
    exported = {name for kind, name in defined if kind == "T" and not name.startswith(("_init", "_fini", "__"))}
    return {"FAULTLENS_DEFINES": sorted(exported)}


def _class_name(nested: str) -> str:
    """As it stands in type information: "4MyOp", "N10tensorflow4MyOpE"."""
    length = re.match(r"\d+", nested)
    behind = nested[length.end() + int(length[0]) :] if length else nested
    return nested if behind == "" or behind.startswith("I") else f"N{nested}E"


def guest(folder: Path) -> Path:
    """The library that brings the sanitized build into the program."""
    library = folder / "libfaultlens_guest.so"
    _run(["gcc", "-O2", "-shared", "-fPIC", str(NATIVE / "guest.c"), "-o", str(library), "-ldl"], NATIVE / "guest.c")
    return library


def outputs(target: Target) -> Path:
    """The library that looks at outputs: built once for each TensorFlow, and kept."""
    source = NATIVE / "outputs.cc"
    content = hashlib.sha256(source.read_bytes() + str(target.interface).encode()).hexdigest()[:12]
    library = home() / "sanitizing" / f"outputs-{target.interface.version}-{content}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        fresh = library.with_suffix(".new")
        build([source], fresh, target, ("-w", "-Wno-pmf-conversions"))
        fresh.replace(library)
    return library


def _compile(recipe: Recipe, inputs: Sequence[Path], output: Path, flags: Sequence[str]) -> None:
    if recipe.target is not None:
        build(inputs, output, recipe.target, (*flags, *recipe.flags))
        return
    words = [recipe.compiler, "-shared", "-fPIC", *map(str, inputs), "-o", str(output)]
    _run([*words, f"-I{_include(recipe.python)}", *flags, *recipe.flags], inputs[0])


def _include(python: str) -> str:
    code = "import sysconfig; print(sysconfig.get_paths()['include'])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def _run(words: Sequence[str], source: Path) -> None:
    if shutil.which(words[0]) is None:
        raise FaultlensError(f"There is no {words[0]} here.", "On Debian: apt-get install g++")
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    if done.returncode:
        said = done.stderr.strip()[:_SAID] or f"exit status {done.returncode}"
        raise FaultlensError(f"{source} cannot be built: {said}", "Mend the source first.")
