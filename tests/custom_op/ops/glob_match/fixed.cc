#include <string>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

using namespace tensorflow;

REGISTER_OP("GlobMatch")
    .Input("names: string")
    .Attr("pattern: string")
    .Output("matches: bool")
    .SetShapeFn(shape_inference::UnchangedShape)
    .Doc("Shell patterns: '*' is any text, '?' any one byte.");

static bool Matches(const char* pattern, const char* text, const char* end) {
  const char* star = nullptr;
  const char* resume = nullptr;
  while (text != end) {
    if (*pattern == '*') {
      star = pattern++;
      resume = text;
    } else if (*pattern != '\0' && (*pattern == '?' || *pattern == *text)) {
      ++pattern;
      ++text;
    } else if (star != nullptr) {
      pattern = star + 1;
      text = ++resume;
    } else {
      return false;
    }
  }
  while (*pattern == '*') ++pattern;
  return *pattern == '\0';
}

class GlobMatchOp : public OpKernel {
 public:
  explicit GlobMatchOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("pattern", &pattern_));
  }

  void Compute(OpKernelContext* ctx) override {
    const Tensor& names = ctx->input(0);
    Tensor* matches = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, names.shape(), &matches));
    const auto texts = names.flat<tstring>();
    auto out = matches->flat<bool>();
    for (int64_t i = 0; i < texts.size(); ++i) {
      const tstring& text = texts(i);
      out(i) = Matches(pattern_.c_str(), text.data(), text.data() + text.size());
    }
  }

 private:
  std::string pattern_;
};

REGISTER_KERNEL_BUILDER(Name("GlobMatch").Device(DEVICE_CPU), GlobMatchOp);
