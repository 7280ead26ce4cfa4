"""`faultlens.data.check`: what goes wrong in silence is told, and ordinary pipelines are left in peace."""

from __future__ import annotations

import io
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from faultlens.data import check
from faultlens.data.pipeline.result import Concern
from faultlens.errors import FaultlensError

np = pytest.importorskip("numpy")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

Data = tf.data.Dataset
AUTOTUNE = tf.data.AUTOTUNE


def at(offset: int, size: int = 6) -> Any:
    """An array so many bytes behind a multiple of 64. It lives as long as its memory."""
    memory = np.zeros(size * 4 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + size * 4].view(np.float32)


def images(count: int = 20) -> Any:
    return np.random.default_rng(1).random((count, 8, 8, 3), np.float32)


def bad(result: Any) -> list[Concern]:
    return [concern for concern in result.concerns if concern.severity != "note"]


# ------------------------------------------------------------------------------------- ordinary pipelines


def fresh() -> Iterator[Any]:
    for number in range(12):
        yield np.full(6, number, np.float32)


def constant() -> Iterator[Any]:
    """The same memory each time, and nothing written to it."""
    buffer = at(0)
    for _ in range(12):
        yield buffer


def of_other_type() -> Iterator[Any]:
    """TensorFlow converts it, which is a copy."""
    buffer = np.zeros(6, np.float64)
    for number in range(12):
        buffer[:] = number
        yield buffer


def pairs() -> Iterator[Any]:
    for number in range(12):
        yield {"image": np.full((2, 3), number, np.uint8), "text": f"number {number}"}, number % 3


def sequences() -> Iterator[Any]:
    for number in range(30):
        yield np.arange(number % 7), np.arange(number % 4)


def whole_numbers() -> Iterator[Any]:
    """Of another type than promised, and all of them fit."""
    for number in range(12):
        yield np.float64(number), number, {"a": np.arange(3)}


def numpy_step(value: Any) -> Any:
    return np.full(6, value, np.float32)


NAMES, TABLE, SEEN = ["a", "b", "c"], np.arange(5, dtype=np.float32), [0]
LOG, OFFSETS = io.StringIO(), iter(range(1000))


def with_a_log(value: Any) -> Any:
    """A file of its own is read; the one that threads share is only written to."""
    file = io.BytesIO(bytes(int(value)))
    LOG.write(f"{value}\n")
    file.seek(0)
    return np.float32(len(file.read()) + next(OFFSETS) * 0)


class Cached:
    def __init__(self) -> None:
        self.results: dict[int, Any] = {}
        self.file, self.lock = io.BytesIO(bytes(100)), threading.Lock()

    def __call__(self, value: Any) -> Any:
        number = int(value)
        if number not in self.results:
            self.results[number] = np.full(6, self.read(number), np.float32)
        return self.results[number]

    def read(self, number: int) -> int:
        with self.lock:
            self.file.seek(number)
            return len(self.file.read())


def with_globals(value: Any) -> Any:
    SEEN.append(int(value))
    return TABLE[int(value) % 5] + len(NAMES[int(value) % 3])


def image_folder(tmp_path: Path) -> Any:
    for kind, number in itertools.product(("cat", "dog"), range(5)):
        (tmp_path / kind).mkdir(exist_ok=True)
        keras.utils.save_img(tmp_path / kind / f"{number}.png", images(1)[0])
    return keras.utils.image_dataset_from_directory(tmp_path, image_size=(8, 8), batch_size=4, verbose=False)


def ragged() -> Any:
    return Data.from_tensor_slices(tf.ragged.constant([[1.0], [2.0, 3.0], []] * 4))


def sparse() -> Any:
    return Data.from_tensor_slices(tf.sparse.from_dense(np.eye(8, dtype=np.float32)))


def records(tmp_path: Path) -> Any:
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        for number in range(9):
            writer.write(b"record %d" % number)
    return tf.data.TFRecordDataset(str(tmp_path / "a.tfrecord"))


def lines(tmp_path: Path) -> Any:
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2.5\n" * 9)
    return tf.data.experimental.make_csv_dataset(str(tmp_path / "a.csv"), 2, label_name="y", num_epochs=1)


