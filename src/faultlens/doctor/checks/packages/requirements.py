from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace
from packaging.requirements import Requirement

from faultlens.doctor.check import Check, fix
from faultlens.doctor.checks.packages.tensorflow import IMPORTED
from faultlens.doctor.importing import Failure, Trial, try_import
from faultlens.doctor.replacement import replacement
from faultlens.records.finding import Examination, Finding
from faultlens.target_env.distributions import Distribution, normal
from faultlens.target_env.imports import would_import
from faultlens.target_env.requirements import admits, demands, needed_by, provider
from faultlens.target_env.source_imports import Place, imports_of
from faultlens.target_env.target import Patient

TENSORFLOW, KERAS = "import tensorflow", "import keras"
STATEMENTS = {TENSORFLOW: "`import tensorflow`", KERAS: "`import keras` and `tf.keras`"}


class Need(NamedTuple):
    """A requirement that does not hold, of a package that an import leads to."""

    statement: str  # that leads to it
    by: Distribution
    requirement: Requirement
    present: Distribution | None  # of another version than asked for
    proof: Place | None  # the line that will import it
    mention: Place | None  # or where its name stands

    @property
    def name(self) -> str:
        return normal(self.requirement.name)


class Requirements(Check):
    """
    Whether the packages that `import tensorflow` and `import keras` lead to have what they need themselves: `requests`
    without `urllib3` is enough to make `import tensorflow` fail.

    Requirements are read from the metadata of the installed packages, with their markers and extras, and compared as
    pip does. It is an error where the sources show a line that the import comes to and that imports what is not there,
    and a warning where the sources name it in another way or a version is not the one asked for. All other requirements
    that do not hold are told with `-v`: most programs never come to them.

    With `--deep` the import itself is tried, in the sandbox and in a process that may die; what it says counts for
    more.
    """

    name = "requirements"
    looks_at = "what packages that TensorFlow imports need in turn; with --deep, whether the import works"
    position = 22
    causes = ("python-exception",)

    def examine(self, patient: Patient) -> Examination:
        tensorflow = patient.tensorflow
        others = tuple(broken(patient))
        if tensorflow is None:
            unmet = f": {len(others)} requirements of other packages do not hold (-v)" if others else ""
            skipped = self.skipped(f"TensorFlow is not installed{unmet}")
            return replace(skipped, details=others)
        needs = tuple(Walk(patient, tensorflow.distribution).needs())
        trial = _tried(patient) if patient.wishes.deep else None
        details = (
            [f"{need.by.key} {_asks(need.requirement, need.present)}: the import works" for need in needs]
            if trial and trial.works
            else []
        )
        findings = [] if trial and trial.works else [self._unmet(patient, need, trial) for need in needs]
        if trial is not None:
            findings += self._failed(trial, needs)
        count = len(needed_by(tensorflow.distribution, patient) & {each.key for each in patient.distributions})
        summary = f"the {count} packages that TensorFlow needs have what they need"
        if trial is not None and trial.works:
            summary = f"`import tensorflow` works, with {count} packages that it needs"
        elif trial is not None and trial.late:
            details.append("`import tensorflow` gave no answer in time")
        return self.judged(findings, summary, [*details, *others])

    def _unmet(self, patient: Patient, need: Need, trial: Trial | None) -> Finding:
        cure = replacement(patient, need.name, str(need.requirement.specifier))
        by = f"{need.by.key} {need.by.version}"
        evidence = [(f"{by} requires {need.requirement}", str(need.by.metadata))]
        fails = STATEMENTS[need.statement]
        if need.present is not None:
            evidence.append((f"{need.name} {need.present.version} is installed", str(need.present.metadata)))
            title = f"{by} needs {need.name}{need.requirement.specifier}, {need.present.version} is installed"
            return self.warning(f"{title}: {fails} may fail", evidence, (cure.fix,), repair=cure.repair)
        place = need.proof or need.mention
        if place is not None:
            verb = "imports" if need.proof else "names"
            evidence.append((f"{place.file.name} {verb} it in line {place.line}", str(place.file)))
        title = f"{need.name} is not installed, and {need.by.key} needs it"
        failure = trial.failure if trial else None
        if failure is not None and _is_why(need, failure):
            evidence.append((failure.error, "tried"))
        if need.proof or (failure is not None and _is_why(need, failure)):
            return self.error(f"{title}: {fails} fails", evidence, (cure.fix,), repair=cure.repair)
        return self.warning(f"{title}: {fails} may fail", evidence, (cure.fix,), repair=cure.repair)

    def _failed(self, trial: Trial, needs: tuple[Need, ...]) -> Iterator[Finding]:
        again = fix("see how it dies", "faultlens run -c 'import tensorflow'")
        if trial.died:
            words = [(line, "its last words") for line in trial.last_words]
            yield self.error(f"`import tensorflow` dies: {trial.died}", [(trial.died, "tried"), *words], (again,))
        elif trial.failure is not None:
            failure = trial.failure
            if any(_is_why(need, failure) for need in needs):
                return  # it is told already
            evidence = [(failure.error, "tried"), *([("raised there", failure.place)] if failure.place else [])]
            yield self.error(f"`{failure.statement}` fails: {failure.error}", evidence, (again,))


