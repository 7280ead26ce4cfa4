#include <string>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/util/work_sharder.h"

using namespace tensorflow;

REGISTER_OP("CollectWords")
    .Input("texts: string")
    .Attr("shortest: int = 3")
    .Output("words: string")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      c->set_output(0, c->Vector(c->UnknownDim()));
      return absl::OkStatus();
    });

class CollectWordsOp : public OpKernel {
 public:
  explicit CollectWordsOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("shortest", &shortest_));
  }

  void Compute(OpKernelContext* ctx) override {
    auto texts = ctx->input(0).flat<tstring>();
    std::vector<std::string> found;
    auto pool = ctx->device()->tensorflow_cpu_worker_threads();
    Shard(pool->num_threads, pool->workers, texts.size(), 50000, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const tstring& text = texts(i);
        std::string word;
        for (size_t k = 0; k <= text.size(); ++k) {
          if (k < text.size() && text[k] != ' ') {
            word += text[k];
          } else {
            if (static_cast<int>(word.size()) >= shortest_) found.push_back(word);
            word.clear();
          }
        }
      }
    });
    Tensor* out = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({static_cast<int64_t>(found.size())}), &out));
    for (size_t i = 0; i < found.size(); ++i) out->flat<tstring>()(i) = found[i];
  }

 private:
  int shortest_;
};

REGISTER_KERNEL_BUILDER(Name("CollectWords").Device(DEVICE_CPU), CollectWordsOp);
