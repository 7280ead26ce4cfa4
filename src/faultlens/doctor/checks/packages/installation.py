from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from faultlens.doctor.check import Check, fix
from faultlens.doctor.checks.packages.tensorflow import IMPORTED
from faultlens.doctor.replacement import own_folder, pip, reinstalled, set_aside, without
from faultlens.records.finding import Examination, Finding, Repair
from faultlens.target_env.distributions import Distribution, in_folder
from faultlens.target_env.extension_modules import built_for, for_others_only
from faultlens.target_env.imports import Module, would_import
from faultlens.target_env.installed_files import File, Sources, inspect, native_files, sources
from faultlens.target_env.requirements import demand, needed_by
from faultlens.target_env.target import TENSORFLOW_WHEELS, TargetEnvironment

# (module, package, what fails without its compiled modules), each tried by hiding them from the import.
COMPILED = (
    ("numpy", "numpy", "import tensorflow"),
    ("ml_dtypes", "ml-dtypes", "import tensorflow"),
    ("optree", "optree", "tf.keras"),
    ("h5py", "h5py", "import h5py"),
    ("pandas", "pandas", "import pandas"),
    ("scipy", "scipy", "import scipy"),
    ("grpc", "grpcio", "import grpc"),
    ("PIL", "pillow", "from PIL import Image"),
    ("psutil", "psutil", "import psutil"),
)
GRAVE = ("import tensorflow", "tf.keras")
# Fewer Python files than this may have been edited by hand; where nearly all differ, some tool rewrote them.
SEVERAL, NEARLY_ALL = 5, 0.9
SHOWN = 4
REMNANTS = ("tensorflow", "numpy")  # looked at for folders that a removal left
# Packages that do without their compiled modules (tried: both empty, TensorFlow 2.21 works).
OPTIONAL = ("wrapt", "protobuf")


class Foreign(NamedTuple):
    """A package whose compiled modules are all for another Python."""

    module: Module
    project: str
    fails: str
    files: tuple[Path, ...]


class Package(NamedTuple):
    distribution: Distribution
    files: tuple[File, ...]  # its native ones

    @property
    def is_whole(self) -> bool:
        return all(file.state in ("whole", "stripped") for file in self.files)