vector = tf.TensorSpec([6], tf.float32)
ORDINARY: dict[str, Callable[[Path], Any]] = {
    "range": lambda _: Data.range(10),
    "slices": lambda _: Data.from_tensor_slices((images(), np.arange(20) % 3)),
    "one-hot, not batched": lambda _: Data.from_tensor_slices((images(), np.eye(20))),
    "batch": lambda _: Data.from_tensor_slices((images(), np.arange(20))).batch(8),
    "batch, weights": lambda _: Data.from_tensor_slices((images(), np.arange(20), np.ones(20))).batch(8).prefetch(2),
    "shuffle": lambda _: Data.from_tensor_slices(images()).shuffle(20).batch(4, drop_remainder=True),
    "cache": lambda _: Data.range(10).map(lambda x: x * 2).cache().repeat(3),
    "cache in a file": lambda path: Data.range(300).cache(str(path / "cache")),
    "parallel map": lambda _: Data.range(50).map(lambda x: tf.cast(x, tf.float32) / 2, num_parallel_calls=AUTOTUNE),
    "interleave": lambda _: Data.range(4).interleave(lambda x: Data.range(x, x + 5), num_parallel_calls=2),
    "zip": lambda _: Data.zip((Data.range(10), Data.range(10, 20))),
    "window": lambda _: Data.range(10).window(3, shift=1),
    "windows as tensors": lambda _: Data.range(10).window(3).flat_map(lambda part: part.batch(3)),
    "ragged": lambda _: ragged(),
    "ragged batches": lambda _: ragged().batch(4),
    "sparse": lambda _: sparse().batch(2),
    "strings": lambda _: Data.from_tensor_slices(["a", "bc", ""]).batch(2),
    "nested": lambda _: Data.from_tensor_slices({"a": {"b": np.arange(6)}, "c": (np.ones(6), np.ones((6, 2)))}),
    "padded": lambda _: Data.range(1, 9).map(lambda x: tf.fill([x], x)).padded_batch(3),
    "generator": lambda _: Data.from_generator(fresh, output_signature=vector).batch(5),
    "generator of dictionaries": lambda _: Data.from_generator(
        pairs,
        output_signature=(
            {"image": tf.TensorSpec([2, 3], tf.uint8), "text": tf.TensorSpec([], tf.string)},
            tf.TensorSpec([], tf.int32),
        ),
    ).batch(4),
    "generator of one array": lambda _: Data.from_generator(constant, output_signature=vector),
    "generator of another type": lambda _: Data.from_generator(of_other_type, tf.float32, tf.TensorShape([6])),
    "sequences of any length": lambda _: Data.from_generator(
        sequences, output_signature=(tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.int64))
    ),
    "generators side by side": lambda _: Data.range(3).interleave(
        lambda _: Data.from_generator(fresh, output_signature=vector), cycle_length=3, num_parallel_calls=3
    ),
    "numpy_function": lambda _: Data.range(20).map(
        lambda x: tf.numpy_function(numpy_step, [x], tf.float32), num_parallel_calls=4
    ),
    "py_function with globals": lambda _: Data.range(20).map(
        lambda x: tf.py_function(with_globals, [x], tf.float32), num_parallel_calls=4
    ),
    "numpy_function with a log": lambda _: Data.range(20).map(
        lambda x: tf.numpy_function(with_a_log, [x], tf.float32), num_parallel_calls=4
    ),
    "object with a cache": lambda _: Data.range(20).map(
        lambda x: tf.numpy_function(Cached(), [x % 5], tf.float32), num_parallel_calls=4
    ),
    "whole numbers of another type": lambda _: Data.from_generator(
        whole_numbers,
        output_signature=(
            tf.TensorSpec([], tf.int32),
            tf.TensorSpec([], tf.float32),
            {"a": tf.TensorSpec([None], tf.uint8)},
        ),
    ),
    "counter for seeds": lambda _: Data.zip((Data.range(20), (Data.counter(), Data.counter()))).map(
        lambda x, seed: tf.random.stateless_uniform([2], seed) + tf.cast(x, tf.float32)
    ),
    "enumerated by zip": lambda _: Data.zip((Data.range(1_000_000), Data.range(20).batch(3))),
    "images of any size": lambda _: Data.range(1, 20).map(lambda x: tf.zeros([x, x + 2, 3])),
    "ragged_batch": lambda _: Data.range(1, 20).map(lambda x: tf.range(x)).ragged_batch(4),
    "buckets": lambda _: (
        Data.range(1, 30)
        .map(lambda x: tf.range(x))
        .bucket_by_sequence_length(lambda x: tf.size(x), bucket_boundaries=[10, 20], bucket_batch_sizes=[4, 3, 2])
    ),
    "skipped errors": lambda _: (
        Data.range(-2, 20).map(lambda x: tf.debugging.check_numerics(1 / x, "")).ignore_errors()
    ),
    "random": lambda _: Data.random(seed=1).take(20).map(lambda x: tf.random.uniform([3]) + tf.cast(x, tf.float32)),
    "Keras image folder": image_folder,
    "Keras layers": lambda _: Data.from_tensor_slices(images()).batch(4).map(keras.layers.RandomFlip()),
    "time series": lambda _: keras.utils.timeseries_dataset_from_array(np.arange(30.0), np.arange(30), 5, batch_size=4),
    "TFRecord": records,
    "CSV": lines,
    "filter and enumerate": lambda _: Data.range(30).filter(lambda x: x % 3 == 0).enumerate(),
    "sampled": lambda _: Data.sample_from_datasets([Data.range(9), Data.range(9)], seed=1),
    "distribution options": lambda _: Data.range(9).with_options(tf.data.Options()).shard(2, 0),
    "half precision": lambda _: Data.range(9).map(lambda x: (tf.cast(x, tf.bfloat16), tf.cast(x, tf.float16))),
    "endless": lambda _: Data.range(9).repeat(),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_pipelines_are_left_in_peace(name: str, tmp_path: Path) -> None:
    result = check(ORDINARY[name](tmp_path))
    assert bad(result) == []
    assert result and result.elements > 0
    result.raise_if_bad()
    assert "nothing wrong" in str(result)


