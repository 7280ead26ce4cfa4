#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace tensorflow;  // NOLINT
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("TopScores")
    .Input("scores: float")
    .Input("k: int32")
    .Output("top: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle unused;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &unused));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &unused));
      c->set_output(0, c->Vector(InferenceContext::kUnknownDim));
      return absl::OkStatus();
    });

class TopScoresOp : public OpKernel {
 public:
  explicit TopScoresOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& scores = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(scores.shape()),
                errors::InvalidArgument("scores must be a vector"));
    OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(ctx->input(1).shape()),
                errors::InvalidArgument("k must be a scalar"));
    const int64_t count = scores.NumElements();
    const int32_t k = ctx->input(1).scalar<int32_t>()();
    OP_REQUIRES(ctx, k >= 0 && k <= count,
                errors::InvalidArgument("k must be between 0 and the number of scores"));
    const float* first = scores.flat<float>().data();
    std::vector<float> sorted(first, first + count);
    std::sort(sorted.begin(), sorted.end(), [](float a, float b) {
      return a >= b;
    });
    Tensor* top = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({k}), &top));
    std::copy_n(sorted.begin(), k, top->flat<float>().data());
  }
};

REGISTER_KERNEL_BUILDER(Name("TopScores").Device(DEVICE_CPU), TopScoresOp);

}  // namespace
