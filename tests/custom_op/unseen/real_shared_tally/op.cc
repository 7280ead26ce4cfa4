#include <algorithm>
#include <string>
#include <vector>

#include "tensorflow/core/framework/bounds_check.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow {

REGISTER_OP("SharedTally")
    .Input("ids: int32")
    .Output("counts: int64")
    .Attr("bins: int >= 1")
    .Attr("shared_name: string")
    .SetIsStateful()
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      int64_t bins;
      TF_RETURN_IF_ERROR(c->GetAttr("bins", &bins));
      c->set_output(0, c->Vector(bins));
      return absl::OkStatus();
    });

class Tally : public ResourceBase {
 public:
  explicit Tally(int64_t bins) : counts_(bins, 0) {}

  std::string DebugString() const override { return "Tally"; }

  absl::Status Add(const Tensor& ids, Tensor* counts) {
    const auto in = ids.flat<int32>();
    auto out = counts->vec<int64_t>();
    mutex_lock lock(mu_);
    const int64_t bins = counts_.size();
    if (out.size() != bins) return errors::InvalidArgument("the tally was made with ", bins, " bins");
    for (int64_t i = 0; i < in.size(); ++i) {
      const int32 id = internal::SubtleMustCopy(in(i));
      if (!FastBoundsCheck(id, bins)) return errors::InvalidArgument("id ", id, " is not in [0, ", bins, ")");
      ++counts_[id];
    }
    std::copy(counts_.begin(), counts_.end(), out.data());
    return absl::OkStatus();
  }

 private:
  mutex mu_;
  std::vector<int64_t> counts_ TF_GUARDED_BY(mu_);
};

class SharedTallyOp : public OpKernel {
 public:
  explicit SharedTallyOp(OpKernelConstruction* ctx) : OpKernel(ctx) {
    OP_REQUIRES_OK(ctx, ctx->GetAttr("bins", &bins_));
    OP_REQUIRES_OK(ctx, ctx->GetAttr("shared_name", &shared_name_));
    OP_REQUIRES(ctx, bins_ >= 1 && bins_ <= 65536, errors::InvalidArgument("bins must be in [1, 65536]"));
  }

  void Compute(OpKernelContext* ctx) override {
    ResourceMgr* manager = ctx->resource_manager();
    OP_REQUIRES(ctx, manager != nullptr, errors::Internal("no resource manager"));
    Tally* found = nullptr;
    OP_REQUIRES_OK(ctx, manager->LookupOrCreate<Tally>(manager->default_container(), shared_name_, &found,
                                                       [this](Tally** made) {
                                                         *made = new Tally(bins_);
                                                         return absl::OkStatus();
                                                       }));
    core::RefCountPtr<Tally> tally(found);
    Tensor* counts = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({bins_}), &counts));
    OP_REQUIRES_OK(ctx, tally->Add(ctx->input(0), counts));
  }

 private:
  int64_t bins_;
  std::string shared_name_;
};

REGISTER_KERNEL_BUILDER(Name("SharedTally").Device(DEVICE_CPU), SharedTallyOp);

}  // namespace tensorflow
