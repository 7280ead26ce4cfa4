from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace
from packaging.requirements import Requirement

from faultlens.doctor.check import Check, fix
from faultlens.doctor.checks.packages.tensorflow import IMPORTED
from faultlens.doctor.importing import Failure, Trial, try_import
from faultlens.doctor.replacement import replacement
from faultlens.records.finding import Examination, Finding
from faultlens.target_env.distributions import Distribution, normal
from faultlens.target_env.imports import would_import
from faultlens.target_env.requirements import admits, demands, is_below, needed_by, provider
from faultlens.target_env.source_imports import Imports, Place, imports_of
from faultlens.target_env.target import TargetEnvironment

TENSORFLOW, KERAS = "import tensorflow", "import keras"
JUDGED_ELSEWHERE = ("ml-dtypes", "protobuf")  # by what TensorFlow takes from them
SHOWN = 2
STATEMENTS = {TENSORFLOW: "`import tensorflow`", KERAS: "`import keras` and `tf.keras`"}


class Use(NamedTuple):
    """A line of the sources."""

    place: Place
    how: Literal["imports it", "raises ImportError without it", "does without it", "names it"]

    @property
    def is_certain(self) -> bool:
        return self.how in ("imports it", "raises ImportError without it")


class Need(NamedTuple):
    """A requirement that does not hold, of a package that an import leads to."""

    statement: str  # that leads to it
    by: Distribution
    requirement: Requirement
    present: Distribution | None  # of another version than asked for
    use: Use | None  # how the import comes to it; None: TensorFlow itself asks for it

    @property
    def name(self) -> str:
        return normal(self.requirement.name)


