#include <atomic>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/util/work_sharder.h"

using namespace tensorflow;

REGISTER_OP("LabelHistogram")
    .Attr("classes: int >= 1")
    .Input("labels: int32")
    .Output("counts: int64")
    .SetShapeFn([](shape_inference::InferenceContext* c) {
      int64_t classes;
      TF_RETURN_IF_ERROR(c->GetAttr("classes", &classes));
      c->set_output(0, c->Vector(classes));
      return absl::OkStatus();
    });

class LabelHistogramOp : public OpKernel {
 public:
  explicit LabelHistogramOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("classes", &classes_));
    OP_REQUIRES(context, classes_ >= 1 && classes_ <= 1000000,
                errors::InvalidArgument("classes must be between 1 and a million"));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor& labels_tensor = context->input(0);
    const auto labels = labels_tensor.flat<int32>();  // any rank will do

    Tensor* counts_tensor = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({classes_}), &counts_tensor));
    auto counts = counts_tensor->vec<int64_t>();
    counts.setZero();

    std::atomic<bool> stray{false};
    auto count_some = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int32 label = labels(i);
        if (label < 0 || label >= classes_) {
          stray = true;
          return;
        }
        counts(label) += 1;
      }
    };
    const DeviceBase::CpuWorkerThreads& workers = *context->device()->tensorflow_cpu_worker_threads();
    Shard(workers.num_threads, workers.workers, labels.size(), 20, count_some);
    OP_REQUIRES(context, !stray, errors::InvalidArgument("labels must be in [0, ", classes_, ")"));
  }

 private:
  int64_t classes_;
};

REGISTER_KERNEL_BUILDER(Name("LabelHistogram").Device(DEVICE_CPU), LabelHistogramOp);
