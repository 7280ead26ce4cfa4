#include <smmintrin.h>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("Luma").Input("rgb: float").Output("luma: float").SetShapeFn([](shape_inference::InferenceContext* c) {
  c->set_output(0, c->Vector(c->UnknownDim()));
  return absl::OkStatus();
});

class LumaOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& rgb = ctx->input(0);
    const int64_t pixels = rgb.NumElements() / rgb.dim_size(rgb.dims() - 1);
    const int64_t channels = rgb.dim_size(rgb.dims() - 1);
    Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({pixels}), &out));
    const float* src = rgb.flat<float>().data();
    const __m128 weights = _mm_setr_ps(0.299f, 0.587f, 0.114f, 0.0f);
    for (int64_t i = 0; i + 1 < pixels; ++i) {
      const __m128 pixel = _mm_load_ps(src + i * channels);
      out->flat<float>()(i) = _mm_cvtss_f32(_mm_dp_ps(pixel, weights, 0x71));
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("Luma").Device(DEVICE_CPU), LumaOp);