# ------------------------------------------------------------------------------------- memory that is used again


def reusing(offset: int, count: int = 30) -> Callable[[], Iterator[Any]]:
    def generate() -> Iterator[Any]:
        buffer = at(offset)
        for number in range(count):
            buffer[:] = number
            yield buffer

    return generate


LATER: dict[str, Callable[[Any], Any]] = {
    "at once": lambda data: data,
    "batch": lambda data: data.batch(4),
    "map": lambda data: data.map(lambda x: x * 2).batch(2).prefetch(1),
    "zip": lambda data: Data.zip((Data.range(30), data)).batch(3),
}


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("old", [False, True])
def test_a_generator_that_uses_its_buffer_again(later: str, old: bool) -> None:
    """Where TensorFlow takes it in place, batches are wrong; elsewhere it is luck that they are not."""
    how = {"output_types": tf.float32, "output_shapes": tf.TensorShape([6])} if old else {"output_signature": vector}
    for offset, severity in ((0, "error"), (16, "warning")):
        result = check(LATER[later](Data.from_generator(reusing(offset), **how)))
        [concern] = bad(result)
        assert (concern.kind, concern.severity) == ("reused-buffer", severity)
        assert ("changed while later ones were made" in concern.reason) == (offset == 0)
        assert not result


def test_two_buffers_in_turn_and_one_that_the_next_element_starts_within() -> None:
    def in_turn() -> Iterator[Any]:
        buffers = at(0), at(0)
        for number in range(30):
            buffers[number % 2][:] = number
            yield {"x": buffers[number % 2]}

    def moving() -> Iterator[Any]:
        buffer = at(16, 60)
        for number in range(12):
            buffer[number : number + 6] = number
            yield buffer[number : number + 6]

    [concern] = bad(check(Data.from_generator(in_turn, output_signature={"x": vector}).batch(4)))
    assert concern.severity == "error" and "Element 0, component ['x'], changed" in concern.reason
    [concern] = bad(check(moving))
    assert "changes when it makes element 1, and has parts of its memory" in concern.reason


def test_the_alarm_is_true() -> None:
    batches = Data.from_generator(reusing(0), output_signature=vector).batch(4)
    assert [int(value) for value in next(iter(batches))[:, 0]] == [3, 3, 3, 3]


def test_a_generator_function_can_be_given_itself() -> None:
    [concern] = bad(check(reusing(0)))
    assert (
        concern.severity == "error"
        and "element 0 changes when it makes element 1, which is in the same memory" in concern.reason
    )
    [concern] = bad(check(reusing(16)))
    assert concern.severity == "warning" and "is copied" in concern.reason
    assert check(fresh) and check(constant)
    with pytest.raises(TypeError, match="and not list"):
        check([1])