class Installation(Check):
    """
    Whether what the metadata say is what lies in the folders: several TensorFlows that write into one folder, two
    releases of one package in one folder, native files that are missing, cut off, from another release, or for another
    Python, folders that a removal left behind, Python files of TensorFlow that are not those of its wheel, and Python
    files that are missing or cut off in TensorFlow, Keras and what their import needs.

    Sizes are compared with the RECORD of each wheel (`--deep` compares SHA-256 sums). Packages without a RECORD (conda,
    Debian, editable installs) are left alone, stripped libraries too. Folders such as `~ensorflow`, which pip leaves
    when it is interrupted, are a detail: nothing imports them.
    """

    name = "installation"
    looks_at = "several TensorFlows in one folder, half-removed packages, files that are missing, damaged or foreign"
    position = 28
    causes = ("wrong-library-loaded", "python-exception")

    def examine(self, target: TargetEnvironment) -> Examination:
        folders = [Path(entry) for entry in dict.fromkeys(target.interpreter.path)]
        found = [
            each for folder in folders for each in sorted(in_folder(folder), key=lambda each: (each.key, each.version))
        ]
        packages = [look(each, deep=target.options.deep) for each in found]
        if not packages:
            return self.skipped("no packages are installed")
        twice = same_name(packages)
        shared = sharing_tensorflow(packages)
        spoken_for = [package for group in (*twice, *shared) for package in group]
        told = [package.distribution for package in spoken_for]
        own = {each: sources(each, deep=target.options.deep) for each in imported(target) if each not in told}
        findings = [
            *(finding for group in twice for finding in self._twice(target, group)),
            *(finding for group in shared for finding in self._shared(target, group)),
            *self._damaged(target, [package for package in packages if package not in spoken_for]),
            *self._forbidden(target, packages),
            *self._remnant(target),
            *self._other_python(target),
            *self._mixed(target, own),
            *self._incomplete(target, own),
        ]
        count = sum(len(package.files) for package in packages)
        summary = f"{count} native files of {len(packages)} packages are there and whole"
        changed = [file for package in packages for file in package.files if file.state in ("stripped", "other")]
        details = [f"{file.listed.path}: {file.state}, {file.why}" for file in changed]
        edited = [path for each in own.values() for path in each.changed]
        details += [f"{path}: differs from what RECORD lists" for path in edited[:SHOWN]]
        details += [f"{place}: left behind by pip, nothing imports it" for place in left_behind(folders)]
        return self.judged(findings, summary, details)

    def _twice(self, target: TargetEnvironment, group: tuple[Package, ...]) -> Iterator[Finding]:
        """Two releases of one package in one folder."""
        name, versions = group[0].distribution.key, " and ".join(each.distribution.version for each in group)
        present = [package for package in group if package.is_whole and package.files]
        if len(present) == 1:
            stale = tuple(each.distribution.metadata for each in group if each is not present[0])
            kept = present[0].distribution.version
            yield self.warning(
                f"{name} {versions} are both recorded in one folder; the files are those of {kept}",
                [(f"{place.name} is there", str(place)) for place in (*stale, present[0].distribution.metadata)],
                (fix("move the metadata of the other aside", f"mv {stale[0]} {stale[0]}.old"),),
                repair=set_aside(stale),
            )
        elif any(file.state in ("missing", "damaged", "other") for package in group for file in package.files):
            yield self.error(
                f"{name}: files of {versions} are mixed in one folder",
                [(f"{each.distribution.version}: {_count(each)}", str(each.distribution.metadata)) for each in group],
                (fix(f"remove both and install {name} once more", _again(target, group[-1].distribution)),),
            )

    def _shared(self, target: TargetEnvironment, group: tuple[Package, ...]) -> Iterator[Finding]:
        """Several wheels that write the folder `tensorflow`."""
        named = " and ".join(f"{each.distribution.key} {each.distribution.version}" for each in group)
        evidence = [
            (f"{each.distribution.key} {each.distribution.version}: {_count(each)}", str(each.distribution.metadata))
            for each in group
        ]
        whole = [each for each in group if each.is_whole]
        kept = (whole or list(group))[-1].distribution
        others = [each.distribution for each in group if each.distribution is not kept]
        # Removing one takes files of the other with it, so the one that is kept is installed anew.
        commands = (
            pip(target, "uninstall", "--yes", *(other.key for other in others)),
            pip(target, "install", "--no-deps", "--force-reinstall", f"{kept.key}=={kept.version}"),
        )
        undo = tuple(pip(target, "install", "--no-deps", f"{other.key}=={other.version}") for other in others)
        cure = fix(f"keep {kept.key} {kept.version} only", " && ".join(map(shlex.join, commands)))
        repair = Repair(commands=commands, undo=undo)
        hiding = [pair for other in others for pair in stale(other, kept)]
        if not whole:
            yield self.error(f"{named} overwrote each other's files", evidence, (cure,), repair=repair)
        elif hiding:
            yield self.error(
                f"{named}: files of both are mixed in one folder, `import tensorflow` fails",
                [*evidence, *((f"{front.name} is found instead of {own.name}", str(front)) for front, own in hiding)],
                (cure,),
                repair=repair,
            )
        elif len({each.distribution.version for each in group}) > 1:
            title = f"{named} share a folder: the libraries are those of {kept.version}, removing one breaks the other"
            yield self.warning(title, evidence, (cure,), repair=repair)

    def _damaged(self, target: TargetEnvironment, packages: Iterable[Package]) -> Iterator[Finding]:
        needed = needed_by(target.tensorflow.distribution, target) if target.tensorflow else frozenset()
        for package in packages:
            owner = package.distribution
            damaged = [file for file in package.files if file.state == "damaged"]
            missing = [file for file in package.files if file.state == "missing"]
            if missing and len(missing) < len(package.files) and owner.key not in needed:
                missing = []  # slimmed on purpose, as far as anyone can tell
            if not damaged and not missing:
                continue
            cure = reinstalled(target, owner, tuple(file.listed.path for file in damaged))
            grave = owner.key in needed and owner.key not in OPTIONAL and (damaged or _vital(missing))
            tell = self.error if grave else self.warning
            bad = sorted(damaged or missing, key=lambda file: not _vital([file]))
            what = "is damaged" if damaged else "is missing"
            more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
            slower = ", it goes on in Python" if owner.key in OPTIONAL else ""
            yield tell(
                f"{owner.key} {owner.version}: {bad[0].listed.path.name} {what}{more}{slower}",
                [(f"{file.listed.path.name}: {file.why}", str(file.listed.path)) for file in bad[:4]],
                (cure.fix,),
                repair=cure.repair,
            )

    def _forbidden(self, target: TargetEnvironment, packages: Iterable[Package]) -> Iterator[Finding]:
        """Folders that this user may not enter: files in them are there for others only."""
        for package in packages:
            owner = package.distribution
            files = [file for file in package.files if file.state == "forbidden"]
            tops = {
                name.partition("/")[0] for file in files if (name := os.path.relpath(file.listed.path, owner.folder))
            }
            folders = [owner.folder / top for top in sorted(tops - {".."})]
            if not folders:
                continue
            command = shlex.join(("chmod", "-R", "a+rX", *map(str, folders)))
            tell = self.error if target.tensorflow and _vital(files) else self.warning
            yield tell(
                f"{owner.key} {owner.version}: {len(files)} native files are in folders that this user may not enter",
                [(f"{file.listed.path.name}: {file.why}", str(file.listed.path)) for file in files[:SHOWN]],
                (fix("let everyone read them", command),),
            )

    def _other_python(self, target: TargetEnvironment) -> Iterator[Finding]:
        """One finding for each folder: all that is wrong in it came the same way."""
        foreign = tuple(for_another_python(target))
        for entry in dict.fromkeys(each.module.entry for each in foreign):
            group = [each for each in foreign if each.module.entry == entry]
            names = ", ".join(each.project for each in group)
            python = "{}.{}".format(*(built_for(group[0].files[0].name) or ()))
            own = ".".join(map(str, (target.interpreter.version or ())[:2]))
            owners = [each for each in in_folder(entry) if each.key in {one.project for one in group}]
            files = tuple(file for each in group for file in each.files)
            repair: Repair | None = None
            if command := without(target, entry):
                cure = fix(f"take {entry} off PYTHONPATH", command)
            else:
                wanted = [f"{each.key}=={each.version}" for each in owners] or [each.project for each in group]
                install = pip(target, "install", "--no-deps", "--force-reinstall", *wanted)
                cure = fix(f"install {names} for this Python", shlex.join(install))
                kept = set_aside(files)
                if entry == own_folder(target):
                    repair = Repair(commands=(*kept.commands, install), undo=kept.undo)
            fails = next((each.fails for each in group if each.fails in GRAVE), group[0].fails)
            tell = self.error if fails in GRAVE and target.tensorflow else self.warning
            yield tell(
                f"{names} {'was' if len(group) == 1 else 'were'} built for Python {python}, this is {own}: "
                f"`{fails}` fails",
                [(f"{each.project}: {each.files[0].name}", str(each.files[0])) for each in group]
                + [(f"Python {own} loads none of its modules", target.interpreter.executable)],
                (cure,),
                repair=repair,
            )

    def _mixed(self, target: TargetEnvironment, own: Mapping[Distribution, Sources]) -> Iterator[Finding]:
        """An upgrade that ended halfway, or files copied from another release."""
        package = target.tensorflow.distribution if target.tensorflow else None
        seen = own.get(package) if package else None
        if package and seen and SEVERAL <= len(seen.changed) < seen.total * NEARLY_ALL:
            yield self.warning(
                f"{len(seen.changed)} of {seen.total} Python files of {package.key} {package.version} were changed: "
                "another release may be mixed in",
                [(f"{path.name} differs from what RECORD lists", str(path)) for path in seen.changed[:4]],
                (reinstalled(target, package).fix,),  # no repair: it would undo what was changed on purpose
            )

    def _incomplete(self, target: TargetEnvironment, own: Mapping[Distribution, Sources]) -> Iterator[Finding]:
        """A copy or an installation that ended early."""
        for package, seen in own.items():
            bad = seen.missing or seen.cut
            if not bad:
                continue
            cure = reinstalled(target, package, seen.cut)
            what = "is missing" if seen.missing else "is cut off"
            more = f" and {len(bad) - 1} more Python files" if len(bad) > 1 else ""
            yield self.error(
                f"{package.key} {package.version}: {bad[0].relative_to(package.folder)} {what}{more}",
                [(f"{path.name} is listed in RECORD, and not there", str(path)) for path in seen.missing[:SHOWN]]
                + [
                    (f"{path.name} is shorter than RECORD says, and ends early", str(path)) for path in seen.cut[:SHOWN]
                ],
                (cure.fix,),
                repair=cure.repair,
            )

    def _remnant(self, target: TargetEnvironment) -> Iterator[Finding]:
        """A folder without `__init__.py`: the import succeeds, and the module is empty."""
        for name in REMNANTS:
            found = would_import(name, target.interpreter.path)
            if found is not None and found.kind == "namespace" and _has_files(found.place):
                brought = [each for each in in_folder(found.entry) if each.key in (name, *TENSORFLOW_WHEELS)]
                owner = next((each for each in brought if name == "tensorflow" or each.key == name), None)
                again = reinstalled(target, owner) if owner else None
                command = f"{target.interpreter.pip} install --force-reinstall {name}"
                yield self.error(
                    f"{found.place} has no __init__.py: the rest of a removed or half-installed package",
                    [(f"`import {name}` gives an empty module", str(found.place))],
                    (again.fix if again else fix(f"install {name} once more", command),),
                    repair=again.repair if again else None,
                )


