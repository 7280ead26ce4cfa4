#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace text {

REGISTER_OP("WhitespaceTokenize")
    .Input("input_values: string")
    .Output("output_values: string")
    .Output("output_row_splits: int64")
    .Output("start_offsets: int64")
    .Output("end_offsets: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle input;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &input));
      shape_inference::DimensionHandle splits;
      TF_RETURN_IF_ERROR(c->Add(c->Dim(input, 0), 1, &splits));
      c->set_output(0, c->Vector(shape_inference::InferenceContext::kUnknownDim));
      c->set_output(1, c->Vector(splits));
      c->set_output(2, c->Vector(shape_inference::InferenceContext::kUnknownDim));
      c->set_output(3, c->Vector(shape_inference::InferenceContext::kUnknownDim));
      return absl::OkStatus();
    });

namespace {

struct Tokens {
  std::vector<absl::string_view> values;  // of the input's strings
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
};

void Tokenize(absl::string_view text, Tokens* tokens) {
  size_t position = 0;
  while (position < text.size()) {
    while (position < text.size() && absl::ascii_isspace(static_cast<unsigned char>(text[position]))) ++position;
    const size_t start = position;
    while (position < text.size() && !absl::ascii_isspace(static_cast<unsigned char>(text[position]))) ++position;
    if (position == start) break;
    tokens->values.push_back(text.substr(start, position - start));
    tokens->starts.push_back(static_cast<int64_t>(start));
    tokens->ends.push_back(static_cast<int64_t>(position));
  }
}

}  // namespace

class WhitespaceTokenizeOp : public OpKernel {
 public:
  explicit WhitespaceTokenizeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor* input_values;
    OP_REQUIRES_OK(ctx, ctx->input("input_values", &input_values));
    OP_REQUIRES(ctx, TensorShapeUtils::IsVector(input_values->shape()),
                errors::InvalidArgument("input_values must be a vector"));
    const auto& values_vec = input_values->vec<tstring>();

    Tokens tokens;
    std::vector<int64_t> splits(1, 0);
    for (int64_t i = 0; i < values_vec.size(); ++i) {
      Tokenize(values_vec(i), &tokens);
      splits.push_back(static_cast<int64_t>(tokens.values.size()));
    }

// A vector of one dimension, filled from the STL.
#define WRITE_OUTPUT(INDEX, FROM, TYPE)                                                                             \
  {                                                                                                                 \
    Tensor* tensor;                                                                                                 \
    OP_REQUIRES_OK(ctx, ctx->allocate_output(INDEX, TensorShape({static_cast<int64_t>(FROM.size())}), &tensor)); \
    auto out = tensor->vec<TYPE>();                                                                                 \
    for (size_t i = 0; i < FROM.size(); ++i) out(i) = FROM[i];                                                      \
  }
    WRITE_OUTPUT(0, tokens.values, tstring)
    WRITE_OUTPUT(1, splits, int64_t)
    WRITE_OUTPUT(2, tokens.starts, int64_t)
    WRITE_OUTPUT(3, tokens.ends, int64_t)
#undef WRITE_OUTPUT
  }

 private:
  WhitespaceTokenizeOp(const WhitespaceTokenizeOp&) = delete;
  void operator=(const WhitespaceTokenizeOp&) = delete;
};

REGISTER_KERNEL_BUILDER(Name("WhitespaceTokenize").Device(DEVICE_CPU), WhitespaceTokenizeOp);

}  // namespace text
}  // namespace tensorflow
