#include <algorithm>
#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

#define MAX_WIDTH 1024

REGISTER_OP("FlipRows")
    .Input("gray: uint8")
    .Output("mirrored: uint8")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle image;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &image));
      c->set_output(0, image);
      return absl::OkStatus();
    });

// Works when source and target are the same row, too.
static void MirrorRow(const uint8_t* source, int64_t width, uint8_t* target) {
  uint8_t line[MAX_WIDTH];
  if (width > MAX_WIDTH) {
    std::vector<uint8_t> longer(source, source + width);
    std::copy(longer.rbegin(), longer.rend(), target);
    return;
  }
  for (int64_t x = 0; x < width; ++x) line[width - 1 - x] = source[x];
  std::copy(line, line + width, target);
}

class FlipRowsOp : public OpKernel {
 public:
  explicit FlipRowsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& gray = ctx->input(0);
    OP_REQUIRES(ctx, gray.dims() == 2,
                errors::InvalidArgument("gray must be [height, width], not ", gray.shape().DebugString()));
    Tensor* mirrored = nullptr;
    OP_REQUIRES_OK(ctx, ctx->forward_input_or_allocate_output({0}, 0, gray.shape(), &mirrored));
    if (gray.NumElements() == 0) return;
    const int64_t height = gray.dim_size(0), width = gray.dim_size(1);
    const uint8_t* from = gray.flat<uint8>().data();
    uint8_t* to = mirrored->flat<uint8>().data();
    for (int64_t y = 0; y < height; ++y) MirrorRow(from + y * width, width, to + y * width);
  }
};

REGISTER_KERNEL_BUILDER(Name("FlipRows").Device(DEVICE_CPU), FlipRowsOp);
