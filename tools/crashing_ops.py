"""Ops that die on bad arguments instead of raising: the call, and the issue it is known under.

tools/try_ops.py runs them on the TensorFlow at hand; a call must be legal Python and return or raise on a sound one."""

from __future__ import annotations

import crashing_array_ops
import crashing_nn_ops
from crashing_call import Call

LSTM = "x=tf.zeros([2,1,3]), cs_prev=tf.zeros([1,2]), h_prev=tf.zeros([1,2]), w=tf.zeros([5,8]), b=tf.zeros([8]), " + (
    ", ".join(f"{name}=tf.zeros([2])" for name in ("wci", "wcf", "wco"))
)
LSTM_GRAD = ", ".join(
    f"{name}=tf.zeros([2,1,2])" for name in ("i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad")
)
CELL_GRAD = ", ".join(f"{name}=tf.zeros([1,2])" for name in ("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"))
SAMPLER = "true_classes=tf.constant([[1]], tf.int64), num_true=1, num_sampled=1, unique=True, range_max=2**40"
QUANTIZED = "min_input=0., max_input=1., min_filter=0., max_filter=1., strides=[1,1,1,1], padding='VALID'"
NO_LIST = "element_shape=tf.constant([10**8, 9*10**8, 9*10**8], tf.int64), element_dtype=tf.int32"
# Four frames of 32 by 32: a sound file.
ANIMATED_WEBP = (
    "52494646ea00000057454250565038580a000000020000001f00001f0000414e494d06000000000000000000414e4d462800"
    "00000000000000001f00001f0000000000025650384c0f0000002f1fc007000710d1fffe0722a2ff0100414e4d462a000000"
    "0000000000001f00001f0000000000005650384c110000002f1fc0070007508aa2b4beff8188e87f0000414e4d462a000000"
    "0000000000001f00001f0000000000005650384c110000002f1fc007000750944275bdff8188e87f0000414e4d462a000000"
    "0000000000001f00001f0000000000005650384c110000002f1fc0070007509ee235bcff8188e87f0000"
)

