#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace {

using namespace tensorflow;  // NOLINT
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("PairwiseGaps")
    .Input("x: float")
    .Output("gaps: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &x));
      c->set_output(0, c->Vector(InferenceContext::kUnknownDim));
      return absl::OkStatus();
    });

class PairwiseGapsOp : public OpKernel {
 public:
  explicit PairwiseGapsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(x.shape()),
                errors::InvalidArgument("x must be a vector"));
    const int64_t n = x.dim_size(0);
    const int64_t pairs = n * n;
    Tensor* gaps = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({pairs}), &gaps));
    auto in = x.vec<float>();
    auto out = gaps->vec<float>();
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        out(i * n + j) = in(i) - in(j);
      }
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("PairwiseGaps").Device(DEVICE_CPU), PairwiseGapsOp);

}  // namespace