class Walk:
    """Along the imports, from the packages that `import tensorflow` was seen to import."""

    def __init__(self, patient: Patient, tensorflow: Distribution) -> None:
        self._patient = patient
        self._asked = {normal(each.name): each for each in demands(tensorflow, patient.interpreter)}
        self._seen: set[str] = set()
        self._roots = [(name, TENSORFLOW) for name in IMPORTED if name in self._asked] + [("keras", KERAS)]

    def needs(self) -> Iterator[Need]:
        if any(self._amiss(name, self._asked.get(name), set()) for name, _ in self._roots):  # else no source is read
            for name, statement in self._roots:
                yield from self._below(name, statement, self._asked.get(name))

    def _amiss(self, name: str, asked: Requirement | None, seen: set[str]) -> bool:
        """Whether anything does not hold in the metadata of this package or of those that it needs."""
        package = self._patient.distribution(name)
        if package is None or name in seen:
            return False
        seen.add(name)
        return any(
            not _holds(each, self._patient.distribution(normal(each.name)))
            or self._amiss(normal(each.name), each, seen)
            for each in with_extras(package, self._patient, asked)
        )

    def _below(self, name: str, statement: str, asked: Requirement | None) -> Iterator[Need]:
        package, path = self._patient.distribution(name), self._patient.interpreter.path
        if package is None or name in self._seen:
            return
        self._seen.add(name)
        imports = imports_of(module_of(self._patient, name), path)
        for requirement in with_extras(package, self._patient, asked):
            needed = normal(requirement.name)
            module = module_of(self._patient, needed)
            proof, present = imports.certain.get(module), self._patient.distribution(needed)
            if present is None and would_import(module, path) is None:
                mention = None if proof else imports.mentioned(module)
                told = needed in IMPORTED and needed in self._asked  # by the check `tensorflow`
                if (proof or mention) and not told:
                    yield Need(statement, package, requirement, None, proof, mention)
            elif proof and present is not None and not admits(requirement, present.version):
                yield Need(statement, package, requirement, present, proof, None)
            if proof:
                yield from self._below(needed, statement, requirement)


def _is_why(need: Need, failure: Failure) -> bool:
    return need.present is None and normal(failure.module) == need.name


def module_of(patient: Patient, name: str) -> str:
    """What is imported of a package; for one that is not there, its name as far as that can be a module's."""
    guess = IMPORTED.get(name, name.replace("-", "_"))
    package = patient.distribution(name)
    if package is None or would_import(guess, patient.interpreter.path) is not None:
        return guess
    tops = (file.removesuffix("/__init__.py") for file in package.files)
    return next((top for top in tops if top.isidentifier()), guess)


def with_extras(package: Distribution, patient: Patient, asked: Requirement | None) -> Iterator[Requirement]:
    """What it needs where `asked` is what was asked of it: "requests[socks]"."""
    for extra in ("", *sorted(asked.extras if asked else ())):
        yield from demands(package, patient.interpreter, extra)


def broken(patient: Patient) -> Iterator[str]:
    """Requirements of all installed packages that do not hold, as `pip check` lists them."""
    for package in patient.distributions:
        for requirement in demands(package, patient.interpreter):
            present = provider(patient, normal(requirement.name))
            if not _holds(requirement, present):
                yield f"{package.key} {package.version} {_asks(requirement, present)}"


def _holds(requirement: Requirement, present: Distribution | None) -> bool:
    return present is not None and admits(requirement, present.version)


def _asks(requirement: Requirement, present: Distribution | None) -> str:
    has = f"{present.version} is installed" if present else "which is not installed"
    return f"asks for {requirement.name}{requirement.specifier}, {has}"


def _tried(patient: Patient) -> Trial:
    statements = [TENSORFLOW, *([KERAS] if patient.distribution("keras") else [])]
    return try_import(patient.interpreter.executable, statements, patient.variables)
