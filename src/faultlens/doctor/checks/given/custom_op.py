from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from faultlens.doctor.check import Check, fix
from faultlens.doctor.replacement import replacement
from faultlens.errors import FaultlensError
from faultlens.inspection.symbols import demangle
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import NOT_GIVEN, Examination, Finding
from faultlens.system.elf import ElfError
from faultlens.system.loader import Fault
from faultlens.target_env.imports import hidden_folders
from faultlens.target_env.op_library import (  # fmt: skip
    EVERYTHING,
    FRAMEWORK,
    OF_TENSORFLOW,
    Build,
    Interface,
    Loading,
    OpLibrary,
    Program,
    build_of,
    build_words,
    interface_of,
    read_op,
)
from faultlens.target_env.target import TargetEnvironment
from faultlens.text.safe import one_line

# The release of Abseil in the names of each TensorFlow, read from its wheels.
RELEASES = {
    "lts_20220623": "2.12",
    "lts_20230125": "2.13 to 2.15",
    "lts_20230802": "2.16 to 2.19",
    "lts_20250127": "2.20",
    "lts_20250814": "2.21",
}
# These report what does not load, and fail only when it is used.
FORGIVING = ("tensorflow_io", "tensorflow_io_gcs_filesystem")
SANITIZERS = {"libasan.so": "AddressSanitizer", "libtsan.so": "ThreadSanitizer"}
_OLD_STRING = re.compile(r"\bstd::(?:string|basic_string)\b(?!_view)")
_SHOWN = 3


class CustomOp(Check):
    """Whether the custom op libraries that are named (`--op`) or installed would be loaded by this TensorFlow.

    `tf.load_op_library` resolves all symbols of a library at once (RTLD_NOW, measured: also functions that are never
    called), so one name that nobody defines ends in NotFoundError. A library may bind to the program, to what it is
    linked with, and from TensorFlow 2.19 on to everything that `import tensorflow` brought. Each name is looked up
    in the hash tables of those files; nothing is loaded.

    Names that are missing tell why: `std::string` in the old C++ ABI, another release of Abseil (each TensorFlow has
    its own in its names), or functions that this release does not have. 15 ops and the packages tensorflow-text,
    -io and -addons had all of TensorFlow's names under the release they were built for, and not under others."""

    name = "custom-op"
    looks_at = "custom op libraries (--op, and installed ones) against the installed TensorFlow"
    position = 90
    causes = ("custom-op-abi-mismatch",)

    def examine(self, target: TargetEnvironment) -> Examination:
        for path in target.options.ops:
            if not path.is_file():
                what = f"{path} is not a file" if path.exists() else f"There is no file {path}"
                raise FaultlensError(f"{what}.", "--op takes the library of a custom op.")
        return self._examine(target, _installed(target))

    def examine_named(self, target: TargetEnvironment) -> Examination:
        """The libraries that were named, and no others."""
        return self._examine(target, {})

    def _examine(self, target: TargetEnvironment, installed: Mapping[str, Sequence[Path]]) -> Examination:
        if not target.options.ops and not installed:
            return self.skipped(f"{NOT_GIVEN} (--op)")
        if target.tensorflow is None:
            return self.skipped("there is no TensorFlow in this environment to compare with")
        try:
            interface, program = interface_of(target.tensorflow), Program(target, target.tensorflow)
        except (OSError, ElfError) as error:
            return self.skipped(one_line(f"TensorFlow's libraries cannot be read: {error}", 160))
        if program.faults:
            return self.skipped(f"TensorFlow itself would not be loaded: {_fault(program.faults[0])}")
        readable, findings = self._read(target.options.ops)
        given = program.load(readable)
        for loading in given:
            findings += self._judge(loading, interface, target)
        packages = {name: program.load(_readable(paths)) for name, paths in installed.items()}
        for name, loadings in packages.items():
            findings += self._judge_package(name, loadings, interface, target)
        return self.judged(findings, _summary(given, packages, interface), _details(given, interface))

    def _read(self, paths: Iterable[Path]) -> tuple[list[OpLibrary], list[Finding]]:
        libraries, findings = [], []
        for path in paths:
            try:
                libraries.append(read_op(path))
            except (OSError, ElfError) as error:
                why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                findings.append(
                    self.error(
                        one_line(f"{path.name} cannot be loaded: {why}", 160),
                        [(why, str(path))],
                        [fix("build it again for x86-64 Linux", "g++ -shared -fPIC …", safe=False)],
                    )
                )
        return libraries, findings

    def _judge(self, loading: Loading, interface: Interface, target: TargetEnvironment) -> Iterator[Finding]:
        library, name = loading.library, loading.library.path.name
        sanitizer = _sanitizer(library, target.variables.get("LD_PRELOAD", ""))
        if sanitizer:
            file, tool = sanitizer
            preload = f'LD_PRELOAD="$(g++ -print-file-name={file}) $(g++ -print-file-name=libstdc++.so)"'
            yield self.error(
                f"{name} was built with {tool}, whose runtime is not preloaded",
                [(f"it needs {file}, which must be the first library of the program", "its list of libraries")],
                [
                    fix("preload the runtime", f"{preload} {target.interpreter.executable} …"),
                    fix("build it without the sanitizer", _build_command(library.path, interface)),
                ],
            )
        for fault in loading.faults:
            if not sanitizer or fault.name != sanitizer[0]:
                yield self.error(
                    f"{name} cannot be loaded: {_fault(fault)}",
                    [(_fault(fault), f"the loader's search for {Path(fault.by).name}")],
                    [_fix_fault(fault, library, interface)],
                )
        if loading.missing:
            yield self.error(
                one_line(_mismatch(name, [loading], interface), 200),
                _evidence([loading], interface),
                [_fix_missing(loading, interface)],
            )

    def _judge_package(
        self, name: str, loadings: Sequence[Loading], interface: Interface, target: TargetEnvironment
    ) -> Iterator[Finding]:
        """Some packages bring several builds of a library and take the one that loads: only TensorFlow's own names
        count, and libraries that are missing do not."""
        broken = [
            Loading(each.library, missing=own)
            for each in loadings
            if (own := tuple(name for name in each.missing if OF_TENSORFLOW.search(name)))
        ]
        if not broken:
            return
        project = name.replace("_", "-")
        distribution = target.distribution(project)
        title = f"{name} {distribution.version}" if distribution else name
        release = ".".join(interface.version.split(".")[:2])
        because = f"the release of it that fits TensorFlow {interface.version}"
        # Only tensorflow-text counts its releases as TensorFlow does.
        cure = replacement(target, project, f"=={release}.*", because) if project == "tensorflow-text" else None
        command = f"{target.interpreter.pip} install --upgrade {project}"
        make = self.warning if name in FORGIVING else self.error
        yield make(
            one_line(_mismatch(title, broken, interface), 200),
            [(f"{len(broken)} of its {len(loadings)} libraries would not be loaded", "symbol tables")]
            + _evidence(broken, interface),
            [cure.fix if cure else fix(f"install {because}", command)],
            repair=cure.repair if cure else None,
        )


