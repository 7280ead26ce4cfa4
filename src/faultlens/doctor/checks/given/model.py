from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from faultlens.doctor.check import Check, fix
from faultlens.errors import FaultlensError
from faultlens.model_files.naming import misnamed
from faultlens.model_files.reader import read
from faultlens.model_files.record import Kind, Saved
from faultlens.model_files.regular import UnreadError
from faultlens.records.finding import NOT_GIVEN, Examination, Finding
from faultlens.system.procfs import read_text
from faultlens.target_env.distributions import Distribution
from faultlens.target_env.target import TargetEnvironment
from faultlens.text.safe import one_line
from faultlens.text.sizes import MIB, in_words

# Peak memory of loading, times the weights, and of the program before it: measured on 400 MB of weights, TF 2.21.
LOADING: dict[Kind, float] = {"Keras archive": 3.1, "HDF5 file": 2.1, "SavedModel": 2.1, "checkpoint": 2.1}
BEFORE = 490 * MIB
CHECKSUMMED: tuple[Kind, ...] = ("SavedModel", "checkpoint", "Keras archive")
KERASES = ("keras", "tf-keras")
_GRAPH_VERSION = re.compile(r"^#define TF_GRAPH_DEF_VERSION (\d+)", re.MULTILINE)
_MAJOR = re.compile(r"\d+")