class Requirements(Check):
    """
    Whether the packages that `import tensorflow` and `import keras` lead to have what they need themselves: `requests`
    without `urllib3` is enough to make `import tensorflow` fail.

    Requirements are read from the metadata of the installed packages, with their markers and extras, and compared as
    pip does. It is an error where the sources show a line that the import comes to and that imports what is not there,
    or raises ImportError without it; a warning where they name it in another way or do without it, and where a version
    is not the one asked for. A package that is newer than what TensorFlow itself asks for is no reason: that often
    works. All other requirements that do not hold are told with `-v`: most programs never come to them.

    With `--deep` the import itself is tried, in the sandbox and in a process that may die; what it says counts for
    more.
    """

    name = "requirements"
    looks_at = "what packages that TensorFlow imports need in turn; with --deep, whether the import works"
    position = 22
    causes = ("python-exception",)

    def examine(self, target: TargetEnvironment) -> Examination:
        tensorflow = target.tensorflow
        others = tuple(broken(target))
        if tensorflow is None:
            unmet = f": {len(others)} requirements of other packages do not hold (-v)" if others else ""
            skipped = self.skipped(f"TensorFlow is not installed{unmet}")
            return replace(skipped, details=others)
        root = tensorflow.distribution
        needs = (*too_old(target, root), *Walk(target, root).needs())
        trial = _tried(target) if target.options.deep else None
        details = (
            [f"{need.by.key} {_asks(need.requirement, need.present)}: the import works" for need in needs]
            if trial and trial.works
            else []
        )
        findings = [] if trial and trial.works else [self._unmet(target, need, trial) for need in needs]
        if trial is not None:
            findings += self._failed(target, trial, needs)
        count = len(needed_by(root, target) & {each.key for each in target.distributions})
        summary = f"the {count} packages that TensorFlow needs have what they need"
        if trial is not None and trial.works:
            summary = f"`import tensorflow` works, with {count} packages that it needs"
        elif trial is not None and trial.late:
            details.append("`import tensorflow` gave no answer in time")
        return self.judged(findings, summary, [*details, *others])

    def _unmet(self, target: TargetEnvironment, need: Need, trial: Trial | None) -> Finding:
        cure = replacement(target, need.name, str(need.requirement.specifier))
        by = f"{need.by.key} {need.by.version}"
        evidence = [(f"{by} requires {need.requirement}", str(need.by.metadata))]
        fails, verb = STATEMENTS[need.statement], "fails" if need.statement == TENSORFLOW else "fail"
        if need.present is not None:
            evidence.append((f"{need.name} {need.present.version} is installed", str(need.present.metadata)))
            title = f"{by} needs {need.name}{need.requirement.specifier}, {need.present.version} is installed"
            if trial and trial.failure and _is_why(target, need, trial.failure):
                evidence.append((trial.failure.error, trial.failure.place or "tried"))
                return self.error(f"{title}: {fails} {verb}", evidence, (cure.fix,), repair=cure.repair)
            return self.warning(f"{title}: {fails} may fail", evidence, (cure.fix,), repair=cure.repair)
        if need.use is not None:
            place = need.use.place
            evidence.append((f"{place.file.name} {need.use.how} in line {place.line}", str(place.file)))
        title = f"{need.name} is not installed, and {need.by.key} needs it"
        failure = trial.failure if trial else None
        is_why = failure is not None and _is_why(target, need, failure)
        if failure is not None and is_why:
            evidence.append((failure.error, "tried"))
        if is_why or (need.use and need.use.is_certain):
            return self.error(f"{title}: {fails} {verb}", evidence, (cure.fix,), repair=cure.repair)
        if need.use and need.use.how == "does without it":
            title = f"{need.name} is not installed: {need.by.key} goes on without it, and what needs it fails later"
            return self.warning(title, evidence, (cure.fix,), repair=cure.repair)
        return self.warning(f"{title}: {fails} may fail", evidence, (cure.fix,), repair=cure.repair)

    def _failed(self, target: TargetEnvironment, trial: Trial, needs: tuple[Need, ...]) -> Iterator[Finding]:
        again = fix("see how it dies", "faultlens run -c 'import tensorflow'")
        cures = [replacement(target, need.name, str(need.requirement.specifier)).fix for need in needs[:SHOWN]]
        if trial.died:
            words = [(line, "its last words") for line in trial.last_words]
            title = f"`import tensorflow` dies: {trial.died}"
            yield self.error(title, [(trial.died, "tried"), *words], (*cures, again))
        elif trial.failure is not None:
            failure = trial.failure
            if any(_is_why(target, need, failure) for need in needs):
                return  # it is told already
            evidence = [(failure.error, "tried"), *([("raised there", failure.place)] if failure.place else [])]
            yield self.error(f"`{failure.statement}` fails: {failure.error}", evidence, (*cures, again))


class Walk:
    """Along the imports, from the packages that `import tensorflow` was seen to import."""

    def __init__(self, target: TargetEnvironment, tensorflow: Distribution) -> None:
        self._target = target
        self._asked = {normal(each.name): each for each in demands(tensorflow, target.interpreter)}
        self._seen: set[str] = set()
        self._roots = [(name, TENSORFLOW) for name in IMPORTED if name in self._asked] + [("keras", KERAS)]

    def needs(self) -> Iterator[Need]:
        if any(self._amiss(name, self._asked.get(name), set()) for name, _ in self._roots):  # else no source is read
            for name, statement in self._roots:
                yield from self._below(name, statement, self._asked.get(name))

    def _amiss(self, name: str, asked: Requirement | None, seen: set[str]) -> bool:
        """Whether anything does not hold in the metadata of this package or of those that it needs."""
        package = self._target.distribution(name)
        if package is None or name in seen:
            return False
        seen.add(name)
        return any(
            not _holds(each, self._target.distribution(normal(each.name))) or self._amiss(normal(each.name), each, seen)
            for each in with_extras(package, self._target, asked)
        )

    def _below(self, name: str, statement: str, asked: Requirement | None) -> Iterator[Need]:
        package, path = self._target.distribution(name), self._target.interpreter.path
        if package is None or name in self._seen:
            return
        self._seen.add(name)
        imports = imports_of(module_of(self._target, name), path)
        for requirement in with_extras(package, self._target, asked):
            needed = normal(requirement.name)
            module = module_of(self._target, needed)
            proof, present = imports.certain.get(module), self._target.distribution(needed)
            if present is None and would_import(module, path) is None:
                use = self._use(imports, module)
                told = needed in IMPORTED and needed in self._asked  # by the check `tensorflow`
                if use and not told:
                    yield Need(statement, package, requirement, None, use)
            elif proof and present is not None and not admits(requirement, present.version):
                yield Need(statement, package, requirement, present, Use(proof, "imports it"))
            if proof:
                yield from self._below(needed, statement, requirement)

    def _use(self, imports: Imports, module: str) -> Use | None:
        """The strongest that the sources show of a module that is not there."""
        if place := imports.certain.get(module):
            return Use(place, "imports it")
        if place := imports.refused(module, self._is_there):
            return Use(place, "raises ImportError without it")
        if place := imports.does_without(module):
            return Use(place, "does without it")
        place = imports.mentioned(module)
        return Use(place, "names it") if place else None

    def _is_there(self, name: str) -> bool:
        """A module or a package; sources may write dm-tree as dmtree."""
        packages = {each.key.replace("-", "") for each in self._target.distributions}
        return name.replace("_", "") in packages or would_import(name, self._target.interpreter.path) is not None