@pytest.mark.parametrize(("offset", "severity"), [(0, "error"), (16, "warning")])
def test_a_numpy_function_that_uses_its_buffer_again(offset: int, severity: str) -> None:
    buffer = at(offset)

    def fill(number: Any) -> Any:
        buffer[:] = number
        return buffer

    [concern] = bad(check(Data.range(20).map(lambda x: tf.numpy_function(fill, [x], tf.float32)).batch(4)))
    assert (concern.kind, concern.severity) == ("reused-buffer", severity)
    assert bad(check(Data.range(20).map(lambda x: tf.py_function(fill, [x], tf.float32)).batch(4))) == []  # copies


# ------------------------------------------------------------------------------------- threads


def parallel(function: Callable[..., Any], calls: int | None = 4) -> Any:
    return Data.range(8).map(lambda x: tf.py_function(function, [x], tf.float32), num_parallel_calls=calls)


def test_objects_that_threads_must_not_share(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(1000))
    with open(tmp_path / "a", "rb") as file:

        def reads(number: Any) -> Any:
            file.seek(int(number))
            return float(len(file.read(1)))

        [concern] = bad(check(parallel(reads)))
        assert concern.kind == "shared-object" and "reads() is called by several threads" in concern.reason
        assert "uses file, an open file" in concern.reason
        assert bad(check(parallel(reads, None))) == []
        lock = threading.Lock()

        def locked(number: Any) -> Any:
            with lock:
                return reads(number)

        assert bad(check(parallel(locked))) == []


def test_a_generator_that_is_shared() -> None:
    numbers = (float(number) for number in itertools.count())

    def asks(_: Any) -> Any:
        return next(numbers)

    [concern] = bad(check(parallel(asks, 2), elements=1))
    assert "uses numbers, a generator" in concern.reason


def test_an_object_with_a_file_and_an_array_for_all_threads() -> None:
    class Reader:
        def __init__(self) -> None:
            self.file, self.array = io.BytesIO(bytes(100)), np.zeros(3, np.float32)

        def read(self, number: Any) -> Any:
            self.file.seek(int(number))
            self.array[:] = len(self.file.read(1))
            return self.array

    concerns = bad(check(parallel(Reader().read)))
    assert {concern.reason.split(" uses ")[1].split(",")[0] for concern in concerns} == {"self.file", "self.array"}


def test_what_functions_do_that_are_called_by_the_function() -> None:
    class Reader:
        def __init__(self) -> None:
            self.file, self.counts = io.BytesIO(bytes(100)), {"reads": 0}

        def read(self, number: int) -> int:
            self.counts["reads"] += 1
            self.file.seek(number)
            return len(self.file.read())

    reader = Reader()
    result = check(parallel(lambda number: float(reader.read(int(number)))))
    [concern] = bad(result)
    assert "uses self.file, an open file: it has one position for all threads" in concern.reason
    assert any("self.counts, a dictionary: to count in it" in each.reason for each in result.concerns)


# ------------------------------------------------------------------------------------- values


def test_values_that_are_not_finite() -> None:
    values = images()
    values[7, 0, 0, 0], values[9, :, 0, 0] = np.nan, np.inf
    [concern] = bad(check(Data.from_tensor_slices({"image": values}).batch(4)))
    assert concern.reason == "Element 1, component ['image'], has 1 NaN of 768 values." and concern.element == 1


def test_more_images_than_labels() -> None:
    def batches() -> Iterator[Any]:
        for number in range(20):
            yield images(4), np.zeros(3 if number == 13 else 4)

    signature = (tf.TensorSpec([None, 8, 8, 3], tf.float32), tf.TensorSpec([None], tf.float64))
    [concern] = bad(check(Data.from_generator(batches, output_signature=signature)))
    assert concern.reason.startswith("Element 13 has 4 inputs and 3 labels; in 19 of 20 elements")


def test_inputs_with_names_and_labels_in_batches_side_by_side() -> None:
    inputs = Data.from_tensor_slices({"a": np.zeros(20), "b": np.zeros((20, 2))}).batch(8)
    labels = Data.from_tensor_slices(np.zeros(19)).batch(8)
    [concern] = bad(check(Data.zip((inputs, labels))))
    assert concern.reason == (
        "Element 2 has 4 inputs and 3 labels; in 2 of 3 elements there are as many of one as of the other."
    )
    [concern] = bad(check(Data.zip((Data.range(100), Data.range(99))).batch(8)))
    assert concern.reason == "Data sets of 100 and 99 elements are zipped."


def test_one_shape_that_is_not_like_the_others() -> None:
    def pictures() -> Iterator[Any]:
        for number in range(20):
            yield np.zeros((4, 4) if number == 6 else (4, 4 + number, 3))

    [concern] = bad(check(Data.from_generator(pictures, output_signature=tf.TensorSpec(None, tf.float64))))
    assert concern.reason == "Element 6 has the shape (4, 4); 19 of 20 elements have 3 dimensions."


