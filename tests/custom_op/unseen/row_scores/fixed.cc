#include <immintrin.h>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;
using shape_inference::DimensionHandle;
using shape_inference::ShapeHandle;

REGISTER_OP("RowScores")
    .Input("rows: float")
    .Input("weights: float")
    .Output("scores: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      ShapeHandle rows, weights;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &rows));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &weights));
      DimensionHandle width;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(rows, 1), c->Dim(weights, 0), &width));
      c->set_output(0, c->Vector(c->Dim(rows, 0)));
      return absl::OkStatus();
    });

namespace {

float DotSse(const float* a, const float* b, int64_t n) {
  __m128 sum = _mm_setzero_ps();
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    sum = _mm_add_ps(sum, _mm_mul_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
  }
  float lanes[4];
  _mm_storeu_ps(lanes, sum);
  float total = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace

class RowScoresOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& rows = ctx->input(0);
    const Tensor& weights = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsMatrix(rows.shape()), errors::InvalidArgument("rows must be a matrix"));
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(weights.shape()),
                errors::InvalidArgument("weights must be a vector"));
    const int64_t width = rows.dim_size(1);
    OP_REQUIRES(ctx, weights.dim_size(0) == width, errors::InvalidArgument("weights must have ", width, " values"));
    Tensor* scores = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({rows.dim_size(0)}), &scores));
    const float* row = rows.flat<float>().data();
    const float* w = weights.flat<float>().data();
    auto out = scores->vec<float>();
    for (int64_t r = 0; r < out.size(); ++r) {
      out(r) = DotSse(row + r * width, w, width);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("RowScores").Device(DEVICE_CPU), RowScoresOp);