# ------------------------------------------------------------------------------------------------------- facts


def _installed(target: TargetEnvironment) -> dict[str, list[Path]]:
    """Libraries of other packages that are linked with TensorFlow, by package. Another copy of a package, TensorFlow
    among them, that is hidden behind the one an import finds is not loaded."""
    linked = [path for path, dynamic in target.dynamics.items() if FRAMEWORK in dynamic.needed]
    hidden = hidden_folders(linked, target.interpreter.path)
    found: dict[str, list[Path]] = {}
    for path in linked:
        folder = next((each for each in map(Path, target.interpreter.path) if each in path.parents), path.parent)
        package = path.relative_to(folder).parts[0]
        if package != "tensorflow" and folder / package not in hidden:
            found.setdefault(package, []).append(path)
    return found


def _readable(paths: Iterable[Path]) -> Iterator[OpLibrary]:
    for path in paths:
        try:
            yield read_op(path)
        except (OSError, ElfError):
            continue


def _sanitizer(library: OpLibrary, preload: str) -> tuple[str, str] | None:
    """(file, name) of a sanitizer that it needs and nobody preloads."""
    for needed in library.needed:
        for begin, tool in SANITIZERS.items():
            if needed.startswith(begin) and begin.removesuffix(".so") not in preload:
                return needed, tool
    return None


# ---------------------------------------------------------------------------------------------------- judgement


def _mismatch(name: str, loadings: Sequence[Loading], interface: Interface) -> str:
    """Why names are missing, in one line."""
    missing = list(dict.fromkeys(symbol for loading in loadings for symbol in loading.missing))
    elsewhere = {symbol for loading in loadings for symbol in loading.elsewhere}
    readable = [demangle(symbol) for symbol in missing]
    flag = 1 - interface.cxx11 if interface.cxx11 is not None else None
    other = next((absl for loading in loadings for absl in loading.library.absl if absl != interface.absl), None)
    if flag == 0 and any(_OLD_STRING.search(each) for each in readable):
        return f"{name} was built with _GLIBCXX_USE_CXX11_ABI=0, TensorFlow {interface.version} with 1"
    if flag == 1 and any("__cxx11::" in each or "[abi:cxx11]" in each for each in readable):
        return f"{name} was built with _GLIBCXX_USE_CXX11_ABI=1, TensorFlow {interface.version} with 0"
    if other and interface.absl and any(OF_TENSORFLOW.search(each) for each in missing):
        built = f"TensorFlow {RELEASES[other]} (absl {other})" if other in RELEASES else f"absl {other}"
        return f"{name} was built for {built}; the installed {interface.version} has {interface.absl}"
    if any(symbol.startswith(("cuda", "__cuda")) for symbol in missing):
        return f"{name} needs the CUDA runtime, which TensorFlow {interface.version} does not bring"
    if elsewhere.issuperset(missing):
        return f"{name} uses {readable[0]}{_more(missing)}, and is not linked with {EVERYTHING}"
    if any(OF_TENSORFLOW.search(each) for each in missing):
        return f"{name} was built for another TensorFlow: {interface.version} has no {readable[0]}{_more(missing)}"
    return f"{name} needs {readable[0]}{_more(missing)}, which none of its libraries defines"