def test_values_that_the_promised_type_cannot_hold() -> None:
    def labels() -> Iterator[Any]:
        for number in range(5):
            yield np.zeros(2), np.array([number, 0.75 if number == 2 else 1])

    signature = (tf.TensorSpec([2], tf.float32), tf.TensorSpec([2], tf.int32))
    dataset = Data.from_generator(labels, output_signature=signature)
    assert [int(label[1]) for _, label in dataset] == [1, 1, 0, 1, 1]
    [concern] = bad(check(dataset.batch(2)))
    assert concern.reason == (
        "The generator's element 2, component [1], has a value 0.75 (float64), of which TensorFlow makes 0, without a "
        "word: int32 was promised."
    )


@pytest.mark.parametrize(("size", "seen"), [(99, "99 elements looked at (all of them)"),
                                            (100, "100 elements looked at (all of them)"),
                                            (101, "100 elements looked at (the first ones)")])  # fmt: skip
def test_how_much_of_it_was_seen(size: int, seen: str) -> None:
    assert str(check(Data.range(size))).startswith(seen)


def test_what_lies_behind_the_first_elements_is_not_told() -> None:
    def ends_badly() -> Iterator[Any]:
        yield from range(5)
        raise ValueError("behind them")

    dataset = Data.from_generator(ends_badly, output_signature=tf.TensorSpec([], tf.int32))
    assert check(dataset, elements=5) and not check(dataset, elements=5).ended
    assert not check(dataset, elements=6)


def test_the_last_batch_is_a_note() -> None:
    result = check(Data.from_tensor_slices((images(), np.arange(20))).batch(8))
    assert [concern.reason for concern in result.concerns] == ["The last batch has 4 elements, the others 8."]
    assert result.ended and result.elements == 3
    assert "last-batch" in {concern.kind for concern in check(Data.range(10).batch(4)).concerns}
    assert check(Data.range(12).batch(4)).concerns == ()


def test_a_shape_that_is_not_as_promised() -> None:
    def wrong(number: Any) -> Any:
        return np.zeros(3 + int(number) // 5, np.float32)

    def promise(number: Any) -> Any:
        value = tf.numpy_function(wrong, [number], tf.float32)
        value.set_shape([3])
        return value

    result = check(Data.range(9).map(promise))
    [concern] = bad(result)
    assert (concern.kind, concern.element) == ("raises", 5)
    assert concern.reason.startswith("Element 5: InvalidArgumentError: Incompatible shapes at component 0")
    with pytest.raises(FaultlensError, match="expected \\[3\\] but got \\[4\\]"):
        result.raise_if_bad()


def test_what_raises_is_told_in_one_line() -> None:
    def told(dataset: Any) -> str:
        [concern] = bad(check(dataset))
        assert concern.kind == "raises"
        return concern.reason

    sizes = Data.range(3, 9).map(lambda x: tf.range(x))
    assert re.match(r"Element 0: InvalidArgumentError: Cannot .*batch.*\[[34]\].*\[[34]\]", told(sizes.batch(4)))
    assert told(Data.from_generator(sequences, output_signature=tf.TensorSpec([6], tf.int64))).startswith(
        "Element 0: InvalidArgumentError: TypeError: `generator` yielded an element"
    )
    divided = Data.range(3).map(lambda x: tf.py_function(lambda v: 1 / (int(v) - 1), [x], tf.float32))
    assert told(divided) == "Element 1: UnknownError: ZeroDivisionError: division by zero"


def test_a_generator_that_ends_for_ever() -> None:
    elements = fresh()
    [concern] = bad(check(Data.from_generator(lambda: elements, output_signature=vector)))
    assert (concern.kind, concern.reason) == ("one-pass", "The first pass had 12 elements, the second none.")


def test_two_passes_that_differ_are_a_note() -> None:
    reasons = [concern.reason for concern in check(Data.range(20).shuffle(20, seed=3)).concerns]
    assert reasons == ["The first 20 elements come in another order in two passes."]
    reasons = [concern.reason for concern in check(Data.range(5).map(lambda _: tf.random.uniform([]))).concerns]
    assert reasons == ["The first 5 elements are not the same in two passes."]


def test_nothing_at_all() -> None:
    assert [concern.kind for concern in bad(check(Data.range(0)))] == ["empty"]
