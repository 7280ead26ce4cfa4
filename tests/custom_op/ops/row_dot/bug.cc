#include <xmmintrin.h>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace {

float Dot(const float* a, const float* b, int64_t n) {
  __m128 sum = _mm_setzero_ps();
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    sum = _mm_add_ps(sum, _mm_mul_ps(_mm_load_ps(a + i), _mm_load_ps(b + i)));
  }
  alignas(16) float lanes[4];
  _mm_store_ps(lanes, sum);
  float total = lanes[0] + lanes[1] + lanes[2] + lanes[3];
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

}  // namespace

namespace tensorflow {

REGISTER_OP("RowDot")
    .Input("a: float")
    .Input("b: float")
    .Output("dots: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle a, b, both;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &a));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &b));
      TF_RETURN_IF_ERROR(c->Merge(a, b, &both));
      c->set_output(0, c->Vector(c->Dim(both, 0)));
      return absl::OkStatus();
    });

class RowDotOp : public OpKernel {
 public:
  explicit RowDotOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& a = ctx->input(0);
    const Tensor& b = ctx->input(1);
    OP_REQUIRES(ctx, a.dims() == 2, errors::InvalidArgument("a must be a matrix"));
    OP_REQUIRES(ctx, a.shape() == b.shape(), errors::InvalidArgument("a and b must have the same shape"));
    const int64_t rows = a.dim_size(0), cols = a.dim_size(1);
    OP_REQUIRES(ctx, cols > 0, errors::InvalidArgument("the rows are empty"));
    Tensor* dots = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({rows}), &dots));
    const float* left = a.flat<float>().data();
    const float* right = b.flat<float>().data();
    auto out = dots->vec<float>();
    for (int64_t r = 0; r < rows; ++r) out(r) = Dot(left + r * cols, right + r * cols, cols);
  }
};

REGISTER_KERNEL_BUILDER(Name("RowDot").Device(DEVICE_CPU), RowDotOp);

}  // namespace tensorflow
