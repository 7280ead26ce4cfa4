#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("CooToDense")
    .Input("coordinates: int64")
    .Input("values: T")
    .Attr("rows: int >= 0")
    .Attr("cols: int >= 0")
    .Attr("T: {float, double}")
    .Output("dense: T")
    .SetShapeFn([](::tensorflow::shape_inference::InferenceContext* c) {
      ::tensorflow::shape_inference::ShapeHandle coordinates, values;
      ::tensorflow::shape_inference::DimensionHandle dim;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 2, &coordinates));
      TF_RETURN_IF_ERROR(c->WithValue(c->Dim(coordinates, 1), 2, &dim));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &values));
      TF_RETURN_IF_ERROR(c->Merge(c->Dim(coordinates, 0), c->Dim(values, 0), &dim));
      int64_t rows, cols;
      TF_RETURN_IF_ERROR(c->GetAttr("rows", &rows));
      TF_RETURN_IF_ERROR(c->GetAttr("cols", &cols));
      c->set_output(0, c->Matrix(rows, cols));
      return absl::OkStatus();
    });

template <typename T>
class CooToDenseOp : public OpKernel {
 public:
  explicit CooToDenseOp(OpKernelConstruction* c) : OpKernel(c) {
    int64_t rows, cols;
    OP_REQUIRES_OK(c, c->GetAttr("rows", &rows));
    OP_REQUIRES_OK(c, c->GetAttr("cols", &cols));
    OP_REQUIRES_OK(c, TensorShape::BuildTensorShape({rows, cols}, &dense_shape_));
    OP_REQUIRES(c, dense_shape_.num_elements() <= 1 << 26, errors::InvalidArgument("the matrix would be too large"));
  }

  void Compute(OpKernelContext* c) override {
    const Tensor& coordinates = c->input(0);
    const Tensor& values = c->input(1);
    OP_REQUIRES(c, TensorShapeUtils::IsMatrix(coordinates.shape()) && coordinates.dim_size(1) == 2,
                errors::InvalidArgument("coordinates must be [n, 2]"));
    OP_REQUIRES(c, TensorShapeUtils::IsVector(values.shape()), errors::InvalidArgument("values must be a vector"));
    const int64_t entries = coordinates.dim_size(0);
    OP_REQUIRES(c, values.dim_size(0) == entries,
                errors::InvalidArgument(entries, " coordinates, but ", values.dim_size(0), " values"));

    Tensor* dense = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, dense_shape_, &dense));
    auto cells = dense->matrix<T>();
    cells.setZero();

    const int64_t* at = coordinates.flat<int64_t>().data();
    const T* value = values.flat<T>().data();
    for (int64_t e = 0; e < entries; ++e, at += 2) {
      const int64_t row = at[0], col = at[1];
      OP_REQUIRES(c, row >= 0 && row < cells.dimension(0) && col >= 0 && col < cells.dimension(1),
                  errors::InvalidArgument("entry ", e, " lies outside the matrix"));
      cells(row, col) += value[e];
    }
  }

 private:
  TensorShape dense_shape_;
};

REGISTER_KERNEL_BUILDER(Name("CooToDense").Device(DEVICE_CPU).TypeConstraint<float>("T"), CooToDenseOp<float>);
REGISTER_KERNEL_BUILDER(Name("CooToDense").Device(DEVICE_CPU).TypeConstraint<double>("T"), CooToDenseOp<double>);
