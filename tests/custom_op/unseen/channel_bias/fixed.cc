#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {

REGISTER_OP("ChannelBias")
    .Input("x: T")
    .Input("bias: T")
    .Output("y: T")
    .Attr("T: {float, double}")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle x, bias;
      TF_RETURN_IF_ERROR(c->WithRankAtLeast(c->input(0), 1, &x));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &bias));
      shape_inference::DimensionHandle channels;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(x, -1), c->Dim(bias, 0), &channels));
      c->set_output(0, x);
      return absl::OkStatus();
    });

template <typename T>
class ChannelBiasOp : public OpKernel {
 public:
  explicit ChannelBiasOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    const Tensor& bias = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVectorOrHigher(x.shape()),
                errors::InvalidArgument("x needs a channel dimension"));
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(bias.shape()),
                errors::InvalidArgument("bias must be a vector, got ", bias.shape().DebugString()));
    const int64_t channels = x.dim_size(x.dims() - 1);
    OP_REQUIRES(ctx, bias.NumElements() == channels,
                errors::InvalidArgument("bias has ", bias.NumElements(), " values for ", channels, " channels"));

    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));
    if (x.NumElements() == 0) return;

    auto in = x.flat_inner_dims<T>();
    auto b = bias.vec<T>();
    auto out = y->flat_inner_dims<T>();
    for (int64_t row = 0; row < in.dimension(0); ++row) {
      for (int64_t c = 0; c < channels; ++c) out(row, c) = in(row, c) + b(c);
    }
  }
};

#define REGISTER_CPU(T) \
  REGISTER_KERNEL_BUILDER(Name("ChannelBias").Device(DEVICE_CPU).TypeConstraint<T>("T"), ChannelBiasOp<T>)
REGISTER_CPU(float);
REGISTER_CPU(double);
#undef REGISTER_CPU

}  // namespace tensorflow
