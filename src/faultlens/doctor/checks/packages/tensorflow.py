from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.version import InvalidVersion, Version

from faultlens.doctor.check import Check, fix
from faultlens.doctor.replacement import replacement, set_aside, without
from faultlens.records.finding import Examination, Finding
from faultlens.target_env.distributions import normal
from faultlens.target_env.imports import Module, would_import
from faultlens.target_env.keras_settings import VARIABLE, chosen_backend
from faultlens.target_env.requirements import admits, demand, demands, provider
from faultlens.target_env.source_names import lacking
from faultlens.target_env.target import TargetEnvironment, TensorFlow
from faultlens.text.safe import one_line

# What `import tensorflow` itself imports, by the name of the package that brings it. Tried on 2.15 and 2.21 by taking
# away one at a time; without the others it declares (keras, libclang, tensorboard, grpcio, h5py, …) the import works.
IMPORTED = {
    "absl-py": "absl",
    "astunparse": "astunparse",
    "flatbuffers": "flatbuffers",
    "gast": "gast",
    "ml-dtypes": "ml_dtypes",
    "numpy": "numpy",
    "opt-einsum": "opt_einsum",
    "packaging": "packaging",
    "protobuf": "google/protobuf",
    "requests": "requests",
    "six": "six",
    "termcolor": "termcolor",
    "typing-extensions": "typing_extensions",
    "wrapt": "wrapt",
}
# The extra in which packages say which TensorFlow they were made for. Whether their native code can be loaded is seen
# by the check of custom ops, from symbols; what they declare is a detail here.
COMPANIONS = {"tensorflow-text": "", "tensorflow-io": "tensorflow", "tensorflow-addons": "tensorflow"}
# TensorFlow Probability is Python only, and refuses a TensorFlow that is too old or has no tf-keras beside it.
PROBABILITY, ITS_EXTRA = "tensorflow-probability", "tf"
# Keras 3 fails before TensorFlow 2.15 (tried: 2.12, 2.14), Keras 2 from 2.16 on (tried: 2.16, 2.17, 2.21).
# Keras 2 that is too new for an old TensorFlow; other neighbours worked (2.13 with 2.14, 2.14 with 2.12 and 2.15).
FAILING = {(2, 12): ((2, 13), (2, 14), (2, 15)), (2, 13): ((2, 15),)}
# (package, module, the file of TensorFlow's that every import of it loads and that uses it)
TAKEN_FROM = (("ml-dtypes", "ml_dtypes", "python/framework/dtypes.py"),)
NAMES = ("tensorflow", "keras", "numpy")  # a file of this name beside the program hides the package
WRITE_TENSORFLOW = r's/"backend": *"[^"]*"/"backend": "tensorflow"/'  # in keras.json
LEGACY = "TF_USE_LEGACY_KERAS"
_CPYTHON = re.compile(r"^cp(\d)(\d+)$")


