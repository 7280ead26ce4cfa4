#include <atomic>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/work_sharder.h"

using namespace tensorflow;

REGISTER_OP("CountAbove")
    .Input("x: float")
    .Input("threshold: float")
    .Output("count: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle threshold;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &threshold));
      c->set_output(0, c->Scalar());
      return absl::OkStatus();
    });

class CountAboveOp : public OpKernel {
 public:
  explicit CountAboveOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(ctx->input(1).shape()),
                errors::InvalidArgument("threshold must be a scalar"));
    const float threshold = ctx->input(1).scalar<float>()();
    Tensor* count = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &count));

    const auto values = x.flat<float>();
    std::atomic<int64_t> above{0};
    auto work = [&values, &above, threshold](int64_t begin, int64_t end) {
      int64_t here = 0;
      for (int64_t i = begin; i < end; ++i) {
        if (values(i) > threshold) ++here;
      }
      above += here;
    };
    const auto& workers = *ctx->device()->tensorflow_cpu_worker_threads();
    Shard(workers.num_threads, workers.workers, values.size(), 50, work);
    count->scalar<int64_t>()() = above;
  }
};

REGISTER_KERNEL_BUILDER(Name("CountAbove").Device(DEVICE_CPU), CountAboveOp);
