#include <cstring>
#include <limits>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/work_sharder.h"

namespace {

using tensorflow::Tensor;

tensorflow::int32 Distance(const uint8_t* a, const uint8_t* b, int64_t bytes) {
  tensorflow::int32 bits = 0;
  for (int64_t i = 0; i < bytes; i += 8) {
    uint64_t x, y;
    std::memcpy(&x, a + i, 8);
    std::memcpy(&y, b + i, 8);
    bits += __builtin_popcountll(x ^ y);
  }
  return bits;
}

}  // namespace

namespace tensorflow {

REGISTER_OP("PairwiseHamming")
    .Input("left: uint8")
    .Input("right: uint8")
    .Output("distances: int32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle left, right;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &left));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &right));
      shape_inference::DimensionHandle bytes;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(left, 1), c->Dim(right, 1), &bytes));
      c->set_output(0, c->Matrix(c->Dim(left, 0), c->Dim(right, 0)));
      return OkStatus();
    });

class PairwiseHammingOp : public OpKernel {
 public:
  explicit PairwiseHammingOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& left = ctx->input(0);
    const Tensor& right = ctx->input(1);
    OP_REQUIRES(ctx, TensorShapeUtils::IsMatrix(left.shape()) && TensorShapeUtils::IsMatrix(right.shape()),
                errors::InvalidArgument("codes must be matrices"));
    const int64_t bytes = left.dim_size(1);
    OP_REQUIRES(ctx, bytes == right.dim_size(1), errors::InvalidArgument("codes must have one length"));
    OP_REQUIRES(ctx, bytes > 0 && bytes < std::numeric_limits<int32>::max() / 8,
                errors::InvalidArgument("codes are empty, or too long"));
    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({left.dim_size(0), right.dim_size(0)}, &shape));
    Tensor* distances = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &distances));
    if (shape.num_elements() == 0) return;

    const uint8* a = left.flat<uint8>().data();
    const uint8* b = right.flat<uint8>().data();
    auto out = distances->matrix<int32>();
    auto rows = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < out.dimension(1); ++j) out(i, j) = Distance(a + i * bytes, b + j * bytes, bytes);
    };
    auto* pool = ctx->device()->tensorflow_cpu_worker_threads();
    Shard(pool->num_threads, pool->workers, out.dimension(0), out.dimension(1) * bytes / 4 + 1, rows);
  }
};

REGISTER_KERNEL_BUILDER(Name("PairwiseHamming").Device(DEVICE_CPU), PairwiseHammingOp);

}  // namespace tensorflow
