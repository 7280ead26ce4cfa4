from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from faultlens.diagnosis import Fix
from faultlens.doctor.check import Check, fix
from faultlens.doctor.distributions import Distribution, in_folder
from faultlens.doctor.imports import would_import
from faultlens.doctor.installed_files import native_files
from faultlens.doctor.numpy_abi import NumpyUse, misfit, numpy_uses
from faultlens.doctor.patient import Patient
from faultlens.doctor.replacement import PACKAGE_FOLDERS, replacement
from faultlens.doctor.requirements import demand, needed_by
from faultlens.finding import Examination, Finding


class Group(NamedTuple):
    """The modules of one package, or one module that belongs to none."""

    name: str  # "ml-dtypes 0.3.2", "frames.so"
    package: Distribution | None
    uses: tuple[NumpyUse, ...]

    def misfit(self, numpy: str) -> str | None:
        """Why it cannot be used: none of its modules fits."""
        reasons = [misfit(use, numpy) for use in self.uses if use.built_for is not None]
        return reasons[0] if reasons and all(reasons) else None

    @property
    def nearest(self) -> list[NumpyUse]:
        """Those at the top of the package first: they are the ones that its import loads."""
        return sorted(self.uses, key=lambda use: len(use.path.parts))

    @property
    def needs(self) -> str | None:
        """The oldest NumPy that one of them accepts."""
        return min((use.needs for use in self.uses if use.needs), key=_order, default=None)


class NumpyAbi(Check):
    """
    Every compiled module that calls NumPy's C API was built with the headers of one NumPy. Those of NumPy 1 (TensorFlow
    up to 2.17 among them) cannot be used with NumPy 2: ImportError, or a crash through a null table of functions where
    the module ignores the error. Those of NumPy 2 work with both, down to a release that stands in the module.

    What is read are the texts that NumPy's headers leave in the modules. Modules for another Python and libraries above
    48 MB are left out (`--deep` reads the latter too). It is an error where TensorFlow needs the package or where the
    module is your own, a warning where another package has it. A package of which some modules fit is a detail: it
    chooses among them (h5py has a module for NumPy 2 and does without it on NumPy 1). So is old pybind11: most of it
    still works.
    """

    name = "numpy-abi"
    looks_at = "which NumPy each compiled module was built for, against the installed one"
    position = 24
    causes = ("numpy-abi-mismatch",)

    def examine(self, patient: Patient) -> Examination:
        numpy = would_import("numpy", patient.interpreter.path)
        if numpy is None or numpy.kind != "package":
            return self.skipped("NumPy is not installed")
        package = next((each for each in in_folder(numpy.entry) if each.key == "numpy"), None)
        if package is None:
            return self.skipped(f"the version of {numpy.place} is unknown: it has no metadata")
        files = [path for path in loadable(patient) if numpy.place not in path.parents]
        uses = numpy_uses(files, deep=patient.wishes.deep)
        misfits = [use for use in uses if misfit(use, package.version)]
        groups = grouped(uses, owners(patient)) if misfits else ()
        unusable = [group for group in groups if group.misfit(package.version)]
        spared = [use for group in groups if group not in unusable for use in group.uses if use in misfits]
        details = [f"{use.path.name} {misfit(use, package.version)}; its package does without it" for use in spared]
        summary = f"all {len(uses) - len(spared)} compiled modules that use NumPy fit {package.version}"
        findings = self._findings(patient, package, groups, unusable)
        return self.judged(findings, summary, [*details, *old_pybind11(uses, package.version)])

    def _findings(
        self, patient: Patient, numpy: Distribution, groups: tuple[Group, ...], unusable: list[Group]
    ) -> Iterable[Finding]:
        needed = needed_by(patient.tensorflow.distribution, patient) if patient.tensorflow else frozenset()
        grave = [group for group in unusable if group.package is None or group.package.key in needed]
        wanted = fitting_numpy(groups, self._declared(patient))
        cure = replacement(patient, "numpy", wanted, "all compiled modules here fit it") if wanted else None
        for group in unusable:
            evidence = [(f"{use.path.name} {misfit(use, numpy.version)}", str(use.path)) for use in group.nearest[:3]]
            tell = self.error if group in grave else self.warning
            yield tell(
                f"{group.name} {group.misfit(numpy.version)}, not for the installed {numpy.version}",
                [*evidence, (f"numpy {numpy.version}", str(numpy.metadata))],
                ((cure.fix,) if cure else ()) + (self._rebuilt(patient, group),),
                repair=cure.repair if cure else None,
            )

    @staticmethod
    def _rebuilt(patient: Patient, group: Group) -> Fix:
        if group.package is None:
            return fix(f"build {group.name} again, with the NumPy that is installed", safe=False)
        command = f"{patient.interpreter.pip} install --upgrade {group.package.key}"
        return fix(f"install a build of {group.package.key} that fits", command, safe=False)

    @staticmethod
    def _declared(patient: Patient) -> SpecifierSet:
        """What TensorFlow itself asks for."""
        if patient.tensorflow is None:
            return SpecifierSet()
        numpy = demand(patient.tensorflow.distribution, "numpy", patient.interpreter)
        return numpy.specifier if numpy is not None else SpecifierSet()


