#include <memory>
#include <string>
#include <unordered_map>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

REGISTER_OP("VocabularyIds")
    .Input("vocabulary: string")
    .Input("words: string")
    .Output("ids: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      shape_inference::ShapeHandle vocabulary;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &vocabulary));
      c->set_output(0, c->input(1));
      return absl::OkStatus();
    })
    .Doc("Position of each word in the vocabulary, -1 if it is not there.");

namespace {

using Index = std::unordered_map<std::string, int64_t>;

Index* BuildIndex(const Tensor& vocabulary) {
  auto* index = new Index;
  const auto words = vocabulary.vec<tstring>();
  index->reserve(words.size());
  for (int64_t i = 0; i < words.size(); ++i) index->emplace(words(i), i);
  return index;
}

}  // namespace

class VocabularyIdsOp : public OpKernel {
 public:
  explicit VocabularyIdsOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& vocabulary = context->input(0);
    const Tensor& words = context->input(1);
    OP_REQUIRES(context, vocabulary.dims() == 1, errors::InvalidArgument("vocabulary must be a vector"));
    Tensor* ids = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, words.shape(), &ids));

    const Index* index = BuildIndex(vocabulary);
    const auto in = words.flat<tstring>();
    auto out = ids->flat<int64_t>();
    for (int64_t i = 0; i < in.size(); ++i) {
      const auto found = index->find(in(i));
      out(i) = found == index->end() ? -1 : found->second;
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("VocabularyIds").Device(DEVICE_CPU), VocabularyIdsOp);
