"""Run with `make test`, or `python -m unittest`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
from scaled_rows import scaled_rows

ERRORS = (tf.errors.InvalidArgumentError, ValueError)  # eager code, and graphs while they are built


class ScaledRowsTest(tf.test.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.values = np.arange(12.0).reshape(4, 3)
        self.rows = np.array([3, 0, 3])

    def test_every_type(self) -> None:
        for dtype in (np.float32, np.float64):
            for index in (np.int32, np.int64):
                picked = scaled_rows(self.values.astype(dtype), self.rows.astype(index), factor=2.0)
                self.assertEqual(picked.dtype, dtype)
                self.assertAllEqual(picked, 2.0 * self.values[self.rows])

    def test_other_types_are_refused(self) -> None:
        with self.assertRaises((*ERRORS, tf.errors.NotFoundError, TypeError)):
            scaled_rows(self.values.astype(np.int32), self.rows)

    def test_nothing_in_it(self) -> None:
        self.assertEqual(scaled_rows(self.values, np.zeros(0, np.int32)).shape, (0, 3))
        self.assertEqual(scaled_rows(np.zeros((4, 0)), self.rows).shape, (3, 0))
        with self.assertRaises(ERRORS):
            scaled_rows(np.zeros((0, 3)), self.rows)

    def test_wrong_ranks_are_refused(self) -> None:
        for rank in range(9):
            if rank != 2:
                with self.assertRaises(ERRORS):
                    scaled_rows(np.zeros([1] * rank), self.rows)
            if rank != 1:
                with self.assertRaises(ERRORS):
                    scaled_rows(self.values, np.zeros([1] * rank, np.int32))

    def test_rows_out_of_range_are_refused(self) -> None:
        for bad in (-1, 4, 2**31 - 1, -(2**31)):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r"rows\[1\] is out of range"):
                scaled_rows(self.values, np.array([0, bad], np.int32))

    def test_graph_with_shapes_known_or_not(self) -> None:
        for values, rows in (([4, 3], [3]), ([None, None], [None]), (None, None)):
            signature = [tf.TensorSpec(values, tf.float64), tf.TensorSpec(rows, tf.int64)]
            function = tf.function(scaled_rows, input_signature=signature)
            self.assertAllEqual(function(self.values, self.rows), self.values[self.rows])

    def test_shape_function_agrees_with_the_kernel(self) -> None:
        concrete = tf.function(scaled_rows).get_concrete_function(
            tf.TensorSpec([4, None], tf.float64), tf.TensorSpec([3], tf.int64)
        )
        self.assertEqual(concrete.output_shapes.as_list(), [3, None])
        with self.assertRaises(ValueError):
            tf.function(scaled_rows).get_concrete_function(tf.TensorSpec([4], tf.float64), tf.TensorSpec([3], tf.int64))

    def test_buffer_that_begins_anywhere(self) -> None:
        data = tf.data.Dataset.from_tensor_slices(np.arange(24.0, dtype=np.float32).reshape(2, 4, 3))
        for number, values in enumerate(data.map(lambda values: scaled_rows(values[1:], [2, 0]))):
            self.assertAllEqual(values, np.arange(24.0).reshape(2, 4, 3)[number, 1:][[2, 0]])

    def test_gradient(self) -> None:
        theory, numeric = tf.test.compute_gradient(
            lambda values: scaled_rows(values, self.rows, factor=1.5), [tf.constant(self.values)]
        )
        self.assertAllClose(theory, numeric)

    def test_many_threads_at_once(self) -> None:
        expected = self.values[self.rows]
        with ThreadPoolExecutor(8) as threads:
            for picked in threads.map(lambda _: scaled_rows(self.values, self.rows), range(200)):
                self.assertAllEqual(picked, expected)


if __name__ == "__main__":
    tf.test.main()
