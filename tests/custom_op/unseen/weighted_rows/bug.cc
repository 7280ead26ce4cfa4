#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

REGISTER_OP("WeightedRows")
    .Input("x: float")
    .Input("weights: float")
    .Output("sum: float")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle x, weights;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &x));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &weights));
      c->set_output(0, c->Vector(c->Dim(x, 1)));
      return absl::OkStatus();
    });

namespace {

void AddScaled(const float* row, float weight, int64_t width, float* sum) {
  for (int64_t i = 0; i < width; ++i) sum[i] += weight * row[i];
}

}  // namespace

class WeightedRowsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    const Tensor& weights = ctx->input(1);
    OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("x must be a matrix"));
    OP_REQUIRES(ctx, weights.dims() == 1, errors::InvalidArgument("weights must be a vector"));
    const int64_t rows = x.dim_size(0);
    const int64_t width = x.dim_size(1);

    Tensor* sum = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({width}), &sum));
    sum->flat<float>().setZero();

    const float* data = x.flat<float>().data();
    const float* scale = weights.flat<float>().data();
    float* out = sum->flat<float>().data();
    for (int64_t r = 0; r < rows; ++r) {
      AddScaled(data + r * width, scale[r], width, out);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("WeightedRows").Device(DEVICE_CPU), WeightedRowsOp);