def look(distribution: Distribution, *, deep: bool = False) -> Package:
    return Package(distribution, tuple(inspect(listed, deep=deep) for listed in native_files(distribution)))


def for_another_python(target: TargetEnvironment) -> Iterator[Foreign]:
    for name, project, fails in COMPILED:
        module = would_import(name, target.interpreter.path)
        if module is None or module.kind != "package":
            continue
        inside = f"{module.place}/"
        files = [path for path in target.native_files if str(path).startswith(inside)]
        others = for_others_only(files, target.interpreter.version)
        if others:
            yield Foreign(module, project, fails, others)


def same_name(packages: Iterable[Package]) -> list[tuple[Package, ...]]:
    """Packages that are recorded more than once in one folder."""
    found: dict[tuple[Path, str], list[Package]] = defaultdict(list)
    for package in packages:
        found[package.distribution.folder, package.distribution.key].append(package)
    return [tuple(group) for group in found.values() if len({each.distribution.version for each in group}) > 1]


def sharing_tensorflow(packages: Iterable[Package]) -> list[tuple[Package, ...]]:
    """Different wheels whose RECORDs list the same `tensorflow/__init__.py`."""
    found: dict[Path, list[Package]] = defaultdict(list)
    for package in packages:
        distribution = package.distribution
        if distribution.key in TENSORFLOW_WHEELS and "\ntensorflow/__init__.py," in f"\n{distribution.record}":
            found[distribution.folder].append(package)
    return [tuple(group) for group in found.values() if len({each.distribution.key for each in group}) > 1]


