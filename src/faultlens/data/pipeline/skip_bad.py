"""`skip_bad`: the same data set without what a scan found to be bad.

Readers of TFRecord files stop at the first bad record. Here each file is read in runs of whole records, which the scan
knows; all of it happens in the graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from faultlens.data.findings import TFRECORD, Findings, Given, changed, normal, same
from faultlens.data.gaps import ALL, END, Run, gaps, runs, whole_file
from faultlens.data.quarantine.packed_records import tail
from faultlens.data.source import is_remote, opened
from faultlens.errors import FaultlensError
from faultlens.records.scan import Identity
from faultlens.records.severity import Severity
from faultlens.text.file_names import to_name, to_text

BUFFER = 256 << 10  # what TensorFlow reads at once where nothing is said
CLEAN_COPY = "Let `faultlens scan --quarantine` write a clean copy."
HERE = "Put it before everything else: skip_bad(tf.data.TFRecordDataset(files), findings).map(…)."


def skip_bad(
    dataset: Any,
    findings: Given,
    *,
    severity: Severity = "error",
    compression_type: str | None = None,
) -> Any:
    """The records of a `TFRecordDataset`, or the names in a data set of file names, without those that are bad.

    `dataset` may also be the path of a TFRecord file, or several; then `compression_type` is what `TFRecordDataset`
    would be told. `findings`: a `Scan`, flaws, or the file that `faultlens scan --json FILE` wrote.
    With severity="warning" what is merely unlike the rest is left out too."""
    import tensorflow as tf

    known = Findings(findings, severity)
    if isinstance(dataset, (str, os.PathLike)):
        dataset = [dataset]
    if isinstance(dataset, Sequence):
        dataset = tf.data.TFRecordDataset([os.fsencode(path) for path in dataset], compression_type)
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            f"skip_bad takes a tf.data.Dataset or paths of TFRecord files, and not {type(dataset).__name__}."
        )
    if isinstance(dataset, tf.data.TFRecordDataset):
        return _good_records(dataset, known)
    if dataset.element_spec == tf.TensorSpec([], tf.string) and not _reads_records(dataset):
        return _good_files(dataset, known)
    raise TypeError(f"skip_bad needs a TFRecordDataset itself, or a data set of file names. {HERE}")


def _good_records(dataset: Any, known: Findings) -> Any:
    import tensorflow as tf

    try:
        names, parallel = dataset._filenames, dataset._num_parallel_reads
        compression, buffer = dataset._compression_type or "", dataset._buffer_size or BUFFER
    except AttributeError:
        raise TypeError(
            "This version of TensorFlow does not tell which files the data set reads: pass their names to skip_bad."
        ) from None
    spellings = _spellings(names, known)
    if not spellings:
        return dataset
    bad = list(dict.fromkeys(spellings.values()))
    table = [_runs(path, known, bool(compression)) for path in bad]
    table.append([Run(0, ALL)])  # every other file
    numbers = _table(tf, {name: bad.index(path) for name, path in spellings.items()}, default=len(bad))
    starts = tf.constant([run.start for each in table for run in each], tf.int64)
    counts = tf.constant([run.records for each in table for run in each], tf.int64)
    ends = tf.constant(list(accumulate(map(len, table))), tf.int64)
    record = tf.TensorSpec([], tf.string)

    def records(name: Any) -> Any:
        number = numbers.lookup(name)
        end = ends[number]
        first = tf.where(number > 0, ends[tf.maximum(number - 1, 0)], 0)
        parts = tf.data.Dataset.from_tensor_slices((starts[first:end], counts[first:end]))
        return parts.flat_map(lambda start, count: run(name, start, count))

    def run(name: Any, start: Any, count: Any) -> Any:
        # The public class knows no offsets; its kernel does.
        variant = tf.raw_ops.TFRecordDatasetV2(
            filenames=[name], compression_type=compression, buffer_size=buffer, byte_offsets=[start]
        )
        return tf.data.experimental.from_variant(variant, record).take(count)

    if parallel is None:
        return names.flat_map(records)
    cycle = None if parallel == tf.data.AUTOTUNE else parallel
    return names.interleave(records, cycle_length=cycle, block_length=1, num_parallel_calls=parallel)


def _good_files(names: Any, known: Findings) -> Any:
    import tensorflow as tf

    spellings = _spellings(names, known)
    if not spellings:
        return names
    bad = _table(tf, dict.fromkeys(spellings, 1), default=0)
    return names.filter(lambda name: bad.lookup(name) == 0)


def _runs(path: str, known: Findings, compressed: bool) -> list[Run]:
    file = known.file(path)
    if file and not file.format.startswith(TFRECORD):
        raise FaultlensError(
            f"{path} is no TFRecord file ({file.format}).",
            "To leave out whole files, give skip_bad a data set of their names: tf.data.Dataset.list_files(…).",
        )
    if path in known.untold:
        raise FaultlensError(f"{path} has more bad records than the findings list.", "Leave it out.")
    size = _size_now(path, file.identity if file else None)
    bad = gaps(known.flaws(path))
    if not size or whole_file(known.flaws(path), compressed):
        return []
    if not compressed and bad[-1].start >= size:
        raise changed(path)
    good = runs(bad, END if compressed else size)
    if good is None:
        raise FaultlensError(f"The findings do not tell which records of {path} are bad.", CLEAN_COPY)
    return _ended(path, good) if compressed else good


def _ended(path: str, good: list[Run]) -> list[Run]:
    """What is compressed may end early: the last run gets its count, so that nobody reads on."""
    with opened(path) as source:
        rest = tail(source, good[-1].start if good and good[-1].records == ALL else 0)
    if rest.problem and not rest.cut:
        raise FaultlensError(f"TensorFlow cannot read {path} up to what is bad: {rest.problem}.", CLEAN_COPY)
    return [run if run.records != ALL else Run(run.start, rest.records) for run in good]


def _size_now(path: str, scanned: Identity | None) -> int:
    import tensorflow as tf

    try:
        if is_remote(path):
            now = Identity(size=tf.io.gfile.stat(os.fsencode(to_name(path))).length)
        else:
            state = os.stat(to_name(path))
            now = Identity(size=state.st_size, modified=state.st_mtime_ns)
    except (OSError, tf.errors.OpError) as error:
        raise FaultlensError(f"{path} cannot be found any more.", "Scan the data again.") from error
    if scanned is not None and not same(scanned, now):
        raise changed(path)
    return now.size


def _spellings(names: Any, known: Findings) -> dict[str, str]:
    """Names as the pipeline may have them → bad files. Where they can be listed now, only those that it has."""
    import tensorflow as tf

    bad = set(known.paths())
    if tf.executing_eagerly() and int(names.cardinality()) >= 0:
        listed = (os.fsdecode(name) for name in names.as_numpy_iterator())
        known_as = {name: normal(to_text(name)) for name in listed}
        return {name: path for name, path in known_as.items() if path in bad}
    return {spelling: path for path in bad for spelling in _all_spellings(to_name(path))}


def _all_spellings(path: str) -> Iterable[str]:
    if is_remote(path):
        return (path,)
    relative = os.path.relpath(path)
    return (path, relative, os.path.join(os.curdir, relative), f"file://{path}")


def _table(tf: Any, entries: dict[str, int], default: int) -> Any:
    keys = tf.constant([os.fsencode(name) for name in entries], tf.string, [len(entries)])
    values = tf.constant(list(entries.values()), tf.int64, [len(entries)])
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


def _reads_records(dataset: Any) -> bool:
    """A pipeline of records also consists of strings, and must not be taken for one of names."""
    import tensorflow as tf

    try:
        graph = dataset._as_serialized_graph(external_state_policy=tf.data.experimental.ExternalStatePolicy.IGNORE)
        text = bytes(graph.numpy())
    except (AttributeError, tf.errors.OpError):
        return True
    return b"TFRecordDataset" in text
