#include <algorithm>
#include <cstdlib>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

// A buffer from malloc: no constructor runs over the floats.
struct Scratch {
  explicit Scratch(int64_t count) : data(static_cast<float*>(std::malloc(count * sizeof(float)))) {}
  ~Scratch() { std::free(data); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* data;
};

static float MedianOf(const float* window, int64_t count, Scratch& scratch) {
  std::copy(window, window + count, scratch.data);
  std::nth_element(scratch.data, scratch.data + count / 2, scratch.data + count);
  return scratch.data[count / 2];
}

REGISTER_OP("MedianFilter")
    .Input("signal: float")
    .Output("filtered: float")
    .Attr("radius: int >= 0 = 1")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      return shape_inference::UnchangedShapeWithRank(c, 1);
    });

class MedianFilterOp : public OpKernel {
 public:
  explicit MedianFilterOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("radius", &radius_));
    OP_REQUIRES(ctx, radius_ >= 0 && radius_ <= 1000, errors::InvalidArgument("radius must be in [0, 1000]"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& signal = ctx->input(0);
    OP_REQUIRES(ctx, signal.dims() == 1, errors::InvalidArgument("signal must be a vector"));
    Tensor* filtered = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, signal.shape(), &filtered));
    const int64_t count = signal.dim_size(0);
    const float* in = signal.vec<float>().data();
    float* out = filtered->vec<float>().data();
    for (int64_t i = 0; i < count; ++i) {
      OP_REQUIRES(ctx, in[i] == in[i], errors::InvalidArgument("sample ", i, " is not a number"));
    }
    if (radius_ == 0) {
      std::copy(in, in + count, out);
      return;
    }
    Scratch scratch(2 * radius_ + 1);
    OP_REQUIRES(ctx, scratch.data != nullptr, errors::ResourceExhausted("no memory for the window"));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t begin = std::max<int64_t>(0, i - radius_);
      const int64_t end = std::min(count, i + radius_ + 1);
      out[i] = MedianOf(in + begin, end - begin, scratch);
    }
  }

 private:
  int64_t radius_;
};

REGISTER_KERNEL_BUILDER(Name("MedianFilter").Device(DEVICE_CPU), MedianFilterOp);