class TensorFlowPackage(Check):
    """
    Which TensorFlow `import tensorflow` would find, for which Python it was built, and whether the packages that its
    import needs are there and fit.

    Only what was seen to fail is a finding. A requirement that is merely broken in the metadata is a detail: TensorFlow
    2.15 works with Keras 3 and with protobuf 6, although it asks for neither. What TensorFlow takes from ml_dtypes when
    it is imported is compared with what ml_dtypes has, both from their sources. The backend that KERAS_BACKEND or
    keras.json asks for must be one of Keras's, and its package must be there.
    """

    name = "tensorflow"
    looks_at = "the TensorFlow an import would find, its Python, its Keras, what its import needs"
    position = 20
    causes = ("python-exception",)

    def examine(self, target: TargetEnvironment) -> Examination:
        found = would_import("tensorflow", target.interpreter.path)
        tensorflow = target.tensorflow
        if found is None:
            return self.skipped(f"TensorFlow is not installed in {target.interpreter.prefix}")
        if found.kind == "namespace":
            return self.skipped(f"{found.place} is not a whole package: see the check `installation`")
        hidden = list(self._hidden(target, found))
        if tensorflow is None:
            return self.judged(hidden, f"found in {found.place}, without metadata that tell its version")
        version = target.interpreter.version
        findings = [
            *hidden,
            *self._wrong_python(target, tensorflow),
            *self._missing(target, tensorflow),
            *self._too_old(target, tensorflow),
            *self._keras(target, tensorflow),
            *self._backend(target),
            *self._probability(target, tensorflow),
        ]
        python = f"Python {version[0]}.{version[1]}" if version else "this Python"
        summary = f"{tensorflow.distribution.key} {tensorflow.version} for {python}, {_with_keras(target)}"
        return self.judged(findings, summary, [f"found in {tensorflow.folder}", *broken(target, tensorflow)])

    def _hidden(self, target: TargetEnvironment, found: Module) -> Iterator[Finding]:
        """Something else of that name comes first."""
        tensorflow = target.tensorflow
        behind = would_import("tensorflow", _after(target.interpreter.path, found.entry))
        if found.kind == "module" or (behind and behind.kind == "package" and not _is_tensorflow(found.place)):
            real = tensorflow.folder if tensorflow and tensorflow.folder != found.place else behind and behind.place
            yield self.error(
                f"`import tensorflow` finds {found.place}, which is not TensorFlow",
                [(f"{found.place} comes first", "search path")]
                + ([(f"TensorFlow is in {real}", "search path")] if real else []),
                (fix("rename it, or take its folder off PYTHONPATH", _rename(found.place)),),
                repair=set_aside((found.place,)),
            )
        for name in NAMES:
            beside = would_import(name, [target.directory])
            if beside is None or beside.kind == "namespace" or str(target.directory) in target.interpreter.path:
                continue
            yield self.warning(
                f"a program in {target.directory} imports {beside.place.name} there instead of {name}",
                [(f"{beside.place} is beside the program", "working directory")],
                (fix("rename it", _rename(beside.place)),),
                repair=set_aside((beside.place,)),
            )

    def _wrong_python(self, target: TargetEnvironment, tensorflow: TensorFlow) -> Iterator[Finding]:
        version = target.interpreter.version
        built_for = other_python(tensorflow.distribution.tags, version)
        if version and built_for:
            package = tensorflow.distribution
            command = without(target, package.folder)
            cure = fix(f"take {package.folder} off PYTHONPATH", command) if command else None
            again = f"{target.interpreter.pip} install --force-reinstall {package.key}"
            yield self.error(
                f"{package.key} {package.version} was built for Python {built_for}, this is {version[0]}.{version[1]}",
                [
                    (f"its wheel is tagged {', '.join(package.tags)}", str(package.metadata / "WHEEL")),
                    (f"Python {'.'.join(map(str, version))}", target.interpreter.executable),
                ],
                (*([cure] if cure else []), fix("install TensorFlow for this Python", again)),
            )

    def _missing(self, target: TargetEnvironment, tensorflow: TensorFlow) -> Iterator[Finding]:
        for requirement in demands(tensorflow.distribution, target.interpreter):
            name = normal(requirement.name)
            module = IMPORTED.get(name)
            if module is None or target.distribution(name) or would_import(module, target.interpreter.path):
                continue
            cure = replacement(target, name, str(requirement.specifier))
            yield self.error(
                f"{name} is not installed, and `import tensorflow` needs it",
                [(f"TensorFlow {tensorflow.version} requires {requirement}", str(tensorflow.distribution.metadata))],
                (cure.fix,),
                repair=cure.repair,
            )

    def _too_old(self, target: TargetEnvironment, tensorflow: TensorFlow) -> Iterator[Finding]:
        """A package that lacks what TensorFlow takes from it as soon as it is imported."""
        for name, module, user in TAKEN_FROM:
            package, found = target.distribution(name), would_import(module, target.interpreter.path)
            asked = demand(tensorflow.distribution, name, target.interpreter)
            if package is None or asked is None or found is None or found.place.parent != package.folder:
                continue
            missing = lacking(tensorflow.folder / user, module, found.place / "__init__.py")
            if not missing or admits(asked, package.version):
                continue
            cure = replacement(target, name, str(asked.specifier))
            yield self.error(
                f"{name} {package.version} has no {missing[0]}: `import tensorflow` fails",
                [
                    (f"TensorFlow {tensorflow.version} uses {module}.{missing[0]}", str(tensorflow.folder / user)),
                    (f"{module} does not define it", str(found.place / "__init__.py")),
                    (f"TensorFlow {tensorflow.version} requires {asked}", str(tensorflow.distribution.metadata)),
                ],
                (cure.fix,),
                repair=cure.repair,
            )

    def _keras(self, target: TargetEnvironment, tensorflow: TensorFlow) -> Iterator[Finding]:
        keras, tf_keras = target.distribution("keras"), target.distribution("tf-keras")
        legacy = target.variables.get(LEGACY, "").lower() in ("1", "true")
        if keras is None and would_import("keras", target.interpreter.path):
            return  # there, but of unknown version
        said = keras_conflict(
            tensorflow.version, keras.version if keras else None, legacy=legacy, tf_keras=tf_keras is not None
        )
        if said is None:
            return
        release = ".".join(tensorflow.version.split(".")[:2])
        asked = demand(tensorflow.distribution, "keras", target.interpreter)
        if legacy:
            cure = replacement(target, "tf-keras", f"=={release}.*")
        else:
            cure = replacement(target, "keras", str(asked.specifier) if asked else f"=={release}.*")
        yield self.error(
            f"TensorFlow {tensorflow.version} with {said}",
            [
                (f"keras {keras.version}" if keras else "keras is not installed", str(keras.metadata) if keras else ""),
                (f"TensorFlow {tensorflow.version} requires {asked}", str(tensorflow.distribution.metadata)),
                *([(f"{LEGACY}={target.variables[LEGACY]}", "environment")] if legacy else []),
            ],
            (cure.fix, *([fix("or use Keras 3", f"unset {LEGACY}")] if legacy else [])),
            repair=cure.repair,
        )

    def _backend(self, target: TargetEnvironment) -> Iterator[Finding]:
        """Keras 3 is asked for a backend that it does not have, or whose package is not there."""
        chosen, keras = chosen_backend(target.variables), would_import("keras", target.interpreter.path)
        if chosen is None or keras is None or target.variables.get(LEGACY, "").lower() in ("1", "true"):
            return
        backends = keras.place / "src" / "backend"
        if not (backends / "tensorflow").is_dir():
            return  # Keras 2, which has no backends, or one that keeps them elsewhere
        name = one_line(chosen.name, 40)
        if not (chosen.name.isidentifier() and chosen.name != "common" and (backends / chosen.name).is_dir()):
            why = f"Keras has no backend {name}"
        elif would_import(chosen.name, target.interpreter.path) is None:
            why = f"{name} is not installed"
        else:
            return
        asks = f"{chosen.file.name} asks for the backend {name}" if chosen.file else f"{VARIABLE}={name}"
        change = (
            fix("write tensorflow there", shlex.join(("sed", "-i", WRITE_TENSORFLOW, str(chosen.file))))
            if chosen.file
            else fix("take the variable away", f"unset {VARIABLE}")
        )
        yield self.error(
            f"{asks}, and {why}: `import keras` and `tf.keras` fail",
            [(asks, chosen.source), (why, str(backends) if "no backend" in why else "search path")],
            (change,),
        )

    def _probability(self, target: TargetEnvironment, tensorflow: TensorFlow) -> Iterator[Finding]:
        package = target.distribution(PROBABILITY)
        for requirement in demands(package, target.interpreter, ITS_EXTRA) if package else ():
            name = normal(requirement.name)
            present = provider(target, name)
            if package is None or name not in ("tensorflow", "tf-keras"):
                continue
            if present is not None and (name != "tensorflow" or admits(requirement, present.version)):
                continue
            release = ".".join(tensorflow.version.split(".")[:2])
            cure = replacement(target, "tf-keras", f"=={release}.*") if present is None else None
            older = f"{target.interpreter.pip} install --no-deps '{PROBABILITY}<{package.version}'"
            yield self.warning(
                f"`import tensorflow_probability` fails: it needs {name}{requirement.specifier}",
                [
                    (f"{PROBABILITY} {package.version} requires {requirement}", str(package.metadata)),
                    (f"{name} {present.version}" if present else f"{name} is not installed", "packages"),
                ],
                (cure.fix if cure else fix(f"install an older {PROBABILITY}", older, safe=False),),
                repair=cure.repair if cure else None,
            )


