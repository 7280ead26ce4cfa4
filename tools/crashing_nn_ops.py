"""Calls that die in ops for neural networks: convolution, pooling, quantization, recurrent cells, transforms.

They were found by varying the arguments of calls that advisories describe, one or two at a time: the calls that were
published are rejected today, those beside them are not."""

from __future__ import annotations

from crashing_call import Call

IMAGE = "tf.zeros([1,4,4,1])"
CELL = "cs_prev=tf.zeros([2]), h_prev=tf.zeros([2,3]), w=tf.zeros([7,12]), " + ", ".join(
    f"{name}=tf.zeros([3])" for name in ("wci", "wcf", "wco")
)
QUINT8, QINT8 = ("tf.cast(tf.zeros({}), tf." + name + ")" for name in ("quint8", "qint8"))
FEW_WINDOWS = "strides=[1], padding='SAME'"

CONVOLUTIONS = (
    Call("Conv2D", f"tf.raw_ops.Conv2D(input={IMAGE}, filter={IMAGE}, strides=[1,2**40,1,1], padding='VALID')"),
    Call(
        "Conv3D",
        "tf.raw_ops.Conv3D(input=tf.zeros([1,2,2,2,1]), filter=tf.zeros([1,1,1,1,1]), strides=[1]*5, padding='VALID', "
        "dilations=[2**40,1,1,1,1])",
    ),
    Call(
        "Conv2DBackpropFilter",
        "tf.raw_ops.Conv2DBackpropFilter(input=tf.zeros([3]), filter_sizes=[1,1,1,1], "
        "out_backprop=tf.ones([1,1,1,1]), strides=[1,6,4,1], padding='VALID')",
    ),
    Call(
        "Conv3DBackpropFilterV2",
        "tf.raw_ops.Conv3DBackpropFilterV2(input=tf.zeros([1,2,2,2,1]), filter_sizes=[1,1,1,1,1], "
        "out_backprop=tf.zeros([1,2,2,2,1]), strides=[1], padding='SAME')",
    ),
    Call(
        "DepthwiseConv2dNative",
        f"tf.raw_ops.DepthwiseConv2dNative(input=tf.zeros([3]), filter={IMAGE}, strides=[1,1,1,1], padding='SAME')",
    ),
    Call(
        "DepthwiseConv2dNativeBackpropFilter",
        f"tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(input={IMAGE}, filter_sizes=[2,2,1,1], out_backprop={IMAGE}, "
        f"{FEW_WINDOWS})",
    ),
    Call(
        "DepthwiseConv2dNativeBackpropInput",
        "tf.raw_ops.DepthwiseConv2dNativeBackpropInput(input_sizes=[1,4,4,1], filter=tf.zeros([2,2,1,1]), "
        f"out_backprop={IMAGE}, {FEW_WINDOWS})",
    ),
)
POOLING = (
    Call(
        "AvgPoolGrad",
        "tf.raw_ops.AvgPoolGrad(orig_input_shape=[1,4,4,1], grad=tf.zeros([]), ksize=[1,2,2,1], strides=[1,2,2,1], "
        "padding='SAME')",
    ),
    Call(
        "AvgPool3DGrad",
        "tf.raw_ops.AvgPool3DGrad(orig_input_shape=[1,6,3,7,1], grad=tf.zeros([3]), ksize=[1]*5, strides=[1]*5, "
        "padding='SAME')",
    ),
    Call(
        "MaxPool3D",
        "tf.raw_ops.MaxPool3D(input=tf.zeros([1,2,2,2,1]), ksize=[1,2**40,1,1,1], strides=[1]*5, padding='SAME')",
    ),
    Call(
        "QuantizedAvgPool",
        f"tf.raw_ops.QuantizedAvgPool(input={QUINT8.format('[1,4,4,2]')}, min_input=0., max_input=1., ksize=[1,2,2,1], "
        f"{FEW_WINDOWS})",
    ),
    Call(
        "QuantizedMaxPool",
        f"tf.raw_ops.QuantizedMaxPool(input={QUINT8.format('[1,4,4,2]')}, min_input=0., max_input=1., ksize=[], "
        "strides=[1,1,1,1], padding='SAME')",
    ),
    Call(
        "FractionalMaxPoolGrad",
        "tf.raw_ops.FractionalMaxPoolGrad(orig_input=tf.ones([1,7,13,1]), orig_output=tf.ones([1,7,13,1]), "
        "out_backprop=tf.ones([1,7,13,1]), row_pooling_sequence=tf.zeros([5], tf.int64), "
        "col_pooling_sequence=tf.fill([5], tf.constant(-2**31, tf.int64)), overlapping=True)",
    ),
)
QUANTIZATION = (
    Call(
        "Dequantize",
        f"tf.raw_ops.Dequantize(input={QUINT8.format('[5,10]')}, min_range=[-10.], max_range=[1.,2.,3.,4.,5.], "
        "mode='SCALED')",
    ),
    Call(
        "FakeQuantWithMinMaxVarsPerChannel",
        "tf.raw_ops.FakeQuantWithMinMaxVarsPerChannel(inputs=tf.zeros([]), min=tf.zeros([4]), max=tf.ones([4]))",
    ),
    Call(
        "FakeQuantWithMinMaxVarsPerChannelGradient",
        "tf.raw_ops.FakeQuantWithMinMaxVarsPerChannelGradient(gradients=tf.zeros([]), inputs=tf.zeros([]), "
        "min=tf.zeros([4]), max=tf.ones([4]))",
    ),
    Call(
        "QuantizeAndDequantizeV3",
        "tf.raw_ops.QuantizeAndDequantizeV3(input=tf.zeros([2]), input_min=tf.zeros([0]), input_max=1., num_bits=8)",
    ),
    Call(
        "QuantizeV2",
        "tf.raw_ops.QuantizeV2(input=tf.zeros([2,3]), min_range=tf.zeros([0]), max_range=1., T=tf.quint8, "
        "mode='MIN_FIRST')",
    ),
    Call(
        "QuantizedMatMulWithBiasAndDequantize",
        f"tf.raw_ops.QuantizedMatMulWithBiasAndDequantize(a={QUINT8.format('[2,3]')}, b={QINT8.format('[]')}, "
        "bias=tf.zeros([2]), min_a=0., max_a=1., min_b=0., max_b=1., min_freezed_output=0., max_freezed_output=1., "
        "Toutput=tf.float32, transpose_a=True)",
    ),
)
OTHERS = (
    Call("LSTMBlockCell", f"tf.raw_ops.LSTMBlockCell(x=tf.zeros([2,4]), {CELL}, b=tf.zeros([12]))"),
    Call("IRFFT", "tf.raw_ops.IRFFT(input=tf.zeros([10,13], tf.complex64), fft_length=[0])"),
    Call("RFFT", "tf.raw_ops.RFFT(input=tf.zeros([1]), fft_length=[0])"),
    Call("RFFT2D", "tf.raw_ops.RFFT2D(input=tf.zeros([4,4]), fft_length=[0,0])"),
    Call("EncodePng", "tf.raw_ops.EncodePng(image=tf.zeros([0,0,3], tf.uint8))"),
)
CALLS = (*CONVOLUTIONS, *POOLING, *QUANTIZATION, *OTHERS)