def too_old(target: TargetEnvironment, tensorflow: Distribution) -> Iterator[Need]:
    """Packages that `import tensorflow` imports and that are older than what it asks for. Newer ones often work."""
    for requirement in demands(tensorflow, target.interpreter):
        name = normal(requirement.name)
        present = target.distribution(name)
        if name in IMPORTED and name not in JUDGED_ELSEWHERE and present and is_below(requirement, present.version):
            yield Need(TENSORFLOW, tensorflow, requirement, present, None)


def _is_why(target: TargetEnvironment, need: Need, failure: Failure) -> bool:
    """It is not there, and that was said; or it is another version, and the import ended in its files."""
    module = module_of(target, need.name)
    if need.present is not None:
        return module in Path(failure.place.rpartition(":")[0]).with_suffix("").parts
    refused = need.use is not None and need.use.how == "raises ImportError without it" and module in failure.error
    return refused or normal(failure.module) == need.name


def module_of(target: TargetEnvironment, name: str) -> str:
    """What is imported of a package; for one that is not there, its name as far as that can be a module's."""
    guess = IMPORTED.get(name, name.replace("-", "_"))
    package = target.distribution(name)
    if package is None or would_import(guess, target.interpreter.path) is not None:
        return guess
    tops = (file.removesuffix("/__init__.py") for file in package.files)
    return next((top for top in tops if top.isidentifier()), guess)


def with_extras(package: Distribution, target: TargetEnvironment, asked: Requirement | None) -> Iterator[Requirement]:
    """What it needs where `asked` is what was asked of it: "requests[socks]"."""
    for extra in ("", *sorted(asked.extras if asked else ())):
        yield from demands(package, target.interpreter, extra)


def broken(target: TargetEnvironment) -> Iterator[str]:
    """Requirements of all installed packages that do not hold, as `pip check` lists them."""
    for package in target.distributions:
        for requirement in demands(package, target.interpreter):
            present = provider(target, normal(requirement.name))
            if not _holds(requirement, present):
                yield f"{package.key} {package.version} {_asks(requirement, present)}"


def _holds(requirement: Requirement, present: Distribution | None) -> bool:
    return present is not None and admits(requirement, present.version)


def _asks(requirement: Requirement, present: Distribution | None) -> str:
    has = f"{present.version} is installed" if present else "which is not installed"
    return f"asks for {requirement.name}{requirement.specifier}, {has}"


def _tried(target: TargetEnvironment) -> Trial:
    statements = [TENSORFLOW, *([KERAS] if target.distribution("keras") else [])]
    return try_import(target.interpreter.executable, statements, target.variables)
