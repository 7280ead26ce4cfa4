#include <cmath>
#include <memory>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("WhitenRows")
    .Input("rows: float")
    .Output("whitened: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle rows;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &rows));
      c->set_output(0, rows);
      return absl::OkStatus();
    });

class WhitenRowsOp : public OpKernel {
 public:
  explicit WhitenRowsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& rows_tensor = ctx->input(0);
    OP_REQUIRES(ctx, rows_tensor.dims() == 2, errors::InvalidArgument("rows must be a matrix"));
    Tensor* whitened_tensor = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, rows_tensor.shape(), &whitened_tensor));
    if (rows_tensor.NumElements() == 0) return;
    const auto rows = rows_tensor.matrix<float>();
    auto whitened = whitened_tensor->matrix<float>();
    const int64_t width = rows.dimension(1);

    const std::unique_ptr<double[]> owner = std::make_unique<double[]>(width);
    double* centered = owner.get();
    for (int64_t r = 0; r < rows.dimension(0); ++r) {
      double mean = 0, squares = 0;
      for (int64_t i = 0; i < width; ++i) mean += rows(r, i);
      mean /= width;
      for (int64_t i = 0; i < width; ++i) {
        centered[i] = rows(r, i) - mean;
        squares += centered[i] * centered[i];
      }
      if (!(squares > 0)) {
        delete[] centered;
        ctx->SetStatus(errors::InvalidArgument("row ", r, " is constant, or holds a NaN"));
        return;
      }
      const double scale = 1 / std::sqrt(squares / width);
      for (int64_t i = 0; i < width; ++i) whitened(r, i) = static_cast<float>(centered[i] * scale);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("WhitenRows").Device(DEVICE_CPU), WhitenRowsOp);
