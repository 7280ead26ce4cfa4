#include <string>
#include <unordered_map>

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {
namespace nlp {

namespace {

std::string Strip(const std::string& word) {
  static const char* const kEndings[] = {"ing", "ed", "s"};
  for (const char* ending : kEndings) {
    const std::string tail(ending);
    if (word.size() > tail.size() + 2 && word.compare(word.size() - tail.size(), tail.size(), tail) == 0)
      return word.substr(0, word.size() - tail.size());
  }
  return word;
}

// Texts repeat their words.
std::string StemOf(const std::string& word) {
  static mutex* mu = new mutex;
  static auto* known = new std::unordered_map<std::string, std::string>;
  mutex_lock lock(*mu);
  auto found = known->find(word);
  if (found != known->end()) return found->second;
  return known->emplace(word, Strip(word)).first->second;
}

}  // namespace

REGISTER_OP("StemWords").Input("words: string").Output("stems: string").SetShapeFn(shape_inference::UnchangedShape);

class StemWordsOp : public OpKernel {
 public:
  explicit StemWordsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {}

  void Compute(OpKernelContext* ctx) override {
    const Tensor& words = ctx->input(0);
    Tensor* stems = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, words.shape(), &stems));
    const auto in = words.flat<tstring>();
    auto out = stems->flat<tstring>();
    for (int64_t i = 0; i < in.size(); ++i) out(i) = StemOf(in(i));
  }
};

REGISTER_KERNEL_BUILDER(Name("StemWords").Device(DEVICE_CPU), StemWordsOp);

}  // namespace nlp
}  // namespace tensorflow
