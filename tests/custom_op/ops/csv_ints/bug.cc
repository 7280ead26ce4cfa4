#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace tensorflow {
namespace ingest {

REGISTER_OP("DecodeIntCsv")
    .Input("lines: string")
    .Output("table: int64")
    .Attr("columns: int >= 1")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle lines;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &lines));
      int64_t columns;
      TF_RETURN_IF_ERROR(c->GetAttr("columns", &columns));
      c->set_output(0, c->Matrix(c->Dim(lines, 0), columns));
      return OkStatus();
    })
    .Doc(R"doc(Turns lines of comma-separated whole numbers into a matrix.)doc");

class DecodeIntCsvOp : public OpKernel {
 public:
  explicit DecodeIntCsvOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("columns", &columns_));
    OP_REQUIRES(ctx, columns_ >= 1, errors::InvalidArgument("columns must be positive"));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor* lines_t;
    OP_REQUIRES_OK(ctx, ctx->input("lines", &lines_t));
    OP_REQUIRES(ctx, lines_t->dims() == 1, errors::InvalidArgument("lines must be a vector"));
    const auto lines = lines_t->vec<tstring>();

    std::vector<int64_t> numbers;
    for (int64_t row = 0; row < lines.size(); ++row) {
      const std::vector<std::string> fields = absl::StrSplit(absl::string_view(lines(row)), ',');
      OP_REQUIRES(ctx, static_cast<int64_t>(fields.size()) == columns_,
                  errors::InvalidArgument("line ", row, " has ", fields.size(), " fields, not ", columns_));
      for (const std::string& field : fields) {
        numbers.push_back(std::stoll(field));
      }
    }

    TensorShape shape;
    OP_REQUIRES_OK(ctx, TensorShape::BuildTensorShape({lines.size(), columns_}, &shape));
    Tensor* table_t = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output("table", shape, &table_t));
    std::copy(numbers.begin(), numbers.end(), table_t->flat<int64_t>().data());
  }

 private:
  int64_t columns_;
};

REGISTER_KERNEL_BUILDER(Name("DecodeIntCsv").Device(DEVICE_CPU), DecodeIntCsvOp);

}  // namespace ingest
}  // namespace tensorflow
