"""What installed packages ask of each other, compared as pip does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from packaging.markers import UndefinedEnvironmentName, default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from faultlens.target_env.distributions import Distribution, normal
from faultlens.target_env.interpreter import Interpreter
from faultlens.target_env.target import TENSORFLOW_WHEELS, TargetEnvironment


def demands(distribution: Distribution, interpreter: Interpreter, extra: str = "") -> Iterator[Requirement]:
    """What it declares for this Python, without what only its other extras need."""
    environment = _environment(interpreter.version or ()) | {"extra": extra}
    for text in distribution.requires:
        requirement = _parsed(text)
        if requirement is None:
            continue
        try:
            if requirement.marker is None or requirement.marker.evaluate(environment):
                yield requirement
        except (UndefinedEnvironmentName, InvalidVersion):
            continue


def demand(distribution: Distribution, name: str, interpreter: Interpreter) -> Requirement | None:
    return next((each for each in demands(distribution, interpreter) if normal(each.name) == name), None)


def provider(target: TargetEnvironment, name: str) -> Distribution | None:
    """The installed package of that name; any wheel that brings TensorFlow counts as `tensorflow`."""
    if name == "tensorflow" and target.tensorflow is not None:
        return target.tensorflow.distribution
    return target.distribution(name)


def admits(requirement: Requirement, version: str) -> bool:
    """Release candidates and nightly builds count as what they are, as pip counts what is installed."""
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True  # unknown is not a conflict


def is_below(requirement: Requirement, version: str) -> bool:
    """Whether it is older than the oldest that would do."""
    lowest = [each.version for each in requirement.specifier if each.operator in (">=", ">", "~=")]
    try:
        return any(Version(version) < Version(each) for each in lowest)
    except InvalidVersion:
        return False


def needed_by(root: Distribution, target: TargetEnvironment) -> frozenset[str]:
    """Names of all packages that it needs, and those that these need; its own name included."""
    found = {root.key}
    waiting = [root]
    while waiting:
        for requirement in demands(waiting.pop(), target.interpreter):
            name = normal(requirement.name)
            if name not in found:
                found.add(name)
                package = target.distribution(name)
                if package is not None:
                    waiting.append(package)
    return frozenset(found | set(TENSORFLOW_WHEELS)) if root.key in TENSORFLOW_WHEELS else frozenset(found)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _environment(version: tuple[int, ...]) -> dict[str, str]:
    environment = {name: str(value) for name, value in default_environment().items()}
    if len(version) >= 2:
        environment["python_version"] = f"{version[0]}.{version[1]}"
        environment["python_full_version"] = ".".join(map(str, version))
    return environment
