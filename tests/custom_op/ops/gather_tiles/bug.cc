#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace mosaic {

using namespace tensorflow;

REGISTER_OP("GatherTiles")
    .Input("image: float")
    .Input("positions: int32")
    .Attr("tile: int >= 1")
    .Output("tiles: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle image, positions;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &image));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 2, &positions));
      shape_inference::DimensionHandle two;
      TF_RETURN_IF_ERROR(c->WithValue(c->Dim(positions, 1), 2, &two));
      int64_t tile;
      TF_RETURN_IF_ERROR(c->GetAttr("tile", &tile));
      c->set_output(0, c->MakeShape({c->Dim(positions, 0), c->MakeDim(tile), c->MakeDim(tile)}));
      return absl::OkStatus();
    });

class GatherTilesOp : public OpKernel {
 public:
  explicit GatherTilesOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("tile", &tile_));
    OP_REQUIRES(ctx, tile_ >= 1 && tile_ <= 4096, errors::InvalidArgument("tile must be in [1, 4096]"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& image = ctx->input(0);
    const Tensor& positions = ctx->input(1);
    OP_REQUIRES(ctx, image.dims() == 2, errors::InvalidArgument("image must be a matrix"));
    OP_REQUIRES(ctx, positions.dims() == 2 && positions.dim_size(1) == 2,
                errors::InvalidArgument("positions must be [n, 2]"));
    Validate(ctx, image, positions);

    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({positions.dim_size(0), tile_, tile_}, &shape));
    Tensor* tiles = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &tiles));
    const auto pixels = image.matrix<float>();
    const auto at = positions.matrix<int32>();
    auto out = tiles->tensor<float, 3>();
    for (int64_t n = 0; n < at.dimension(0); ++n)
      for (int64_t y = 0; y < tile_; ++y)
        for (int64_t x = 0; x < tile_; ++x) out(n, y, x) = pixels(at(n, 0) * tile_ + y, at(n, 1) * tile_ + x);
  }

 private:
  // Each tile must lie inside of the image.
  void Validate(OpKernelContext* ctx, const Tensor& image, const Tensor& positions) const {
    const auto at = positions.matrix<int32>();
    for (int64_t n = 0; n < at.dimension(0); ++n) {
      OP_REQUIRES(ctx, at(n, 0) >= 0 && (at(n, 0) + int64_t{1}) * tile_ <= image.dim_size(0) && at(n, 1) >= 0 &&
                           (at(n, 1) + int64_t{1}) * tile_ <= image.dim_size(1),
                  errors::OutOfRange("tile ", n, " is not inside of the image"));
    }
  }

  int64_t tile_;
};

REGISTER_KERNEL_BUILDER(Name("GatherTiles").Device(DEVICE_CPU), GatherTilesOp);

}  // namespace mosaic
