#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

namespace {

const int kMaxCells = 1 << 24;

Status ScalarOf(const Tensor& tensor, const char* name, int32* value) {
  if (!TensorShapeUtils::IsScalar(tensor.shape())) {
    return errors::InvalidArgument(name, " must be a scalar, got ", tensor.shape().DebugString());
  }
  *value = tensor.scalar<int32>()();
  if (*value < 0) return errors::InvalidArgument(name, " must not be negative, got ", *value);
  return absl::OkStatus();
}

Status GridShape(shape_inference::InferenceContext* c) {
  shape_inference::ShapeHandle scalar;
  for (int i = 0; i < 2; ++i) TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 0, &scalar));
  c->set_output(0, c->Matrix(c->UnknownDim(), 2));
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("CoordinateGrid").Input("height: int32").Input("width: int32").Output("grid: float").SetShapeFn(GridShape);

/* Writes (y, x) for each cell of a grid, row by row. */
class CoordinateGridOp : public OpKernel {
 public:
  explicit CoordinateGridOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    int32 height, width;
    OP_REQUIRES_OK(ctx, ScalarOf(ctx->input(0), "height", &height));
    OP_REQUIRES_OK(ctx, ScalarOf(ctx->input(1), "width", &width));
    const int64_t cells = static_cast<int64_t>(height) * width;
    OP_REQUIRES(ctx, cells <= kMaxCells, errors::InvalidArgument("the grid has too many cells"));
    Tensor* grid = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({cells, 2}), &grid));
    auto rows = grid->matrix<float>();
    int64_t cell = 0;
    for (int32 y = 0; y < height; ++y) {
      for (int32 x = 0; x < width; ++x) {
        rows(cell, 0) = static_cast<float>(y);
        rows(cell, 1) = static_cast<float>(x);
        ++cell;
      }
    }
  }
};
REGISTER_KERNEL_BUILDER(Name("CoordinateGrid").Device(DEVICE_CPU), CoordinateGridOp);
