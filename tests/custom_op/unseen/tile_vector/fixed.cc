#include <algorithm>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("TileVector")
    .Input("x: float")
    .Input("times: int32")
    .Output("tiled: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle x, times;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &x));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &times));
      c->set_output(0, c->Vector(c->UnknownDim()));
      return absl::OkStatus();
    });

class TileVectorOp : public OpKernel {
 public:
  explicit TileVectorOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    const Tensor& times_tensor = context->input(1);
    OP_REQUIRES(context, x.dims() == 1, errors::InvalidArgument("x must be a vector"));
    OP_REQUIRES(context, times_tensor.dims() == 0, errors::InvalidArgument("times must be a scalar"));
    const int64_t n = x.dim_size(0);
    const int64_t times = times_tensor.scalar<int32>()();
    OP_REQUIRES(context, times >= 0, errors::InvalidArgument("times must not be negative"));
    OP_REQUIRES(context, n == 0 || times <= kMaxElements / n,
                errors::InvalidArgument("more than ", kMaxElements, " elements"));
    const int64_t total = n * times;
    OP_REQUIRES(context, total >= 0 && total <= kMaxElements,
                errors::InvalidArgument("cannot make ", total, " elements"));

    Tensor* tiled = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({total}), &tiled));
    if (total == 0) return;
    const float* in = x.flat<float>().data();
    float* out = tiled->flat<float>().data();
    for (int64_t t = 0; t < times; ++t) {
      std::copy(in, in + n, out + t * n);
    }
  }

 private:
  static constexpr int64_t kMaxElements = 1 << 24;
};

REGISTER_KERNEL_BUILDER(Name("TileVector").Device(DEVICE_CPU), TileVectorOp);
