#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
namespace functor {

template <typename T, typename Index>
struct SegmentMean {
  Status operator()(typename TTypes<T>::ConstMatrix data, typename TTypes<Index>::ConstVec ids,
                    typename TTypes<T>::Matrix out) {
    const int64_t segments = out.dimension(0);
    std::vector<int64_t> members(segments, 0);
    out.setZero();
    for (int64_t row = 0; row < data.dimension(0); ++row) {
      const Index id = ids(row);
      if (id < 0 || id >= segments) {
        return errors::InvalidArgument("segment_ids[", row, "] = ", id, " is not in [0, ", segments, ")");
      }
      ++members[id];
      for (int64_t col = 0; col < data.dimension(1); ++col) out(id, col) += data(row, col);
    }
    for (int64_t segment = 0; segment < segments; ++segment) {
      if (members[segment] < 2) continue;
      for (int64_t col = 0; col < data.dimension(1); ++col) out(segment, col) /= static_cast<T>(members[segment]);
    }
    return OkStatus();
  }
};

}  // namespace functor

REGISTER_OP("RowSegmentMean")
    .Input("data: T")
    .Input("segment_ids: Tidx")
    .Input("num_segments: int32")
    .Output("means: T")
    .Attr("T: {float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle data, ids, scalar;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &data));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &ids));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 0, &scalar));
      shape_inference::DimensionHandle rows, segments;
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(data, 0), c->Dim(ids, 0), &rows));
      TF_RETURN_IF_ERROR(c->MakeDimForScalarInput(2, &segments));
      c->set_output(0, c->Matrix(segments, c->Dim(data, 1)));
      return OkStatus();
    });

template <typename T, typename Index>
class RowSegmentMeanOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    const Tensor& data = ctx->input(0);
    const Tensor& ids = ctx->input(1);
    const Tensor& num_segments = ctx->input(2);
    OP_REQUIRES(ctx, TensorShapeUtils::IsMatrix(data.shape()), errors::InvalidArgument("data must be a matrix"));
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(ids.shape()), errors::InvalidArgument("segment_ids must be a vector"));
    OP_REQUIRES(ctx, ids.dim_size(0) == data.dim_size(0),
                errors::InvalidArgument("there must be one segment id per row"));
    OP_REQUIRES(ctx, TensorShapeUtils::IsScalar(num_segments.shape()),
                errors::InvalidArgument("num_segments must be a scalar"));
    const int64_t segments = num_segments.scalar<int32>()();
    OP_REQUIRES(ctx, segments >= 0, errors::InvalidArgument("num_segments must not be negative"));

    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({segments, data.dim_size(1)}, &shape));
    OP_REQUIRES(ctx, segments <= kMost && shape.num_elements() <= kMost,
                errors::InvalidArgument("the output would be too large: ", shape.DebugString()));
    Tensor* means = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &means));
    if (shape.num_elements() == 0 && data.NumElements() == 0) return;
    OP_REQUIRES_OK(ctx, functor::SegmentMean<T, Index>()(data.matrix<T>(), ids.vec<Index>(), means->matrix<T>()));
  }

 private:
  static constexpr int64_t kMost = 1 << 26;
};

#define REGISTER_MEAN(T, Index)                                                                              \
  REGISTER_KERNEL_BUILDER(                                                                                   \
      Name("RowSegmentMean").Device(DEVICE_CPU).TypeConstraint<T>("T").TypeConstraint<Index>("Tidx"), \
      RowSegmentMeanOp<T, Index>)
REGISTER_MEAN(float, int32);
REGISTER_MEAN(float, int64_t);
REGISTER_MEAN(double, int32);
REGISTER_MEAN(double, int64_t);
#undef REGISTER_MEAN

}  // namespace tensorflow
