#include <emmintrin.h>

#include <cstring>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace {

constexpr int64_t kHeader = 4;
constexpr float kScale = 1.0f / 32768;

void Widen(const char* bytes, int64_t samples, float* out) {
  const __m128 scale = _mm_set1_ps(kScale);
  int64_t i = 0;
  for (; i + 8 <= samples; i += 8) {
    const __m128i packed = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + 2 * i));
    const __m128i low = _mm_srai_epi32(_mm_unpacklo_epi16(packed, packed), 16);
    const __m128i high = _mm_srai_epi32(_mm_unpackhi_epi16(packed, packed), 16);
    _mm_storeu_ps(out + i, _mm_mul_ps(_mm_cvtepi32_ps(low), scale));
    _mm_storeu_ps(out + i + 4, _mm_mul_ps(_mm_cvtepi32_ps(high), scale));
  }
  for (; i < samples; ++i) {
    int16_t sample;
    std::memcpy(&sample, bytes + 2 * i, sizeof(sample));
    out[i] = sample * kScale;
  }
}

}  // namespace

REGISTER_OP("DecodePcm16")
    .Input("contents: string")
    .Output("samples: float")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      tensorflow::shape_inference::ShapeHandle unused;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &unused));
      c->set_output(0, c->Vector(c->UnknownDim()));
      return absl::OkStatus();
    });

class DecodePcm16Op : public tensorflow::OpKernel {
 public:
  explicit DecodePcm16Op(tensorflow::OpKernelConstruction* context) : tensorflow::OpKernel(context) {}

  void Compute(tensorflow::OpKernelContext* context) override {
    const tensorflow::Tensor& contents = context->input(0);
    OP_REQUIRES(context, tensorflow::TensorShapeUtils::IsScalar(contents.shape()),
                tensorflow::errors::InvalidArgument("contents must be a scalar"));
    const tensorflow::tstring& file = contents.scalar<tensorflow::tstring>()();
    const int64_t body = static_cast<int64_t>(file.size()) - kHeader;
    OP_REQUIRES(context, body >= 0 && body % 2 == 0,
                tensorflow::errors::DataLoss("a file of ", file.size(), " bytes is no 16-bit sound"));
    tensorflow::Tensor* samples = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, tensorflow::TensorShape({body / 2}), &samples));
    Widen(file.data() + kHeader, body / 2, samples->flat<float>().data());
  }
};

REGISTER_KERNEL_BUILDER(Name("DecodePcm16").Device(tensorflow::DEVICE_CPU), DecodePcm16Op);
