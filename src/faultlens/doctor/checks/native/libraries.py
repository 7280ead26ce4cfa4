from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from faultlens.doctor.check import Check, fix
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Examination, Finding
from faultlens.system.loader import Fault, Process
from faultlens.target_env.distributions import Distribution
from faultlens.target_env.loading import OPTIONAL, Loading, LoadingError, Refusal, describe, needs, newest
from faultlens.target_env.target import TargetEnvironment

# Libraries of the system that wheels count on, and the packages of Debian and Ubuntu that bring them.
_DEBIAN = {
    "libgomp.so.1": "libgomp1", "libstdc++.so.6": "libstdc++6", "libgcc_s.so.1": "libgcc-s1", "libz.so.1": "zlib1g",
    "libcrypt.so.1": "libcrypt1", "libssl.so.3": "libssl3", "libcrypto.so.3": "libssl3", "libffi.so.8": "libffi8",
    "libbz2.so.1.0": "libbz2-1.0", "liblzma.so.5": "liblzma5", "libgfortran.so.5": "libgfortran5",
    "libopenblas.so.0": "libopenblas0", "libexpat.so.1": "libexpat1", "libuuid.so.1": "libuuid1",
    "libsqlite3.so.0": "libsqlite3-0", "libomp.so.5": "libomp5",
}  # fmt: skip
_CPP = ("GLIBCXX_", "CXXABI_")
SHOWN = 3


class Libraries(Check):
    """
    Looks at the libraries that the extension modules of TensorFlow, NumPy and what stands under them need: which file
    the loader would take for each, in the order of an import, and whether that file has the symbol versions
    (GLIBC, GLIBCXX, CXXABI) that they ask for. A library that is missing, damaged or too old is an ImportError.

    The loader's rules are followed without running it, and the files compared with those that `import tensorflow`
    really loaded: the same for 2.12 to 2.21, and for some of them with torch, search paths and preloaded libraries.
    One case differed: the loader also refuses a module for a symbol that nobody defines, which is looked at only for
    libraries that a variable brings. What only LD_LIBRARY_PATH or LD_PRELOAD breaks is told by `shadowing` and
    `preload`. Libraries that are loaded on demand (CUDA, TPU, plugins) are not judged here.
    """

    name = "libraries"
    looks_at = "libraries and symbol versions that TensorFlow and what it stands on need, against those there are"
    position = 40
    causes = ("wrong-library-loaded",)

    def examine(self, target: TargetEnvironment) -> Examination:
        try:
            loading, undisturbed = target.loading, target.undisturbed_loading
        except LoadingError as reason:
            return self.skipped(str(reason))
        count = sum(bool(module.package) for module in loading.modules)
        if not count:
            return self.skipped("neither TensorFlow nor NumPy is installed")
        refusals = in_any_case(loading, undisturbed)
        spared = [each for each in refusals if each.module.package in OPTIONAL]
        missed = [f"{each.module.package} goes on in Python: {describe(each.fault)}" for each in spared]
        return self.judged(
            (self._finding(target, group) for group in _groups(each for each in refusals if each not in spared)),
            f"{count - len(spared)} modules find their libraries{_versions(undisturbed.process)}",
            [*missed, *_details(undisturbed)],
        )

    def _finding(self, target: TargetEnvironment, group: list[Refusal]) -> Finding:
        first, fault = group[0], group[0].fault
        others = f" and {len(group) - 1} more files" if len(group) > 1 else ""
        forbidden = _forbidden(target, fault)
        title = (f"{forbidden.name} may not be read" if forbidden else describe(fault)) + others
        evidence = [(needs(each.fault), "ELF dynamic section") for each in group[:SHOWN]]
        if forbidden:
            evidence.append((f"{forbidden} may not be read by this user", "permissions"))
        elif fault.taken:
            evidence.append((f"the loader would take {os.path.normpath(fault.taken)}", "search order of the loader"))
        else:
            evidence.append((f"no {fault.name} where the loader looks", "search order of the loader"))
        told = self.error if first.module.is_required else self.warning
        if not first.module.is_required:
            title = f"import {first.module.package} fails: {title}"
        allow = [fix("let everyone read it", shlex.join(("chmod", "a+r", str(forbidden))))] if forbidden else None
        return told(title, evidence, allow or _fixes(target, fault))


def in_any_case(loading: Loading, undisturbed: Loading) -> list[Refusal]:
    """What variables mend is no fault, and what only they break is told by other checks. The standard library
    does without the modules that cannot be loaded."""
    now = {refusal.fault for refusal in loading.refusals}
    return [each for each in undisturbed.refusals if each.fault in now and each.module.package]


