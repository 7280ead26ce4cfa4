#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

#include <algorithm>
#include <cmath>

namespace {

using namespace tensorflow;  // NOLINT
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("StepsBetween")
    .Input("start: float")
    .Input("stop: float")
    .Input("step: float")
    .Output("count: int64")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle unused;
      for (int i = 0; i < 3; ++i) {
        TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 0, &unused));
      }
      c->set_output(0, c->Scalar());
      return absl::OkStatus();
    });

class StepsBetweenOp : public OpKernel {
 public:
  explicit StepsBetweenOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    for (int i = 0; i < 3; ++i) {
      OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(ctx->input(i).shape()),
                  errors::InvalidArgument("all inputs must be scalars"));
    }
    const float start = ctx->input(0).scalar<float>()();
    const float stop = ctx->input(1).scalar<float>()();
    const float step = ctx->input(2).scalar<float>()();
    OP_REQUIRES(ctx, step >= 0.0f, errors::InvalidArgument("step must not be negative"));
    int64_t count = 0;
    for (float at = start; at < stop; at += step) {
      ++count;
    }
    Tensor* result = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &result));
    result->scalar<int64_t>()() = count;
  }
};

REGISTER_KERNEL_BUILDER(Name("StepsBetween").Device(DEVICE_CPU), StepsBetweenOp);

}  // namespace
