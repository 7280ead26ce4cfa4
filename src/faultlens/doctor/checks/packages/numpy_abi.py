from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from faultlens.doctor.check import Check, fix
from faultlens.doctor.replacement import PACKAGE_FOLDERS, Replacement, replacement
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Examination, Finding
from faultlens.target_env.distributions import Distribution, in_folder
from faultlens.target_env.extension_modules import loads
from faultlens.target_env.imports import hidden_folders, would_import
from faultlens.target_env.installed_files import native_files
from faultlens.target_env.numpy_abi import NumpyUse, misfit, numpy_uses
from faultlens.target_env.requirements import admits, demand, needed_by
from faultlens.target_env.target import TargetEnvironment


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
    the module ignores the error. Those of NumPy 2 work with both, down to a release that stands in the module, or to
    1.25 where they look up `numpy.exceptions`.

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

    def examine(self, target: TargetEnvironment) -> Examination:
        numpy = would_import("numpy", target.interpreter.path)
        if numpy is None or numpy.kind != "package":
            return self.skipped("NumPy is not installed")
        package = next((each for each in in_folder(numpy.entry) if each.key == "numpy"), None)
        if package is None:
            return self.skipped(f"the version of {numpy.place} is unknown: it has no metadata")
        files = [path for path in loadable(target) if numpy.place not in path.parents]
        uses = numpy_uses(files, deep=target.options.deep)
        misfits = [use for use in uses if misfit(use, package.version)]
        groups = grouped(uses, owners(target)) if misfits else ()
        unusable = [group for group in groups if group.misfit(package.version)]
        spared = [use for group in groups if group not in unusable for use in group.uses if use in misfits]
        details = [f"{use.path.name} {misfit(use, package.version)}; its package does without it" for use in spared]
        summary = f"all {len(uses) - len(spared)} compiled modules that use NumPy fit {package.version}"
        findings = self._findings(target, package, groups, unusable)
        return self.judged(findings, summary, [*details, *old_pybind11(uses, package.version)])

    def _findings(
        self, target: TargetEnvironment, numpy: Distribution, groups: tuple[Group, ...], unusable: list[Group]
    ) -> Iterable[Finding]:
        needed = needed_by(target.tensorflow.distribution, target) if target.tensorflow else frozenset()
        replaced = {group: wanted for group in unusable if (wanted := self._other_release(target, group)) is not None}
        wanted = fitting_numpy((group for group in groups if group not in replaced), self._declared(target))
        cure = replacement(target, "numpy", wanted, "all compiled modules here fit it") if wanted else None
        for said, alike in by_reason((group for group in unusable if group not in replaced), numpy.version).items():
            # A newer release would not do with an older NumPy.
            rebuilt = [] if cure and said.startswith("needs") else [self._rebuilt(target, alike)]
            yield self._finding(numpy, said, alike, needed, cure, *rebuilt)
        for group, release in replaced.items():
            assert group.package is not None
            because = "what TensorFlow asks for"
            other = replacement(target, group.package.key, release, because)
            yield self._finding(numpy, group.misfit(numpy.version) or "", [group], needed, other)

    def _finding(
        self,
        numpy: Distribution,
        said: str,
        groups: list[Group],
        needed: frozenset[str],
        cure: Replacement | None,
        *others: Fix,
    ) -> Finding:
        grave = [group for group in groups if group.package is None or group.package.key in needed]
        groups = [*grave, *(group for group in groups if group not in grave)]
        shown = [use for group in groups[:4] for use in group.nearest[: 3 if len(groups) == 1 else 1]]
        tell = self.error if grave else self.warning
        return tell(
            f"{names(groups)} {said if len(groups) == 1 else _of_several(said)}; NumPy {numpy.version} is installed",
            [
                *((f"{use.path.name} {misfit(use, numpy.version)}", str(use.path)) for use in shown),
                (f"numpy {numpy.version}", str(numpy.metadata)),
            ],
            (*((cure.fix,) if cure else ()), *others),
            repair=cure.repair if cure else None,
        )

    @staticmethod
    def _other_release(target: TargetEnvironment, group: Group) -> str | None:
        """The releases of a package that TensorFlow asks for, where another is installed: NumPy is not to blame."""
        if target.tensorflow is None or group.package is None:
            return None
        asked = demand(target.tensorflow.distribution, group.package.key, target.interpreter)
        return str(asked.specifier) if asked and not admits(asked, group.package.version) else None

    @staticmethod
    def _rebuilt(target: TargetEnvironment, groups: Iterable[Group]) -> Fix:
        packages = [group.package.key for group in groups if group.package is not None]
        own = [group.name for group in groups if group.package is None]
        if own:
            return fix(f"build {' and '.join(own)} again, with the NumPy that is installed", safe=False)
        command = f"{target.interpreter.pip} install --upgrade {' '.join(packages)}"
        return fix(f"install builds of {' and '.join(packages)} that fit", command, safe=False)

    @staticmethod
    def _declared(target: TargetEnvironment) -> SpecifierSet:
        """What TensorFlow itself asks for."""
        if target.tensorflow is None:
            return SpecifierSet()
        numpy = demand(target.tensorflow.distribution, "numpy", target.interpreter)
        return numpy.specifier if numpy is not None else SpecifierSet()


def loadable(target: TargetEnvironment) -> tuple[Path, ...]:
    """Native files that this Python could load: of packages, and modules in the folders where the program looks."""
    found = dict.fromkeys(target.native_files)
    library = Path(target.interpreter.base_prefix) / "lib"
    others = [entry for entry in map(Path, target.interpreter.path) if entry.name not in PACKAGE_FOLDERS]
    for folder in (*(entry for entry in others if library not in entry.parents), target.directory):
        found.update(dict.fromkeys(_modules(folder)))
        for package in in_folder(folder):
            found.update(dict.fromkeys(folder / file for file in package.files if file.endswith(".so")))
    hidden = hidden_folders(found, target.interpreter.path)
    version = target.interpreter.version
    return tuple(
        path
        for path in found
        if loads(path.name, version) and not path.parent.name.endswith(".libs") and hidden.isdisjoint(path.parents)
    )


def _modules(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.so"))
    except OSError:
        return []


def owners(target: TargetEnvironment) -> Mapping[Path, Distribution]:
    """The package of each native file. Reads all records: asked only where something does not fit."""
    return {listed.path: package for package in target.distributions for listed in native_files(package)}


def grouped(uses: Iterable[NumpyUse], owner: Mapping[Path, Distribution]) -> tuple[Group, ...]:
    found: dict[str, Group] = {}
    for use in uses:
        package = owner.get(use.path)
        name = f"{package.key} {package.version}" if package else use.path.name
        before = found.get(name, Group(name, package, ()))
        found[name] = before._replace(uses=(*before.uses, use))
    return tuple(found.values())


def by_reason(groups: Iterable[Group], numpy: str) -> dict[str, list[Group]]:
    found: dict[str, list[Group]] = {}
    for group in groups:
        found.setdefault(group.misfit(numpy) or "", []).append(group)
    return found


def names(groups: Sequence[Group]) -> str:
    """ "a 1.0, b 2.0 and c 3.0", "a 1.0, b 2.0, c 3.0 and 7 more"."""
    said = [group.name for group in groups]
    if len(said) > 4:
        said = [*said[:3], f"{len(said) - 3} more"]
    return " and ".join(part for part in (", ".join(said[:-1]), said[-1]) if part)


def _of_several(said: str) -> str:
    return said.replace("was built", "were built").replace("needs", "need")


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
