#include <xmmintrin.h>

#include <algorithm>
#include <memory>
#include <new>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/work_sharder.h"

using namespace tensorflow;

REGISTER_OP("BlockEnergy")
    .Input("x: float")
    .Attr("block: int >= 4")
    .Output("energy: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle x;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &x));
      c->set_output(0, c->Vector(c->UnknownDim()));
      return absl::OkStatus();
    })
    .Doc("Sum of squares of each block of a vector; the last block may be short.");

namespace {

constexpr int64_t kLargestBlock = 1024;

float Energy(const float* aligned, int64_t n) {
  __m128 sum = _mm_setzero_ps();
  for (int64_t i = 0; i < n; i += 4) {
    const __m128 four = _mm_load_ps(aligned + i);
    sum = _mm_add_ps(sum, _mm_mul_ps(four, four));
  }
  alignas(16) float lanes[4];
  _mm_store_ps(lanes, sum);
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

}  // namespace

class BlockEnergyOp : public OpKernel {
 public:
  explicit BlockEnergyOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("block", &block_));
    OP_REQUIRES(ctx, block_ >= 4 && block_ <= kLargestBlock && block_ % 4 == 0,
                errors::InvalidArgument("block must be a multiple of 4 up to ", kLargestBlock));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    OP_REQUIRES(ctx, x.dims() == 1, errors::InvalidArgument("x must be a vector"));
    const int64_t length = x.dim_size(0);
    const int64_t blocks = length / block_ + (length % block_ != 0);
    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({blocks}, &shape));
    Tensor* energy = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &energy));
    std::unique_ptr<bool[]> done(new (std::nothrow) bool[blocks]());
    OP_REQUIRES(ctx, done != nullptr, errors::ResourceExhausted("no memory for ", blocks, " flags"));

    const float* in = x.flat<float>().data();
    float* out = energy->flat<float>().data();
    bool* flags = done.get();
    auto work = [this, in, out, flags, length](int64_t begin, int64_t end) {
      alignas(16) float buffer[kLargestBlock];
      for (int64_t b = begin; b < end; ++b) {
        const int64_t size = std::min(block_, length - b * block_);
        std::copy(in + b * block_, in + b * block_ + size, buffer);
        std::fill(buffer + size, buffer + block_, 0.0f);
        out[b] = Energy(buffer, block_);
        flags[b] = true;
      }
    };
    const auto* pool = ctx->device()->tensorflow_cpu_worker_threads();
    Shard(pool->num_threads, pool->workers, blocks, 2 * block_, work);
    OP_REQUIRES(ctx, std::all_of(flags, flags + blocks, [](bool flag) { return flag; }),
                errors::Internal("a block was left out"));
  }

 private:
  int64_t block_;
};

REGISTER_KERNEL_BUILDER(Name("BlockEnergy").Device(DEVICE_CPU), BlockEnergyOp);
