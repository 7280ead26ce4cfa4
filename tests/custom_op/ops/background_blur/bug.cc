#include <algorithm>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/threadpool.h"

using namespace tensorflow;

REGISTER_OP("BackgroundBlur")
    .Input("line: float")
    .Attr("kernel: list(float) >= 1")
    .Output("blurred: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle line;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &line));
      c->set_output(0, line);
      return absl::OkStatus();
    });

class BackgroundBlurOp : public AsyncOpKernel {
 public:
  explicit BackgroundBlurOp(OpKernelConstruction* ctx) : AsyncOpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("kernel", &kernel_));
    OP_REQUIRES(ctx, !kernel_.empty(), errors::InvalidArgument("the kernel is empty"));
  }

  void ComputeAsync(OpKernelContext* ctx, DoneCallback done) override {
    const Tensor& line = ctx->input(0);
    OP_REQUIRES_ASYNC(ctx, line.dims() == 1, errors::InvalidArgument("line must be a vector"), done);
    Tensor* blurred = nullptr;
    OP_REQUIRES_OK_ASYNC(ctx, ctx->allocate_output(0, line.shape(), &blurred), done);

    // Zeros around the line spare the loop its checks.
    const int64_t half = static_cast<int64_t>(kernel_.size()) / 2;
    std::vector<float> padded(line.NumElements() + kernel_.size(), 0.0f);
    std::copy_n(line.vec<float>().data(), line.NumElements(), padded.begin() + half);

    auto pool = ctx->device()->tensorflow_cpu_worker_threads()->workers;
    pool->Schedule([this, &padded, blurred, done]() {
      auto out = blurred->vec<float>();
      for (int64_t i = 0; i < out.size(); ++i) {
        float sum = 0;
        for (size_t k = 0; k < kernel_.size(); ++k) sum += padded[i + k] * kernel_[k];
        out(i) = sum;
      }
      done();
    });
  }

 private:
  std::vector<float> kernel_;
};

REGISTER_KERNEL_BUILDER(Name("BackgroundBlur").Device(DEVICE_CPU), BackgroundBlurOp);