CALLS = (
    Call(
        "DecodeImage",
        f"[tf.io.decode_image(bytes.fromhex('{ANIMATED_WEBP}'), expand_animations=False) for _ in range(20)]",
    ),
    Call("BlockLSTMV2", f"tf.raw_ops.BlockLSTMV2(seq_len_max=tf.constant(9, tf.int64), {LSTM})", 124974),
    Call("BlockLSTM", f"tf.raw_ops.BlockLSTM(seq_len_max=tf.constant(9, tf.int64), {LSTM})"),
    Call(
        "BlockLSTMGradV2",
        f"tf.raw_ops.BlockLSTMGradV2(seq_len_max=tf.constant(9, tf.int64), {LSTM}, {LSTM_GRAD}, use_peephole=False)",
        106407,
    ),
    Call(
        "LSTMBlockCellGrad",
        f"tf.raw_ops.LSTMBlockCellGrad({LSTM.replace('x=tf.zeros([2,1,3])', 'x=1.0')}, {CELL_GRAD}, use_peephole=True)",
    ),
    Call("DepthToSpace", "tf.nn.depth_to_space(tf.zeros([3,2,3,12]), 2**29)", 76724),
    Call(
        "LRNGrad",
        "tf.raw_ops.LRNGrad(input_grads=tf.ones([1,2,2,4]), input_image=tf.ones([1,2,2,4]), output_image=tf.ones([1]))",
        66761,
    ),
    Call(
        "FusedPadConv2D",
        "tf.raw_ops.FusedPadConv2D(input=1.0, paddings=tf.zeros([4,2], tf.int32), filter=tf.zeros([1,1,1,1]), "
        "mode='REFLECT', strides=[1,1,1,1], padding='SAME')",
        67527,
    ),
    Call(
        "Conv3DBackpropInputV2",
        "tf.raw_ops.Conv3DBackpropInputV2(input_sizes=[5], filter=tf.zeros([7,6,9,2,3]), "
        "out_backprop=tf.ones([1,1,1,1,1]), strides=[1]*5, padding='VALID', data_format='NCDHW')",
        94114,
    ),
    Call(
        "QuantizedConv2D",
        f"tf.raw_ops.QuantizedConv2D(input=tf.quantization.quantize(tf.zeros([1,10,2,1]), 0., 1., tf.quint8).output, "
        f"filter=tf.quantization.quantize(tf.zeros([3,3,1,3]), 0., 1., tf.quint8).output, {QUANTIZED})",
        94045,
    ),
    Call("ParallelConcat", "tf.raw_ops.ParallelConcat(values=[tf.zeros([1])], shape=[2**40, 2**40])", 108663),
    Call(
        "RaggedTensorToTensor",
        "tf.raw_ops.RaggedTensorToTensor(shape=tf.constant(-1, tf.int64), values=tf.zeros([0], tf.int32), "
        "default_value=0, row_partition_tensors=[tf.constant([0,1,6], tf.int64)], row_partition_types=['ROW_SPLITS'])",
        85240,
    ),
    Call(
        "UpperBound",
        "tf.raw_ops.UpperBound(sorted_inputs=tf.zeros([2,3]), values=tf.zeros([2,1,0]), out_type=tf.int32)",
        59406,
    ),
    Call(
        "LowerBound",
        "tf.raw_ops.LowerBound(sorted_inputs=tf.zeros([2,3]), values=tf.zeros([2,1,0]), out_type=tf.int32)",
    ),
    Call("ThreadUnsafeUnigramCandidateSampler", f"tf.raw_ops.ThreadUnsafeUnigramCandidateSampler({SAMPLER})", 60200),
    Call("LearnedUnigramCandidateSampler", f"tf.raw_ops.LearnedUnigramCandidateSampler({SAMPLER})"),
    Call("ExpandDims", "tf.expand_dims(tf.expand_dims(tf.zeros([1]*254), 0), 0)"),
    Call(
        "RecordInput",
        "tf.raw_ops.RecordInput(file_pattern='none-*', file_parallelism=-1, batch_size=1, file_buffer_size=1)",
        59012,
    ),
    Call(
        "ParseExampleV2",
        "tf.io.parse_example([tf.train.Example().SerializeToString()], "
        "{'a': tf.io.FixedLenSequenceFeature([0], tf.int64, allow_missing=True)})",
        123476,
    ),
    Call(
        "ParseSequenceExampleV2",
        "tf.io.parse_single_sequence_example(tf.train.SequenceExample().SerializeToString(), "
        "sequence_features={'a': tf.io.FixedLenSequenceFeature([0], tf.int64)})",
    ),
    Call(
        "EmptyTensorList",
        f"tf.function(lambda: tf.raw_ops.EmptyTensorList({NO_LIST}, max_num_elements=16), jit_compile=True)()",
        60758,
    ),
    Call(
        "TensorListReserve",
        f"tf.function(lambda: tf.raw_ops.TensorListReserve({NO_LIST}, num_elements=4), jit_compile=True)()",
    ),
    Call("TensorArrayV3", "tf.raw_ops.TensorArrayV3(size=2**31-1, dtype=tf.float32)", 61563),
    Call(
        "CropAndResizeGradImage",
        "tf.raw_ops.CropAndResizeGradImage(grads=tf.zeros([1,2,2,1]), boxes=tf.constant([[float('inf'),0,1,1]]), "
        "box_ind=[0], image_size=[1,4,4,1], T=tf.float32)",
    ),
    Call(
        "CTCLoss",
        "tf.raw_ops.CTCLoss(inputs=tf.zeros([1,1,2]), labels_indices=tf.constant([[0,999999]], tf.int64), "
        "labels_values=[1], sequence_length=[1])",
    ),
    Call(
        "Conv2DBackpropInput",
        "tf.nn.conv2d_transpose(tf.zeros([1,1,1,1]), tf.zeros([1,1,1,1]), [2**31-1, 2**31-1, 2**31-1, 1], 1)",
    ),
    Call("Qr", "tf.raw_ops.Qr(input=tf.zeros([2**40,0,2**40]), full_matrices=True)"),
    Call("MatMul", "tf.raw_ops.MatMul(a=tf.zeros([2**40,0]), b=tf.zeros([0,2**40]))"),
    Call("BatchMatMulV2", "tf.raw_ops.BatchMatMulV2(x=tf.zeros([2**40,0]), y=tf.zeros([0,2**40]))"),
    Call(
        "MatrixSquareRoot",
        "tf.raw_ops.MatrixSquareRoot(input=tf.zeros([10,15,0,4,5849693008847355793], tf.float64))",
        60035,
    ),
    Call("Max", "tf.reduce_max(tf.zeros([2**40,0,2**40], tf.int64), axis=1)", 108891),
    Call("All", "tf.reduce_all(tf.zeros([2**40,0,2**40], tf.bool), axis=1)"),
    Call("ShuffleDataset", "list(tf.data.Dataset.range(3).shuffle(2**60))", 113167),
    Call(
        "ParallelInterleaveDataset",
        "list(tf.data.Dataset.range(3).interleave(lambda x: tf.data.Dataset.range(2), cycle_length=2**31-1, "
        "num_parallel_calls=2))",
    ),
    Call(
        "InitializeTableFromTextFileV2",
        "tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(tf.__file__, tf.string, -2, tf.int64, -1, "
        "vocab_size=2**62), 1)",
        78831,
    ),
    Call("FIFOQueueV2", "tf.queue.FIFOQueue(False, 10**30, (10**38, False), 10**28)", 93531),
    Call("MaxPool", "tf.nn.max_pool2d(tf.zeros([1,2,2,1]), [1,10**12,1,1], 1, 'SAME')", 61601),
    Call(
        "NonMaxSuppressionV4",
        "tf.raw_ops.NonMaxSuppressionV4(boxes=tf.zeros([2,4]), scores=[1.,2.], max_output_size=2**31-1, "
        "iou_threshold=.5, score_threshold=0., pad_to_max_output_size=True)",
    ),
    Call(
        "CombinedNonMaxSuppression",
        "tf.raw_ops.CombinedNonMaxSuppression(boxes=tf.zeros([1,2,1,4]), scores=tf.zeros([1,2,1]), "
        "max_output_size_per_class=2**31-1, max_total_size=2**31-1, iou_threshold=.5, score_threshold=0.)",
    ),
    Call(
        "TensorListResize",
        "tf.raw_ops.TensorListResize(input_handle=tf.raw_ops.EmptyTensorList(element_shape=-1, max_num_elements=1, "
        "element_dtype=tf.float32), size=2**31-1)",
    ),
    Call(
        "TensorListScatterV2",
        "tf.raw_ops.TensorListScatterV2(tensor=tf.zeros([1]), indices=[2**31-1], element_shape=-1, num_elements=-1)",
    ),
    Call(
        "SparseConcat",
        "tf.raw_ops.SparseConcat(indices=[tf.constant([[9]], tf.int64)]*2, values=[[1]]*2, "
        "shapes=[tf.constant([2**62], tf.int64)]*2, concat_dim=0)",
    ),
    Call("to_dlpack", "tf.experimental.dlpack.to_dlpack(tf.constant('a'))"),
    Call(
        "DispatchGrpcDataServer",
        "tf.data.experimental.service.DispatchServer(tf.data.experimental.service.DispatcherConfig(), start=False)",
        76720,
    ),
    Call(
        "set_intra_op_parallelism_threads",
        "tf.config.threading.set_intra_op_parallelism_threads(-1); tf.constant(1)",
        88422,
    ),
    *crashing_nn_ops.CALLS,
    *crashing_array_ops.CALLS,
)