def other_python(tags: Iterable[str], version: tuple[int, ...] | None) -> str | None:
    """ "3.11" where the wheel's tags fit that Python only, and this is another."""
    pythons = []
    for tag in tags:
        interpreter, _, rest = tag.partition("-")
        match = _CPYTHON.match(interpreter)
        if match is None or rest.startswith("abi3"):
            return None  # it fits several
        pythons.append((int(match[1]), int(match[2])))
    if not pythons or version is None or version[:2] in pythons:
        return None
    return " or ".join(f"{major}.{minor}" for major, minor in sorted(set(pythons)))


def keras_conflict(tensorflow: str, keras: str | None, *, legacy: bool, tf_keras: bool) -> str | None:
    """How the pair fails; None for those that work, whatever they declare."""
    try:
        major, minor = Version(tensorflow).release[:2]
        installed = Version(keras).release[:2] if keras is not None else None
    except (InvalidVersion, ValueError):  # not two numbers
        return None
    release = (major, minor)
    if legacy:
        missing = release >= (2, 15) and not tf_keras
        return f"{LEGACY}, but without tf-keras: `tf.keras` raises ImportError" if missing else None
    if installed is None:
        return None  # `import tensorflow` works without Keras (tried on 2.12 to 2.21)
    needs_3, needs_2 = release >= (2, 16), release < (2, 15)
    if (needs_3 and installed < (3, 0)) or (needs_2 and installed >= (3, 0)) or installed in FAILING.get(release, ()):
        return f"Keras {keras}: `tf.keras` fails"
    return None


