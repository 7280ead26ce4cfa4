// One mistake in each op, told by a comment on the guilty line; the last one is healthy.

#include <vector>
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
using namespace tensorflow;

static absl::Status SameShape(shape_inference::InferenceContext* c) {
  c->set_output(0, c->input(0));
  return absl::OkStatus();
}

#define PLANTED(NAME) \
  REGISTER_OP(#NAME).Input("x: float").Output("y: float").SetShapeFn(SameShape); \
  REGISTER_KERNEL_BUILDER(Name(#NAME).Device(DEVICE_CPU), NAME##Op)

class WritePastOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
    auto in = x.flat<float>();
    float* out = y->flat<float>().data();
    for (int64_t i = 0; i <= in.size(); ++i) {
      out[i] = 2.0f;  // heap write
    }
  }
};
PLANTED(WritePast);

class ReadPastOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
    const float* in = x.flat<float>().data();
    auto out = y->flat<float>();
    for (int64_t i = 0; i < out.size(); ++i) {
      out(i) = in[i + 1];  // heap read
    }
  }
};
PLANTED(ReadPast);

class UsedAfterFreeOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    float* scratch = new float[16];  // allocated
    y->flat<float>().setZero();
    delete[] scratch;  // freed
    y->flat<float>()(0) = scratch[3];  // used
  }
};
PLANTED(UsedAfterFree);

class FreedTwiceOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    y->flat<float>().setZero();
    float* scratch = static_cast<float*>(malloc(256));
    scratch[0] = 1.0f;
    free(scratch);  // first
    free(scratch);  // second
  }
};
PLANTED(FreedTwice);

class StackArrayOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    float window[8];
    const auto in = context->input(0).flat<float>();
    for (int64_t i = 0; i < in.size(); ++i) {
      window[i] = in(i);  // stack write
    }
    y->flat<float>().setConstant(window[0]);
  }
};
PLANTED(StackArray);

class RecursiveOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  static float Deeper(const float* in, int64_t n) {
    volatile char room[4096];
    room[n % 4096] = 1;
    return in[0] + room[0] + Deeper(in, n + 1);  // recursion
  }
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    y->flat<float>().setConstant(Deeper(context->input(0).flat<float>().data(), 0));
  }
};
PLANTED(Recursive);

class LeakyOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    float* scratch = new float[1000];  // leak
    scratch[0] = context->input(0).flat<float>()(0);
    y->flat<float>().setConstant(scratch[0]);
  }
};
PLANTED(Leaky);

class UnsetOutputOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));  // uninitialised
    auto in = x.flat<float>();
    auto out = y->flat<float>();
    for (int64_t i = 1; i < in.size(); ++i) {
      out(i) = in(i) - in(i - 1);
    }
  }
};
PLANTED(UnsetOutput);

class SumNotBegunOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));  // never zero
    auto in = x.flat<float>();
    auto out = y->flat<float>();
    for (int64_t i = 0; i < in.size(); ++i) {
      out(i) += in(i);
    }
  }
};
PLANTED(SumNotBegun);

class ForgetfulOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {  // nothing is allocated
    const Tensor& x = context->input(0);
    if (x.NumElements() > 100) context->set_output(0, x);
  }
};
PLANTED(Forgetful);

class OverflowingOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    auto in = context->input(0).flat<float>();
    int n = static_cast<int>(in.size()) + 2147483640;  // signed overflow
    y->flat<float>().setConstant(n);
  }
};
PLANTED(Overflowing);

class HealthyOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, context->input(0).shape(), &y));
    auto in = context->input(0).flat<float>();
    auto out = y->flat<float>();
    mutex_lock lock(mu_);
    for (int64_t i = 0; i < in.size(); ++i) {
      total_ += in(i);
      out(i) = total_;
    }
  }

 private:
  mutex mu_;
  float total_ = 0;
};
PLANTED(Healthy);