def _groups(refusals: Iterable[Refusal]) -> list[list[Refusal]]:
    """One group for each library that does not do; files that a required module needs come first."""
    groups: dict[tuple[str, str], list[Refusal]] = {}
    for refusal in sorted(refusals, key=lambda refusal: not refusal.module.is_required):
        groups.setdefault((refusal.fault.kind, refusal.fault.name), []).append(refusal)
    return list(groups.values())


# ------------------------------------------------------------------------------------------------------------ fixes


def _fixes(target: TargetEnvironment, fault: Fault) -> Iterator[Fix]:
    owner = _owner(target, fault.taken or fault.name if fault.kind != "version" else fault.by)
    if fault.kind != "version" and owner:
        file = Path(fault.name).name
        yield fix(f"install {owner.name} again: {file} is one of its files", _again(target, owner))
        return
    if fault.kind == "missing" and (copy := _copy(target, fault.name)):
        yield fix(f"show the loader {copy}", f"export LD_LIBRARY_PATH={shlex.quote(str(copy.parent))}", safe=False)
    if any(version.startswith("GLIBC_") for version in fault.versions):
        python = ".".join(map(str, (target.interpreter.version or (3,))[:2]))
        needed = newest(fault.versions).removeprefix("GLIBC_")
        yield fix(
            f"use a system with glibc {needed} or newer",
            f'docker run --rm -it -v "$PWD":/here -w /here python:{python} bash',
            "glibc cannot be replaced in a running system",
            safe=False,
        )
    else:
        yield _from_system(target, fault)
    if owner:
        yield fix(
            f"or install a build of {owner.name} for older systems",
            f"{target.interpreter.pip} install '{owner.name}<{owner.version}'",
            safe=False,
        )


def _from_system(target: TargetEnvironment, fault: Fault) -> Fix:
    conda = (Path(target.interpreter.prefix) / "conda-meta").is_dir()
    if conda and any(version.startswith(_CPP) for version in fault.versions):
        return fix("install a newer libstdc++", "conda install -c conda-forge libstdcxx-ng")
    name = fault.name
    if re.search("debian|ubuntu", target.machine.distribution or "", re.IGNORECASE):
        package = _DEBIAN.get(name)
        verb = "apt-get install --only-upgrade" if fault.kind == "version" else "apt-get install"
        return (
            fix(f"install {package}", f"{verb} {package}")
            if package
            else fix(f"install the package that brings {name}", f"apt-file search {name}", safe=False)
        )
    return fix(f"install the package that brings {name}", f"dnf install '{name}()(64bit)'", safe=False)


def _owner(target: TargetEnvironment, file: str) -> Distribution | None:
    """The package whose list of files has it."""
    path = Path(os.path.normpath(file))
    for each in target.distributions:
        listed = [entry for entry in each.files if entry.endswith(f"/{path.name}")]
        if any("/" not in file or each.folder / entry == path for entry in listed):
            return each
    return None


def _again(target: TargetEnvironment, owner: Distribution) -> str:
    return f"{target.interpreter.pip} install --force-reinstall --no-deps {owner.name}=={owner.version}"


def _forbidden(target: TargetEnvironment, fault: Fault) -> Path | None:
    """The library among the packages that the loader passes over because this user may not read it."""
    if fault.kind != "missing":
        return None
    alike = [path for path in target.native_files if path.name == Path(fault.name).name]
    return next(
        (path for path in alike if os.path.exists(path) and not os.access(path, os.R_OK, effective_ids=True)), None
    )


def _copy(target: TargetEnvironment, name: str) -> Path | None:
    return next((path for path in target.dynamics if path.name == name), None)


# ---------------------------------------------------------------------------------------------------------- wording


def _versions(process: Process) -> str:
    """What of glibc and libstdc++ is there: ": glibc 2.36, GLIBCXX_3.4.30"."""
    found = []
    for library, prefix, label in (("libc.so.6", "GLIBC_", "glibc "), ("libstdc++.so.6", "GLIBCXX_", "GLIBCXX_")):
        taken = process.find(library)
        numbered = [each for each in (taken.dynamic.offers_versions if taken else ()) if each.startswith(prefix)]
        if numbered:
            found.append(label + newest(numbered).removeprefix(prefix))
    return ": " + ", ".join(found) if found else ""


def _details(loading: Loading) -> Iterator[str]:
    modules = {str(module.path) for module in loading.modules}
    for library in loading.process.libraries:
        if library.path not in modules:
            yield f"{library.name}: {library.path} ({library.via})"
    for refusal in loading.refusals:
        if not refusal.module.package:
            yield f"{refusal.module.path.name} of the standard library: {describe(refusal.fault)}"
