#include <atomic>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace decoding {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TTypes;

REGISTER_OP("FollowBeams")
    .Input("steps: int32")
    .Input("links: int32")
    .Output("paths: int32")
    .SetShapeFn([](tensorflow::shape_inference::InferenceContext* c) {
      tensorflow::shape_inference::ShapeHandle shape;
      TF_RETURN_IF_ERROR(c->Merge(c->input(0), c->input(1), &shape));
      TF_RETURN_IF_ERROR(c->WithRank(shape, 3, &shape));
      c->set_output(0, shape);
      return absl::OkStatus();
    });

// One unit of work is one beam of one sequence.
struct Follow {
  TTypes<int, 3>::ConstTensor steps;
  TTypes<int, 3>::ConstTensor links;
  TTypes<int, 3>::Tensor paths;
  std::atomic<bool>* broken;

  void operator()(int64_t first, int64_t last) {
    const int64_t width = steps.dimension(2);
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t sequence = unit / width;
      const int64_t beam = unit % width;
      int64_t at = beam;
      for (int64_t t = 0; t < steps.dimension(0); ++t) {
        paths(t, sequence, beam) = steps(t, sequence, at);
        const int64_t link = links(t, sequence, at);
        if (link < 0 || link > width) {
          broken->store(true);
          return;
        }
        at = link;
      }
    }
  }
};

class FollowBeamsOp : public OpKernel {
 public:
  explicit FollowBeamsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& steps = ctx->input(0);
    const Tensor& links = ctx->input(1);
    OP_REQUIRES(ctx, steps.dims() == 3, tensorflow::errors::InvalidArgument("steps must be [time, batch, width]"));
    OP_REQUIRES(ctx, steps.IsSameSize(links),
                tensorflow::errors::InvalidArgument("steps and links must have the same shape"));
    Tensor* paths = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, steps.shape(), &paths));
    if (steps.NumElements() == 0) return;
    std::atomic<bool> broken(false);
    Follow work{steps.tensor<int, 3>(), links.tensor<int, 3>(), paths->tensor<int, 3>(), &broken};
    ctx->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(steps.dim_size(1) * steps.dim_size(2),
                                                                        steps.dim_size(0) * 5, work);
    OP_REQUIRES(ctx, !broken.load(), tensorflow::errors::InvalidArgument("a link leads to no beam"));
  }
};

REGISTER_KERNEL_BUILDER(Name("FollowBeams").Device(tensorflow::DEVICE_CPU), FollowBeamsOp);

}  // namespace decoding