def _more(names: Sequence[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _evidence(loadings: Sequence[Loading], interface: Interface) -> list[tuple[str, str]]:
    missing = list(dict.fromkeys(symbol for loading in loadings for symbol in loading.missing))
    absl = sorted({each for loading in loadings for each in loading.library.absl})
    facts = [(f"nobody defines {one_line(demangle(symbol), 160)}", "its symbol table") for symbol in missing[:_SHOWN]]
    if len(missing) > _SHOWN:
        facts.append((f"nor {len(missing) - _SHOWN} other names", "its symbol table"))
    if absl and absl != [interface.absl]:
        facts.append((f"its names are those of absl {', '.join(absl)}", "its symbol table"))
        facts.append((f"TensorFlow {interface.version} has absl {interface.absl}", FRAMEWORK))
    return facts


def _fault(fault: Fault) -> str:
    by, name = (one_line(text, 80) for text in (Path(fault.by).name, fault.name))
    if fault.kind == "missing":
        return f"{by} needs {name}, which is not found"
    if fault.kind == "version":
        return f"{by} needs {one_line(', '.join(fault.versions[:_SHOWN]), 80)} of {name}, which {fault.taken} lacks"
    return f"{fault.taken or name} is damaged"


# -------------------------------------------------------------------------------------------------------- fixes


def _fix_missing(loading: Loading, interface: Interface) -> Fix:
    command = _build_command(loading.library.path, interface)
    if set(loading.elsewhere) == set(loading.missing):
        return fix(f"link it with {EVERYTHING}", f"{command} -l:{EVERYTHING}")
    return fix(f"build it again for TensorFlow {interface.version}", command)


def _fix_fault(fault: Fault, library: OpLibrary, interface: Interface) -> Fix:
    if fault.kind == "missing" and fault.name.startswith(("libtensorflow", "libcud", "libnv")):
        return fix(f"build it again for TensorFlow {interface.version}", _build_command(library.path, interface))
    if fault.kind == "missing":
        return fix(f"say where {fault.name} is", f"LD_LIBRARY_PATH=FOLDER_OF_{fault.name} …", safe=False)
    return fix("build it again on this machine", _build_command(library.path, interface))


def _build_command(path: Path, interface: Interface) -> str:
    stem = re.sub(r"^(?:lib|_)", "", path.name.partition(".so")[0])
    beside = (folder / f"{name}.cc" for folder in (path.parent, path.parent.parent) for name in (stem, path.stem))
    source = next((str(file) for file in beside if file.exists()), f"{stem}.cc")
    return shlex.join(["g++", *build_words([source], str(path), interface)])


# ------------------------------------------------------------------------------------------------------- saying


def _summary(given: Sequence[Loading], packages: dict[str, list[Loading]], interface: Interface) -> str:
    release = f"TensorFlow {interface.version}"
    if len(given) == 1 and not packages:
        library = given[0].library
        ops = "it registers ops" if library.registers_ops else "it registers no op by itself"
        return f"{library.path.name} fits {release}: all {len(library.wants)} names are found, {ops}"
    names = [each.library.path.name for each in given] + list(packages)
    fits = "fit" if len(names) > 1 else "fits"
    return one_line(f"{', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''} {fits} {release}", 90)


def _details(given: Sequence[Loading], interface: Interface) -> Iterator[str]:
    yield f"TensorFlow {interface.version}: absl {interface.absl}, _GLIBCXX_USE_CXX11_ABI={interface.cxx11}"
    for loading in given:
        library = loading.library
        try:
            build = build_of(library.path)
        except (OSError, ElfError):
            build = Build()
        yield one_line(f"{library.path}: needs {', '.join(library.needed) or 'no library'}", 300)
        if build.compiler:
            yield one_line(f"{library.path.name}: built by {build.compiler}", 200)
        if build.flags:
            yield one_line(f"{library.path.name}: built with {build.flags}", 300)