def stale(other: Distribution, kept: Distribution) -> list[tuple[Path, Path]]:
    """Files that only the other release brought, and the modules of the kept one that Python does not find because of
    them: in a folder, a package comes before a compiled module, and that before a Python file."""
    if other.version == kept.version:
        return []
    own, found = set(kept.files), []
    for name in set(other.files) - own:
        module = name.removesuffix("/__init__.py") if name.endswith("/__init__.py") else name.removesuffix(".so")
        behind = (f"{module}.py", *([f"{module}.so"] if name.endswith(".py") else [])) if module != name else ()
        found += [(kept.folder / name, kept.folder / each) for each in behind if each in own]
    return sorted((front, each) for front, each in found if os.path.isfile(front) and os.path.isfile(each))


def imported(target: TargetEnvironment) -> Iterator[Distribution]:
    """TensorFlow, Keras and what TensorFlow's import needs, where the metadata are those of what would be imported."""
    if target.tensorflow is None:
        return
    root = target.tensorflow.distribution
    for name, module in {root.key: "tensorflow", "keras": "keras", **IMPORTED}.items():
        package = target.distribution(name)
        if package is None or (package is not root and demand(root, name, target.interpreter) is None):
            continue
        found = would_import(module, target.interpreter.path)
        remnant = found is not None and found.kind == "namespace"  # told as such
        if found is None or (found.entry == package.folder and not (remnant and module in REMNANTS)):
            yield package


def left_behind(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        try:
            names = sorted(name for name in os.listdir(folder) if name.startswith("~"))
        except OSError:
            continue
        yield from (folder / name for name in names)


def _has_files(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def _vital(files: Iterable[File]) -> bool:
    """Libraries that every import of TensorFlow loads; others may have been left out on purpose."""
    vital = (
        "libtensorflow_framework.so",
        "libtensorflow_cc.so",
        "_pywrap_tensorflow",
        "_multiarray_umath",
        "_ml_dtypes",
    )
    return any(file.listed.path.name.startswith(vital) for file in files)


def _count(package: Package) -> str:
    good = sum(file.state in ("whole", "stripped") for file in package.files)
    return f"{good} of {len(package.files)} native files are as it brought them"


def _again(target: TargetEnvironment, package: Distribution) -> str:
    remove = pip(target, "uninstall", "--yes", package.key)  # one at a time: pip removes the first it finds
    install = pip(target, "install", "--no-deps", f"{package.key}=={package.version}")
    return " && ".join(map(shlex.join, (remove, remove, install)))
