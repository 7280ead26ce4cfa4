#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace {

REGISTER_OP("ConcatColumns")
    .Input("columns: Tcolumns")
    .Attr("Tcolumns: list({float, int32}) >= 1")
    .Output("table: float")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::DimensionHandle rows = c->UnknownDim();
      for (int i = 0; i < c->num_inputs(); ++i) {
        shape_inference::ShapeHandle column;
        TF_RETURN_IF_ERROR(c->WithRank(c->input(i), 1, &column));
        TF_RETURN_IF_ERROR(c->Merge(rows, c->Dim(column, 0), &rows));
      }
      c->set_output(0, c->Matrix(rows, c->num_inputs()));
      return OkStatus();
    });

class ConcatColumnsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* ctx) override {
    OpInputList columns;
    OP_REQUIRES_OK(ctx, ctx->input_list("columns", &columns));
    OP_REQUIRES(ctx, columns.size() > 0, errors::InvalidArgument("there are no columns"));
    for (int i = 0; i < columns.size(); ++i) {
      OP_REQUIRES(ctx, TensorShapeUtils::IsVector(columns[i].shape()),
                  errors::InvalidArgument("column ", i, " is not a vector"));
      OP_REQUIRES(ctx, columns[i].dim_size(0) == columns[0].dim_size(0),
                  errors::InvalidArgument("column ", i, " has a length of its own"));
    }

    const int64_t rows = columns[0].dim_size(0);
    Tensor* table = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({rows, columns.size()}), &table));
    auto cells = table->matrix<float>();
    for (int i = 0; i < columns.size(); ++i) {
      if (columns[i].dtype() == DT_FLOAT) {
        const auto column = columns[i].vec<float>();
        for (int64_t row = 0; row < rows; ++row) cells(row, i) = column(row);
      } else {
        OP_REQUIRES(ctx, columns[i].dtype() == DT_INT32, errors::InvalidArgument("column ", i, " is no number"));
        const auto column = columns[i].vec<int32>();
        for (int64_t row = 0; row < rows; ++row) cells(row, i) = static_cast<float>(column(row));
      }
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("ConcatColumns").Device(DEVICE_CPU), ConcatColumnsOp);

}  // namespace
}  // namespace tensorflow
