"""The user's own program, as far as it can be run again: its sources, the data files they name, its arguments."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from msgspec.structs import replace

from faultlens.inspection.frames import is_own
from faultlens.inspection.owners import custom_libraries
from faultlens.op_model.files import SCRIPT
from faultlens.records.crash import Crash
from faultlens.repro.reduce_script import Sources
from faultlens.supervise.sources import decoded
from faultlens.text.redaction import HIDDEN, taking_value

MAX_DATA = 64 << 20  # bytes of data files that are copied
# Imported once by the server of the trials: these take seconds. Others may start threads, and do not survive a fork.
SLOW_MODULES = ("numpy", "tensorflow", "keras")
_LOADERS = ("load_op_library", "CDLL", "PyDLL", "LoadLibrary", "load_library")
_PYTHON = re.compile(r"python|pypy")


class NoScriptError(Exception):
    """There is no script to reduce; the text says why, as a sentence."""


class UserScript(NamedTuple):
    path: str  # where it was, as recorded
    sources: Sources  # SCRIPT is the program itself and comes first, then modules of the user's own beside it
    data: dict[str, bytes]
    lost: tuple[str, ...] = ()  # what it had and we have not, each as the end of "…was not recorded: "
    differs: tuple[str, ...] = ()  # files that are no longer on disk what they are in the report


def user_script(crash: Crash, with_data: bool = True) -> UserScript:
    """`with_data`: files of this machine that it names come along; not those that somebody else wants to see."""
    folder = Path(crash.program.directory or "/nonexistent")
    crash = with_whole_sources(crash, folder)
    path, arguments = _command(crash)
    text = _recorded(crash, folder, path)
    if text is None:
        raise NoScriptError(f"The text of {path} is not in the report.")
    home = (folder / path).parent
    differs = [] if _on_disk(folder / path) == text else [path]
    hidden = HIDDEN in " ".join(arguments)
    if arguments and not hidden:
        text = with_lines_before(text, ["import sys", f"sys.argv[1:] = {list(arguments)!r}"])
    sources = {SCRIPT: _with_libraries_named(text, custom_libraries(crash))}
    for name, module in crash.sources.items():
        place = folder / name
        if place != folder / path and place.is_relative_to(home) and place != home / SCRIPT:
            sources[str(place.relative_to(home))] = module
            differs += [] if _on_disk(place) == module else [name]
    lost = ["its arguments"] if hidden else []
    lost += [f"the variable {name}" for name in _hidden_variables(crash, sources)]
    return UserScript(
        path=path,
        sources=sources,
        data=dict(_data_files(sources, (folder, home))) if with_data else {},
        lost=tuple(lost),
        differs=tuple(differs),
    )


def with_whole_sources(crash: Crash, folder: Path) -> Crash:
    """Reports keep parts of the sources: the rest is read where it lies, if it is still what crashed."""
    whole = {}
    for path, digest in crash.source_digests.items():
        recorded = crash.sources.get(path, "")
        if hashlib.sha256(recorded.encode()).hexdigest() != digest:
            whole[path] = _unchanged(folder / path, digest)
    return replace(crash, sources={**crash.sources, **whole})


def _unchanged(path: Path, digest: str) -> str:
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() == digest:
            return decoded(data)
    except (OSError, SyntaxError, ValueError):
        pass  # it is gone, or another
    raise NoScriptError(
        f"{path} is not what it was when the program died, and the report keeps only some of its lines: "
        "put it back as it was, or run the program again."
    )


def slow_modules(sources: Sources) -> list[str]:
    text = "\n".join(sources.values())
    return [name for name in SLOW_MODULES if re.search(rf"\b{name}\b", text)]


def with_lines_before(text: str, lines: Sequence[str]) -> str:
    """The program with lines before all others, but for those that must stay the first."""
    tree = _tree(text)
    if tree is None:
        return text
    first = tree.body[0] if tree.body else None
    start = int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))
    while start < len(tree.body) and getattr(tree.body[start], "module", None) == "__future__":
        start += 1
    tree.body[start:start] = ast.parse("\n".join(lines)).body
    return ast.unparse(ast.fix_missing_locations(tree))


def files_in_use(sources: Sources, data: dict[str, bytes]) -> dict[str, bytes]:
    """The data files that the sources still name."""
    named = {text for source in sources.values() for text in _strings(source)}
    return {name: content for name, content in data.items() if any(name in text for text in named)}


def _command(crash: Crash) -> tuple[str, tuple[str, ...]]:
    """The script and its arguments."""
    words = list(crash.program.command)
    if words and _PYTHON.match(PurePath(words[0]).name):
        words.pop(0)
        while words and words[0].startswith("-"):
            option = words.pop(0)
            letter, joined = taking_value(option) if not option.startswith("--") else ("", "")
            if letter == "c":  # the text itself is not kept; what it imported and ran may be
                if outermost := _outermost(crash):
                    return outermost, ()
                raise NoScriptError("The program was given on the command line (-c), which reports do not keep.")
            if letter == "m" and (joined or words):
                return _module(crash, joined or words.pop(0)), tuple(words)
            if not joined and words and (letter or option == "--check-hash-based-pycs"):
                words.pop(0)
        if words:
            return words[0], tuple(words[1:])
    elif words and words[0].endswith(".py"):
        return words[0], tuple(words[1:])
    if outermost := _outermost(crash):
        return outermost, tuple(words[1:])
    raise NoScriptError("The report does not tell which script was run.")


def _module(crash: Crash, name: str) -> str:
    ending = name.replace(".", "/")
    for path in crash.sources:
        if path.endswith((f"{ending}.py", f"{ending}/__main__.py")):
            return path
    raise NoScriptError(f"The text of the module {name} is not in the report.")


def _outermost(crash: Crash) -> str | None:
    """The file that the outermost Python frame of the user's own is in."""
    for thread in (crash.launching_thread, crash.crashed_thread):
        own = [frame for frame in (thread.frames if thread else ()) if frame.kind == "python" and is_own(frame)]
        if own and own[-1].file in crash.sources:
            return own[-1].file
    return None


