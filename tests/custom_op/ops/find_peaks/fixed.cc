#include <algorithm>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/util/work_sharder.h"

namespace tensorflow {

REGISTER_OP("FindPeaks")
    .Input("signal: float")
    .Output("peaks: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle signal;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &signal));
      c->set_output(0, c->Vector(shape_inference::InferenceContext::kUnknownDim));
      return OkStatus();
    });

class FindPeaksOp : public OpKernel {
 public:
  explicit FindPeaksOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& input = ctx->input(0);
    OP_REQUIRES(ctx, input.dims() == 1, errors::InvalidArgument("signal must be a vector"));
    const float* signal = input.flat<float>().data();
    const int64_t inner = std::max<int64_t>(0, input.NumElements() - 2);

    std::vector<int64_t> peaks;
    mutex mu;
    auto worker_threads = *(ctx->device()->tensorflow_cpu_worker_threads());
    Shard(worker_threads.num_threads, worker_threads.workers, inner, 10, [&](int64_t start, int64_t limit) {
      std::vector<int64_t> own;
      for (int64_t i = start + 1; i <= limit; ++i) {
        if (signal[i - 1] < signal[i] && signal[i] > signal[i + 1]) own.push_back(i);
      }
      mutex_lock lock(mu);
      peaks.insert(peaks.end(), own.begin(), own.end());
    });
    std::sort(peaks.begin(), peaks.end());

    Tensor* output = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({static_cast<int64_t>(peaks.size())}), &output));
    std::copy(peaks.begin(), peaks.end(), output->flat<int64_t>().data());
  }
};

REGISTER_KERNEL_BUILDER(Name("FindPeaks").Device(DEVICE_CPU), FindPeaksOp);

}  // namespace tensorflow
