#include <array>
#include <vector>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("PrefixTree")
    .Input("words: string")
    .Output("nodes: int64")
    .SetShapeFn(shape_inference::ScalarShape)
    .Doc("Number of nodes of the prefix tree of some lower-case words.");

namespace {

struct TrieNode {
  std::array<int64_t, 26> next{};
};

void Insert(const tstring& word, std::vector<TrieNode>* nodes) {
  int64_t at = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    const int letter = word[i] - 'a';
    if ((*nodes)[at].next[letter] == 0) {
      nodes->emplace_back();
      (*nodes)[at].next[letter] = nodes->size() - 1;
    }
    at = (*nodes)[at].next[letter];
  }
}

bool IsLowerCase(const tstring& word) {
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] < 'a' || word[i] > 'z') return false;
  }
  return true;
}

}  // namespace

class PrefixTreeOp : public OpKernel {
 public:
  explicit PrefixTreeOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const auto words = ctx->input(0).flat<tstring>();
    Tensor* count = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &count));
    std::vector<TrieNode> nodes(1);
    for (int64_t i = 0; i < words.size(); ++i) {
      OP_REQUIRES(ctx, IsLowerCase(words(i)), errors::InvalidArgument("word ", i, " has other letters than a to z"));
      Insert(words(i), &nodes);
    }
    count->scalar<int64_t>()() = static_cast<int64_t>(nodes.size());
  }
};

REGISTER_KERNEL_BUILDER(Name("PrefixTree").Device(DEVICE_CPU), PrefixTreeOp);
