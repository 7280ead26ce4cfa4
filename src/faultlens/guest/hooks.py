"""Calls functions of ours before and after functions of the program's libraries, from the moment these are imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

from .guard import Guard

Chain = Callable[..., Any]  # chain(original, before, after): see inside.c


class Hook(NamedTuple):
    """Where a function is, and what is to be called with it. Releases differ: one that is not there is left out."""

    module: str
    name: str  # "function" or "Class.method"
    before: Callable[..., Any] | None = None  # gets the arguments
    after: Callable[..., Any] | None = None  # gets the result (None after an exception) and the tuple of arguments
    replace: Callable[[Any], Any] | None = None  # instead of both: gets the function, returns the one to take its place


class Hooks:
    """A finder on sys.meta_path while a package is being imported, and only then."""

    def __init__(self, chain: Chain, guard: Guard, hooks: Iterable[Hook]) -> None:
        self._chain = chain
        self._guard = guard
        self._waiting: dict[str, list[Hook]] = {}
        self._packages: set[str] = set()  # imported now …
        self._expected: set[str] = set()  # … or some day
        self._set: set[tuple[int, str]] = set()
        for hook in hooks:
            self._waiting.setdefault(hook.module, []).append(hook)

    def importing(self, package: str) -> None:
        """The import of a package has begun."""
        if _is_importing(package):
            self._drop_missing(package)
            self._packages.add(package)
            self._come()

    def watch(self, packages: Iterable[str]) -> None:
        """Set what can be set by now, and wait for the import of the rest."""
        for name in [name for name in self._waiting if name in sys.modules]:
            self._imported(sys.modules[name])
        self._expected.update(package for package in packages if package not in sys.modules)
        self._come()

    def _come(self) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def _drop_missing(self, package: str) -> None:
        """This release need not have all the modules that we know of: those are not waited for."""
        folders = sys.modules[package].__path__
        for name in [name for name in self._waiting if name.startswith(f"{package}.")]:
            paths = [os.path.join(folder, *name.split(".")[1:]) for folder in folders]
            if not any(os.path.exists(f"{path}.py") or os.path.exists(f"{path}/__init__.py") for path in paths):
                del self._waiting[name]

    def _leave_if_done(self) -> None:
        self._packages = {package for package in self._packages | self._expected if self._is_awaited(package)}
        self._expected = {package for package in self._expected if package not in sys.modules}
        if not (self._packages or self._expected) and self in sys.meta_path:
            sys.meta_path.remove(self)

    def _is_awaited(self, package: str) -> bool:
        return _is_importing(package) and any(name.startswith(f"{package}.") for name in self._waiting)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._waiting or not self._guard.working:
            self._leave_if_done()
            return None
        spec = _found_by_others(self, name, path, target)
        loader: Any = spec and spec.loader
        if hasattr(loader, "exec_module") and hasattr(loader, "__dict__"):
            loader.exec_module = self._chain(loader.exec_module, None, self._guard(self._executed))
        return spec

    def _executed(self, _: Any, arguments: tuple[ModuleType]) -> None:
        (module,) = arguments
        vars(module.__spec__.loader).pop("exec_module", None)  # type: ignore[union-attr]
        self._imported(module)
        self._leave_if_done()

    def _imported(self, module: ModuleType) -> None:
        for hook in self._waiting.pop(module.__name__, ()):
            self._set_hook(module, hook)

    def _set_hook(self, module: ModuleType, hook: Hook) -> None:
        *outer, name = hook.name.split(".")
        holder: Any = module
        for each in outer:
            holder = getattr(holder, each, None)
        original = vars(holder).get(name) if holder is not None else None
        if original is None or (id(holder), name) in self._set:
            return
        replaced = hook.replace(original) if hook.replace else self._chain(original, hook.before, hook.after)
        setattr(holder, name, replaced)
        self._set.add((id(holder), name))


def _is_importing(package: str) -> bool:
    spec = getattr(sys.modules.get(package), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _found_by_others(finder: Hooks, name: str, path: Any, target: Any) -> ModuleSpec | None:
    for other in list(sys.meta_path):
        find = getattr(other, "find_spec", None)
        spec = find(name, path, target) if find and other is not finder else None
        if spec is not None:
            return spec  # type: ignore[no-any-return]
    return None
