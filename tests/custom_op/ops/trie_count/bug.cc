#include <map>
#include <memory>

#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

namespace {

constexpr size_t kLongestWord = 256;

struct Branch {
  int64_t words = 0;
  std::map<char, Branch*> next;
};

void Insert(Branch* root, absl::string_view word) {
  Branch* branch = root;
  ++branch->words;
  for (char letter : word) {
    auto& child = branch->next[letter];
    if (child == nullptr) child = new Branch;
    branch = child;
    ++branch->words;
  }
}

int64_t CountOf(const Branch& root, absl::string_view prefix) {
  const Branch* branch = &root;
  for (char letter : prefix) {
    auto found = branch->next.find(letter);
    if (found == branch->next.end()) return 0;
    branch = found->second;
  }
  return branch->words;
}

}  // namespace

REGISTER_OP("PrefixCounts")
    .Input("words: string")
    .Input("prefixes: string")
    .Output("counts: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(1));
      return absl::OkStatus();
    });

class PrefixCountsOp : public OpKernel {
 public:
  explicit PrefixCountsOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const auto words = context->input(0).flat<tstring>();
    const auto prefixes = context->input(1).flat<tstring>();
    Branch root;
    for (int64_t i = 0; i < words.size(); ++i) {
      OP_REQUIRES(context, words(i).size() <= kLongestWord,
                  errors::InvalidArgument("word ", i, " is longer than ", kLongestWord, " bytes"));
      Insert(&root, words(i));
    }
    Tensor* counts = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(1).shape(), &counts));
    auto out = counts->flat<int64_t>();
    for (int64_t i = 0; i < prefixes.size(); ++i) out(i) = CountOf(root, prefixes(i));
  }
};

REGISTER_KERNEL_BUILDER(Name("PrefixCounts").Device(DEVICE_CPU), PrefixCountsOp);