def _recorded(crash: Crash, folder: Path, path: str) -> str | None:
    """The text in the report; where it has none (no stack led there), that on disk."""
    for name, text in crash.sources.items():
        if folder / name == folder / path:
            return text
    return _on_disk(folder / path)


def _on_disk(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return None


def _hidden_variables(crash: Crash, sources: Sources) -> Iterator[str]:
    """Environment variables that the program reads and whose values the report does not have."""
    named = {text for source in sources.values() for text in _strings(source)}
    return (name for name, value in crash.program.environment.items() if value == HIDDEN and name in named)


def _with_libraries_named(text: str, libraries: Sequence[str]) -> str:
    """`load_op_library(os.environ["OP"])` with the path of the one library that was loaded: no environment needed."""
    tree = _tree(text)
    if tree is None or len(libraries) != 1:
        return text
    changed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and _called(node) in _LOADERS and not _is_literal(node.args[0]):
            node.args[0] = ast.Constant(libraries[0])
            changed = True
    return ast.unparse(ast.fix_missing_locations(tree)) if changed else text


def _is_literal(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _data_files(sources: Sources, folders: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Files that the sources name by a relative path."""
    left = MAX_DATA
    for name in dict.fromkeys(text for source in sources.values() for text in _strings(source)):
        if not name or len(name) > 200 or name.startswith("/") or ".." in PurePath(name).parts or name in sources:
            continue
        for folder in folders:
            path = folder / name
            try:
                if path.is_file() and path.stat().st_size <= left and path.suffix != ".py":
                    data = path.read_bytes()
                    left -= len(data)
                    yield name, data
                    break
            except (OSError, ValueError):
                continue


def _strings(text: str) -> Iterator[str]:
    tree = _tree(text)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
