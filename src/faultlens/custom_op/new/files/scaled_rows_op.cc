// ScaledRows: rows of a matrix, picked by index and multiplied by a factor.
//
// Put your own arithmetic into ScaledRowsOnCpu and keep what stands around it: an op is called with whatever a user
// has at hand, and what is not refused here ends in a crash far away.

#include <cstdint>

#include "scaled_rows_gpu.h"
#include "tensorflow/core/framework/bounds_check.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace scaled_rows {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TensorShapeUtils;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// Graphs are built with what this says. It must agree with what Compute allocates, and it does not replace the checks
// there: in eager code it is not asked.
absl::Status InferShape(InferenceContext* context) {
  ShapeHandle values, rows;
  TF_RETURN_IF_ERROR(context->WithRank(context->input(0), 2, &values));
  TF_RETURN_IF_ERROR(context->WithRank(context->input(1), 1, &rows));
  context->set_output(0, context->Matrix(context->Dim(rows, 0), context->Dim(values, 1)));
  return absl::OkStatus();
}

REGISTER_OP("ScaledRows")
    .Attr("T: {float, double}")
    .Attr("Index: {int32, int64}")
    .Attr("factor: float = 1.0")
    .Input("values: T")
    .Input("rows: Index")
    .Output("picked: T")
    .SetShapeFn(InferShape)
    .Doc(R"doc(
Rows of a matrix, picked by index and multiplied by a factor.

values: Shape [height, width].
rows: Shape [count]; each at least 0 and less than height. On a GPU a row that is not there gives zeros.
picked: Shape [count, width].
)doc");

// Returns the position of the first index that is out of range; the number of indices if there is none.
template <typename T, typename Index>
int64_t ScaledRowsOnCpu(typename tensorflow::TTypes<T>::ConstMatrix values, typename tensorflow::TTypes<Index>::ConstVec rows,
                        T factor, typename tensorflow::TTypes<T>::Matrix picked) {
  const int64_t count = rows.dimension(0), height = values.dimension(0), width = values.dimension(1);
  for (int64_t i = 0; i < count; ++i) {
    // The buffer may be written to by others between the check and the use: look at a copy.
    const Index row = tensorflow::internal::SubtleMustCopy(rows(i));
    if (!tensorflow::FastBoundsCheck(row, height)) return i;
    for (int64_t j = 0; j < width; ++j) picked(i, j) = factor * values(row, j);
  }
  return count;
}

template <typename T, typename Index>
class ScaledRowsOp : public OpKernel {
 public:
  explicit ScaledRowsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("factor", &factor_));
  }

  // Runs on many threads at once: it may read members, and must not write any.
  void Compute(OpKernelContext* context) override {
    const Tensor& values = context->input(0);
    const Tensor& rows = context->input(1);
    OP_REQUIRES(context, TensorShapeUtils::IsMatrix(values.shape()),
                absl::InvalidArgumentError("values must be a matrix, not of shape " + values.shape().DebugString()));
    OP_REQUIRES(context, TensorShapeUtils::IsVector(rows.shape()),
                absl::InvalidArgumentError("rows must be a vector, not of shape " + rows.shape().DebugString()));
    // The product of the two may be more than a tensor can have.
    TensorShape shape;
    OP_REQUIRES_OK(context, TensorShape::BuildTensorShape({rows.dim_size(0), values.dim_size(1)}, &shape));
    Tensor* picked = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape, &picked));
    if (picked->NumElements() > 0) Fill(context, values, rows, picked);
  }

 protected:
  virtual void Fill(OpKernelContext* context, const Tensor& values, const Tensor& rows, Tensor* picked) {
    const int64_t bad = ScaledRowsOnCpu<T, Index>(values.matrix<T>(), rows.vec<Index>(), static_cast<T>(factor_),
                                                  picked->matrix<T>());
    OP_REQUIRES(context, bad == rows.NumElements(),
                absl::InvalidArgumentError("rows[" + std::to_string(bad) + "] is out of range: values has " +
                                           std::to_string(values.dim_size(0)) + " rows"));
  }

  float factor_ = 1.0f;
};

#ifdef SCALED_ROWS_WITH_CUDA
template <typename T, typename Index>
class ScaledRowsOnGpuOp : public ScaledRowsOp<T, Index> {
 public:
  using ScaledRowsOp<T, Index>::ScaledRowsOp;

 protected:
  void Fill(OpKernelContext* context, const Tensor& values, const Tensor& rows, Tensor* picked) override {
    const char* problem = LaunchScaledRows<T, Index>(
        GpuStreamOf(context), values.flat<T>().data(), rows.flat<Index>().data(), static_cast<T>(this->factor_),
        picked->flat<T>().data(), rows.dim_size(0), values.dim_size(0), values.dim_size(1));
    OP_REQUIRES(context, problem == nullptr, absl::InternalError(problem));
  }
};
#endif

// One kernel for every type that the op is registered with.
#define REGISTER_ON(DEVICE, KERNEL, T, INDEX)                               \
  REGISTER_KERNEL_BUILDER(Name("ScaledRows")                                \
                              .Device(tensorflow::DEVICE)                   \
                              .TypeConstraint<T>("T")                       \
                              .TypeConstraint<INDEX>("Index"),              \
                          KERNEL<T, INDEX>)
#define REGISTER_ALL(DEVICE, KERNEL)           \
  REGISTER_ON(DEVICE, KERNEL, float, int32_t);  \
  REGISTER_ON(DEVICE, KERNEL, float, int64_t);  \
  REGISTER_ON(DEVICE, KERNEL, double, int32_t); \
  REGISTER_ON(DEVICE, KERNEL, double, int64_t)

REGISTER_ALL(DEVICE_CPU, ScaledRowsOp);
#ifdef SCALED_ROWS_WITH_CUDA
REGISTER_ALL(DEVICE_GPU, ScaledRowsOnGpuOp);
#endif

}  // namespace scaled_rows