def broken(target: TargetEnvironment, tensorflow: TensorFlow) -> list[str]:
    """Requirements that do not hold, as `pip check` would list them for TensorFlow and what was made for it."""
    found = []
    for requirement in demands(tensorflow.distribution, target.interpreter):
        package = provider(target, normal(requirement.name))
        if package is not None and not admits(requirement, package.version):
            found.append(f"it asks for {requirement.name}{requirement.specifier}, {package.version} is installed")
        elif package is None:
            found.append(f"it asks for {requirement.name}{requirement.specifier}, which is not installed")
    for name, extra in COMPANIONS.items():
        companion = target.distribution(name)
        for requirement in demands(companion, target.interpreter, extra) if companion else ():
            if companion and requirement.name == "tensorflow" and not admits(requirement, tensorflow.version):
                found.append(f"{name} {companion.version} asks for {requirement.name}{requirement.specifier}")
    return found


def _with_keras(target: TargetEnvironment) -> str:
    keras = target.distribution("keras")
    return f"with Keras {keras.version}" if keras else "without Keras"


def _is_tensorflow(folder: Path) -> bool:
    return (folder / "python").is_dir() and (folder / "core").is_dir()


def _after(path: Iterable[str], entry: Path) -> list[str]:
    entries = list(path)
    return entries[entries.index(str(entry)) + 1 :] if str(entry) in entries else []


def _rename(place: Path) -> str:
    return f"mv {place} {place.with_name('my_' + place.name)}"