class Model(Check):
    """Whether a saved model or checkpoint (`--model`) is whole, what wrote it, and whether there is memory for it.

    Read without TensorFlow: the directory and checksums of a `.keras` archive, the end and the list of contents that
    the header of an HDF5 file promises, the index of a checkpoint with its checksums and the length of its data files,
    the messages and assets of a SavedModel, the tables of a TensorFlow Lite model. With `--deep` every checksum is
    compared (small models: always).

    Measured against the real loaders of TensorFlow 2.21 on 427 models that were cut, overwritten or flipped: 328 of
    the 355 that did not load were found; of the 72 that loaded one was accused, a `.tflite` file with an offset that
    leads out of it. Of 24 saves that were killed on the way all were judged right. Not seen: flipped bits within
    `saved_model.pb` (18 of the 27 missed) and zeros within an HDF5 file (8), which have no checksums. Most damaged
    models raise an exception; a `.tflite` file can crash the interpreter (13 of the 77 damaged ones did).

    A `.keras` file may be an HDF5 file: Keras 2.12 wrote such, Keras 2 reads them, Keras 3 looks at the name and does
    not. An archive that is named `.h5` is read by neither. Keras 2.12 and 2.15 refused 10 of 11 models of Keras 3 for
    words in their configuration; the last, a class of the user's without them, was read by 2.12. An asset that is
    missing keeps a SavedModel from being loaded where it fills a table, else only what reads it fails.

    Loading 400 MB of weights took 2.1 times their size at the peak (SavedModel, checkpoint, HDF5), 3.1 times for
    `.keras`, besides the 490 MiB of TensorFlow itself; under a memory limit the kernel kills without a word."""

    name = "model"
    looks_at = "a saved model or checkpoint (--model): whole, written by what, size against memory"
    position = 94
    causes = ("corrupt-saved-model", "out-of-memory-kill")

    def examine(self, target: TargetEnvironment) -> Examination:
        if not target.options.models:
            return self.skipped(f"{NOT_GIVEN} (--model)")
        findings: list[Finding] = []
        undamaged: list[Saved] = []
        unread: list[str] = []
        for path in target.options.models:
            try:
                saved = read(path, target.options.deep)
            except UnreadError as error:
                unread.append(one_line(f"{path.name}: {error}", 200))
                continue
            except (OSError, ValueError) as error:
                findings.append(self._unreadable(path, error))
                continue
            if saved is None:
                raise _unknown(path)
            undamaged += [saved] if not saved.damages else []
            findings += self._judge(saved, target)
        if unread and not undamaged and not findings:
            return self.skipped(f"too large to be looked at: {unread[0]}")
        details = [*unread, *(one_line(line, 300) for saved in undamaged for line in _details(saved, target))]
        return self.judged(findings, _summary(undamaged, target.options.deep), details)

    def _unreadable(self, path: Path, error: Exception) -> Finding:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return self.error(
            one_line(f"{path.name} cannot be read: {why}", 160),
            [(why, str(path))],
            [fix("look who may read it", f"ls -ld {shlex.quote(str(path))}")],
            causes=("corrupt-saved-model",),
        )

    def _judge(self, saved: Saved, target: TargetEnvironment) -> Iterator[Finding]:
        name = saved.path.name
        if saved.damages:
            yield self.error(
                one_line(f"{name} cannot be loaded: {saved.damages[0].said(saved.path)}", 200),
                [(one_line(each.said(saved.path), 240), str(each.file)) for each in saved.damages[:4]],
                [
                    fix(
                        "load an earlier save",
                        f"ls -lt {shlex.quote(str(saved.path.absolute().parent))}",
                        "the damaged file cannot be repaired",
                        safe=False,
                    )
                ],
                causes=("corrupt-saved-model",),
            )
        version = _graph_version(target)
        if version is not None and saved.min_consumer > version and target.tensorflow is not None:
            yield self.error(
                f"{name} was written for a newer TensorFlow than the installed {target.tensorflow.version}",
                [
                    (f"its graph needs version {saved.min_consumer}", "saved_model.pb"),
                    (f"TensorFlow {target.tensorflow.version} reads up to {version}", "TF_GRAPH_DEF_VERSION"),
                ],
                [fix("upgrade TensorFlow", f"{target.interpreter.pip} install --upgrade tensorflow", safe=False)],
                causes=(),
            )
        if not saved.damages:
            yield from self._name(saved, target)
            yield from self._keras(saved, target)
            yield from self._assets(saved)
            yield from self._memory(saved, target)

    def _name(self, saved: Saved, target: TargetEnvironment) -> Iterator[Finding]:
        name = saved.path.name
        found = misnamed(saved, [each.version for each in _kerases(target)])
        if found is None:
            return
        rename = ["mv", "-n", str(saved.path), str(saved.path.with_suffix(found.suffix))]
        yield self.error(
            one_line(f"{name} {found.what}", 200),
            [(found.evidence, name)],
            [fix("give it the name of what it is", shlex.join(rename))],
            causes=(),
        )

    def _keras(self, saved: Saved, target: TargetEnvironment) -> Iterator[Finding]:
        """Only what is really in its configuration counts: some models of Keras 3 are read by Keras 2."""
        kerases = _kerases(target)
        wrote = next((version.partition(" ")[0] for writer, version in saved.writers if writer == "Keras"), "")
        if saved.new_in_keras_3 and _major(wrote) >= 3 and _all_of_major(kerases, 2):
            name, installed = saved.path.name, kerases[0].version
            yield self.error(
                one_line(f"{name} was saved by Keras {wrote}; the installed Keras {installed} cannot load it", 200),
                [(f"its configuration has {saved.new_in_keras_3}, which Keras 2 does not know", name)],
                [
                    fix(
                        "install a TensorFlow with Keras 3",
                        f"{target.interpreter.pip} install --upgrade 'tensorflow>=2.16'",
                        "or write it with Keras 3 by model.export(FOLDER), and load that by tf.saved_model.load",
                        safe=False,
                    )
                ],
                causes=(),
            )

    def _assets(self, saved: Saved) -> Iterator[Finding]:
        if saved.lacks:
            first = saved.lacks[0]
            more = f" (and {len(saved.lacks) - 1} more)" if len(saved.lacks) > 1 else ""
            yield self.warning(
                one_line(f"{saved.path.name} lacks its asset {first.name}{more}: what reads it will fail", 200),
                [(one_line(f"{each.name} is missing", 240), str(each.parent)) for each in saved.lacks[:4]],
                [fix("copy the whole folder again", f"ls -lR {shlex.quote(str(saved.path))}", safe=False)],
                causes=("corrupt-saved-model",),
            )

    def _memory(self, saved: Saved, target: TargetEnvironment) -> Iterator[Finding]:
        need = needed_memory(saved)
        limit = target.cgroup.memory_limit if target.cgroup else None
        available = target.machine.memory_available
        for size, whose, source in (
            (limit, "the control group allows", target.cgroup.path if target.cgroup else ""),
            (available, "are available", "/proc/meminfo"),
        ):
            if size is not None and BEFORE < size < need:  # less than TensorFlow itself needs is told elsewhere
                words = f"{whose} {in_words(size)}" if size is limit else f"{in_words(size)} {whose}"
                yield self.warning(
                    f"loading {saved.path.name} needs about {in_words(need)}, {words}",
                    [
                        (f"{in_words(saved.weights)} of weights, {LOADING[saved.kind]} times that at peak", "measured"),
                        (f"TensorFlow itself: {in_words(BEFORE)}", "measured"),
                        (words, source),
                    ],
                    [
                        fix(
                            "give it more memory",
                            f"docker run --memory={-(-need // MIB)}m …" if size is limit else "free -h",
                            "a SavedModel or checkpoint takes two thirds of what a .keras archive does",
                            safe=False,
                        )
                    ],
                    causes=("out-of-memory-kill",),
                )
                return


