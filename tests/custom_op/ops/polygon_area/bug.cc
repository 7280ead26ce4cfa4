#include <cmath>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

namespace {

TTypes<float, 3>::ConstTensor Corners(const Tensor& polygons) { return polygons.tensor<float, 3>(); }

float Shoelace(TTypes<float, 3>::ConstTensor corners, int64_t polygon, int64_t used) {
  float doubled = 0.0f;
  for (int64_t i = 0; i < used; ++i) {
    const int64_t j = (i + 1 == used) ? 0 : i + 1;
    doubled += corners(polygon, i, 0) * corners(polygon, j, 1) - corners(polygon, j, 0) * corners(polygon, i, 1);
  }
  return std::fabs(doubled) / 2;
}

absl::Status CheckInputs(const Tensor& polygons, const Tensor& sizes) {
  if (sizes.dims() != 1) return absl::InvalidArgumentError("sizes must be a vector");
  if (polygons.dims() < 1 || polygons.dim_size(0) != sizes.dim_size(0)) {
    return absl::InvalidArgumentError("there must be one size per polygon");
  }
  if (polygons.dim_size(polygons.dims() - 1) != 2) return absl::InvalidArgumentError("corners must be pairs");
  for (int64_t i = 0; i < sizes.NumElements(); ++i) {
    const int32 size = sizes.vec<int32>()(i);
    if (size < 0 || size > polygons.dim_size(1)) return absl::OutOfRangeError("a size is not a number of corners");
  }
  return absl::OkStatus();
}

}  // namespace

REGISTER_OP("PolygonAreas")
    .Input("polygons: float")
    .Input("sizes: int32")
    .Output("areas: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle polygons, sizes;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 3, &polygons));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &sizes));
      shape_inference::DimensionHandle count, pair;
      TF_RETURN_IF_ERROR(c->WithValue(c->Dim(polygons, 2), 2, &pair));
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(polygons, 0), c->Dim(sizes, 0), &count));
      c->set_output(0, c->Vector(count));
      return absl::OkStatus();
    });

class PolygonAreasOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor &polygons = ctx->input(0), &sizes = ctx->input(1);
    OP_REQUIRES_OK(ctx, CheckInputs(polygons, sizes));
    Tensor* areas = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, sizes.shape(), &areas));
    const auto corners = Corners(polygons);
    for (int64_t p = 0; p < sizes.NumElements(); ++p) {
      areas->vec<float>()(p) = Shoelace(corners, p, sizes.vec<int32>()(p));
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("PolygonAreas").Device(DEVICE_CPU), PolygonAreasOp);