def loadable(patient: Patient) -> tuple[Path, ...]:
    """Native files that this Python could load: of packages, and modules in the folders where the program looks."""
    found = dict.fromkeys(patient.native_files)
    library = Path(patient.interpreter.base_prefix) / "lib"
    others = [entry for entry in map(Path, patient.interpreter.path) if entry.name not in PACKAGE_FOLDERS]
    for folder in (*(entry for entry in others if library not in entry.parents), patient.directory):
        found.update(dict.fromkeys(_modules(folder)))
        for package in in_folder(folder):
            found.update(dict.fromkeys(folder / file for file in package.files if file.endswith(".so")))
    hidden = _hidden(patient, found)
    abi = patient.interpreter.abi
    return tuple(
        path
        for path in found
        if _is_for(path.name, abi) and not path.parent.name.endswith(".libs") and hidden.isdisjoint(path.parents)
    )


def _hidden(patient: Patient, files: Iterable[Path]) -> set[Path]:
    """Folders of packages of which another copy comes first on the search path."""
    entries = [Path(entry) for entry in patient.interpreter.path]
    tops = {entry / path.relative_to(entry).parts[0] for path in files for entry in entries if entry in path.parents}
    first = {name: would_import(name, entries) for name in {top.name for top in tops}}
    return {top for top in tops if (found := first[top.name]) and found.kind == "package" and found.place != top}


def _modules(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.so"))
    except OSError:
        return []


def _is_for(name: str, abi: str | None) -> bool:
    """Not where the name says that it is for another Python: "_conv.cpython-310-x86_64-linux-gnu.so"."""
    return abi is None or ".cpython-" not in name or f".{abi}-" in name


def owners(patient: Patient) -> Mapping[Path, Distribution]:
    """The package of each native file. Reads all records: asked only where something does not fit."""
    return {listed.path: package for package in patient.distributions for listed in native_files(package)}


def grouped(uses: Iterable[NumpyUse], owner: Mapping[Path, Distribution]) -> tuple[Group, ...]:
    found: dict[str, Group] = {}
    for use in uses:
        package = owner.get(use.path)
        name = f"{package.key} {package.version}" if package else use.path.name
        before = found.get(name, Group(name, package, ()))
        found[name] = before._replace(uses=(*before.uses, use))
    return tuple(found.values())


def fitting_numpy(groups: Iterable[Group], declared: SpecifierSet) -> str | None:
    """Releases of NumPy that all packages accept and that TensorFlow asks for; None where there are none."""
    groups = tuple(groups)
    lowest = max((group.needs for group in groups if group.needs), key=_order, default=None)
    only_1 = any(use.built_for == 1 for group in groups for use in group.uses)
    bounds = declared & SpecifierSet("<2" if only_1 else "") & SpecifierSet(f">={lowest}" if lowest else "")
    releases = (
        f"{major}.{minor}.3" for major, first, last in ((1, 16, 26), (2, 0, 9)) for minor in range(first, last + 1)
    )
    if not any(bounds.contains(release) for release in releases):
        return None
    return ",".join(sorted(_tightest(bounds).values()))


def _tightest(bounds: SpecifierSet) -> dict[tuple[str, object], str]:
    """Without the bounds that another one implies: "<2" beside "<1.24" or "<2.0.0"."""
    found: dict[tuple[str, object], str] = {}
    for each in bounds:
        extreme = {">=": max, "<": min}.get(each.operator)
        if extreme is None:
            found[each.operator, each.version] = str(each)
        elif Version(each.version) == extreme(Version(o.version) for o in bounds if o.operator == each.operator):
            found[each.operator, Version(each.version)] = str(each)
    return found


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def old_pybind11(uses: Iterable[NumpyUse], numpy: str) -> list[str]:
    if not numpy.startswith("2"):
        return []
    return [
        f"{use.path.name} was built with pybind11 before 2.12: it reads sizes of items as 0 with NumPy 2"
        for use in uses
        if use.old_pybind11
    ]