def _unknown(path: Path) -> FaultlensError:
    if path.is_file():
        formats = "SavedModel, .keras, .h5, checkpoint, .tflite"
        return FaultlensError(f"{path} is not in a format that faultlens knows ({formats}).")
    return FaultlensError(
        f"There is no saved model at {path}.",
        "--model takes a SavedModel folder, a .keras, .h5 or .tflite file, or the prefix of a checkpoint.",
    )


def _kerases(target: TargetEnvironment) -> list[Distribution]:
    """Which one a program takes is its own choice where there are two."""
    return [found for name in KERASES if (found := target.distribution(name)) is not None]


def _all_of_major(kerases: Sequence[Distribution], major: int) -> bool:
    return bool(kerases) and all(_major(each.version) == major for each in kerases)


def needed_memory(saved: Saved) -> int:
    """At the peak of loading, with the program around it; 0 where the format was not measured or is mapped."""
    return BEFORE + int(saved.weights * LOADING[saved.kind]) if saved.kind in LOADING else 0


def _graph_version(target: TargetEnvironment) -> int | None:
    if target.tensorflow is None:
        return None
    header = target.tensorflow.folder / "include/tensorflow/core/public/version.h"
    match = _GRAPH_VERSION.search(read_text(header) or "")
    return int(match[1]) if match else None


def _summary(undamaged: Sequence[Saved], deep: bool) -> str:
    """Whole is what was compared with its checksums; else nothing is known to be missing."""
    if not undamaged:
        return ""
    state = "whole" if all(saved.checked for saved in undamaged) else "complete"
    unchecked = not deep and any(not saved.checked and saved.kind in CHECKSUMMED for saved in undamaged)
    hint = " (checksums: --deep)" if unchecked else ""
    if len(undamaged) > 1:
        return f"{len(undamaged)} saved models are {state}, {in_words(sum(saved.size for saved in undamaged))}{hint}"
    saved = undamaged[0]
    written = f", written by {' '.join(saved.writers[0])}".partition(" on ")[0] if saved.writers else ""
    checked = ", checksums right" if saved.checked else ""
    return one_line(f"{saved.path.name}: {saved.kind}, {state}, {in_words(saved.size)}{written}{checked}{hint}", 110)


def _details(saved: Saved, target: TargetEnvironment) -> Iterator[str]:
    name = saved.path.name
    largest = f", the largest variable {in_words(saved.largest)}" if saved.largest else ""
    files = f"{saved.files} files" if saved.files > 1 else "1 file"
    yield f"{name}: {files}, {in_words(saved.size)}, weights {in_words(saved.weights)}{largest}"
    if saved.kind in LOADING:
        yield f"{name}: loading it takes about {in_words(needed_memory(saved))} at the peak"
    for writer, version in saved.writers:
        yield f"{name}: written by {writer} {version}"
        installed = target.distribution("keras") if writer == "Keras" else None
        if installed and _major(version) > _major(installed.version):
            yield f"{name}: Keras {installed.version} is older, and may not know all of its layers"
    keras = target.distribution("keras")
    if saved.kind == "SavedModel" and keras and _major(keras.version) >= 3:
        yield f"{name}: Keras 3 loads it by TFSMLayer or tf.saved_model.load, not by load_model"
    yield from (f"{name}: {note}" for note in saved.notes)
    if not saved.checked and saved.kind in CHECKSUMMED:
        yield f"{name}: its checksums were not compared (--deep)"


def _major(version: str) -> int:
    match = _MAJOR.match(version)
    return int(match[0]) if match else 0
