"""Calls that die in ops for arrays, matrices and strings: found as those of crashing_nn_ops.py were."""

from __future__ import annotations

from crashing_call import Call

HUGE = "tf.zeros([2**40,0,2**40])"  # of no bytes
FEW_UPDATES = "tf.zeros([2,2]), tf.zeros([1,2,4,1], tf.int32), tf.zeros([1])"

CALLS = (
    *(
        Call(f"TensorScatter{how}", f"tf.tensor_scatter_nd_{how.lower()}({FEW_UPDATES})")
        for how in ("Add", "Max", "Min")
    ),
    Call(
        "TensorScatterSub",
        "tf.tensor_scatter_nd_sub(tf.zeros([2,3,3,2]), tf.zeros([1,4,4,1], tf.int64), tf.zeros([1,4]))",
    ),
    Call("TensorScatterUpdate", f"tf.tensor_scatter_nd_update({FEW_UPDATES})"),
    Call("ScatterNd", "tf.scatter_nd(tf.zeros([1,2,4,1], tf.int32), tf.zeros([1]), [2,2])"),
    *(Call(how, f"tf.reduce_{how.lower()}({HUGE}, axis=1)") for how in ("Mean", "Min", "Prod", "Sum")),
    Call("Any", "tf.reduce_any(tf.zeros([2**40,0,2**40], tf.bool), axis=1)"),
    Call("Einsum", "tf.einsum('ab,bc->ac', tf.zeros([2**40,0]), tf.zeros([0,2**40]))"),
    Call("Svd", f"tf.raw_ops.Svd(input={HUGE})"),
    Call("TensorListFromTensor", "tf.raw_ops.TensorListFromTensor(tensor=tf.zeros([2**40,0]), element_shape=-1)"),
    Call("MatrixDiagPartV3", f"tf.raw_ops.MatrixDiagPartV3(input={HUGE}, k=1, padding_value=0.)"),
    Call(
        "DenseCountSparseOutput",
        "tf.raw_ops.DenseCountSparseOutput(values=tf.zeros([2**33,0], tf.int64), weights=tf.zeros([0]), "
        "binary_output=True)",
    ),
    Call(
        "MatrixDiagPartV2",
        f"tf.raw_ops.MatrixDiagPartV2(input={HUGE}, k=1, padding_value=0.)",
    ),
    Call(
        "MatrixSolveLs",
        "tf.raw_ops.MatrixSolveLs(matrix=tf.zeros([0,2**40], tf.float64), rhs=tf.zeros([0,2**40], tf.float64), "
        "l2_regularizer=tf.constant(0., tf.float64), fast=True)",
    ),
    Call("Pack", "tf.stack([tf.zeros([1]*254)])"),
    Call(
        "StringNGrams",
        "tf.raw_ops.StringNGrams(data=['123456'], data_splits=[0, 1], separator='a'*15, ngram_widths=[], left_pad='', "
        "right_pad='', pad_width=2**31-1, preserve_short_sequences=True)",
    ),
    Call(
        "Unbatch",
        "tf.raw_ops.Unbatch(batched_tensor=tf.zeros([3,3,1]), batch_index=tf.zeros([1], tf.int64), "
        "id=tf.fill([3,3,1], tf.constant(44, tf.int64)), timeout_micros=47)",
    ),
)
