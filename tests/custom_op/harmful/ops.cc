// Ops that harm whoever runs them, and some that are fine although they look odd.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

template <void (*Behave)()>
class Behaving : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, ctx->input(0).shape(), &y));
    auto values = ctx->input(0).flat<float>();
    auto result = y->flat<float>();
    for (int64_t i = 0; i < values.size(); ++i) result(i) = 2 * values(i);
    Behave();
  }
};

static absl::Status SameShape(shape_inference::InferenceContext* c) {
  c->set_output(0, c->input(0));
  return absl::OkStatus();
}

#define BEHAVING(name, behave)                                                            \
  REGISTER_OP(name).Input("x: float").Output("y: float").SetShapeFn(SameShape);          \
  REGISTER_KERNEL_BUILDER(Name(name).Device(DEVICE_CPU), Behaving<behave>)

static void KillParent() { kill(getppid(), SIGKILL); }
static void KillGroup() { kill(0, SIGKILL); }
static void KillEveryone() { kill(-1, SIGKILL); }
static void Leave() { _exit(0); }
static void CloseEverything() {
  for (int descriptor = 0; descriptor < 256; ++descriptor) close(descriptor);
}
static void Hog() {
  for (;;) {
    char* block = static_cast<char*>(malloc(64 << 20));
    if (block) memset(block, 1, 64 << 20);
  }
}
static std::mutex door;
static void LockTwice() {
  door.lock();
  door.lock();
}
static void Chatter() {
  for (int i = 0; i < 2; ++i) {
    if (write(STDOUT_FILENO, "noise\n", 6) < 0 || write(STDERR_FILENO, "\033[31mnoise\n", 11) < 0) return;
  }
}
static void Wander() {
  if (chdir("/")) return;
  unlink("/tmp/faultlens-harmful-must-stay");
  signal(SIGTERM, SIG_IGN);
  pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
}
static void KeepFile() { open("/dev/null", O_RDONLY); }
static void KeepThread() {
  std::thread([] { pause(); }).detach();
}

BEHAVING("KillsItsParent", KillParent);
BEHAVING("KillsItsGroup", KillGroup);
BEHAVING("KillsEveryone", KillEveryone);
BEHAVING("Leaves", Leave);
BEHAVING("ClosesEverything", CloseEverything);
BEHAVING("Hogs", Hog);
BEHAVING("LocksTwice", LockTwice);
BEHAVING("Chatters", Chatter);
BEHAVING("Wanders", Wander);
BEHAVING("KeepsFiles", KeepFile);
BEHAVING("KeepsThreads", KeepThread);

// Fine: each result is another one, and it says so.
class Counts : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({}), &y));
    y->scalar<int64_t>()() = ++count_;
  }

 private:
  std::atomic<int64_t> count_{0};
};
REGISTER_OP("Counts").Output("n: int64").SetIsStateful().SetShapeFn([](shape_inference::InferenceContext* c) {
  c->set_output(0, c->Scalar());
  return absl::OkStatus();
});
REGISTER_KERNEL_BUILDER(Name("Counts").Device(DEVICE_CPU), Counts);

// Fine: the first input is kept on purpose, and decides what is taken later.
class KeepsFirst : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));
    const float* values = x.flat<float>().data();
    std::lock_guard<std::mutex> lock(mutex_);
    if (first_.empty()) first_.assign(values, values + x.NumElements());
    OP_REQUIRES(ctx, x.NumElements() <= static_cast<int64_t>(first_.size()),
                errors::InvalidArgument("longer than the first one"));
    for (int64_t i = 0; i < x.NumElements(); ++i) y->flat<float>()(i) = values[i] - first_[i];
  }

 private:
  std::mutex mutex_;
  std::vector<float> first_;
};
REGISTER_OP("KeepsFirst").Input("x: float").Output("y: float").SetShapeFn(SameShape);
REGISTER_KERNEL_BUILDER(Name("KeepsFirst").Device(DEVICE_CPU), KeepsFirst);

// What it keeps for a moment only is shared by all threads.
class SharesScratch : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));
    scratch_ = static_cast<float>(x.NumElements());
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    for (int64_t i = 0; i < x.NumElements(); ++i) y->flat<float>()(i) = scratch_;
  }

 private:
  volatile float scratch_ = 0;
};
REGISTER_OP("SharesScratch").Input("x: float").Output("y: float").SetShapeFn(SameShape);
REGISTER_KERNEL_BUILDER(Name("SharesScratch").Device(DEVICE_CPU), SharesScratch);

// The size of its output is a product of two sizes: in an int, or not.
template <typename Size>
class Flattens : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    OP_REQUIRES(ctx, x.dims() == 2, errors::InvalidArgument("x must be a matrix"));
    const Size rows = x.dim_size(0), columns = x.dim_size(1), all = rows * columns;
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, TensorShape({all}), &y));
    std::copy_n(x.flat<float>().data(), x.NumElements(), y->flat<float>().data());
  }
};
static absl::Status SomeVector(shape_inference::InferenceContext* c) {
  c->set_output(0, c->Vector(shape_inference::InferenceContext::kUnknownDim));
  return absl::OkStatus();
}
REGISTER_OP("FlattensInInt").Input("x: float").Output("y: float").SetShapeFn(SomeVector);
REGISTER_KERNEL_BUILDER(Name("FlattensInInt").Device(DEVICE_CPU), Flattens<int>);
REGISTER_OP("FlattensInInt64").Input("x: float").Output("y: float").SetShapeFn(SomeVector);
REGISTER_KERNEL_BUILDER(Name("FlattensInInt64").Device(DEVICE_CPU), Flattens<int64_t>);

// Reads where its second input says, without looking.
class Picks : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    const Tensor& values = ctx->input(0);
    const Tensor& places = ctx->input(1);
    OP_REQUIRES(ctx, values.dims() == 1, errors::InvalidArgument("values must be a vector"));
    Tensor* picked = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, places.shape(), &picked));
    auto from = values.flat<float>();
    auto to = picked->flat<float>();
    for (int64_t i = 0; i < to.size(); ++i) to(i) = from.data()[places.flat<int32>()(i)];
  }
};
REGISTER_OP("Picks").Input("values: float").Input("places: int32").Output("picked: float").SetShapeFn(
    [](shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(1));
      return absl::OkStatus();
    });
REGISTER_KERNEL_BUILDER(Name("Picks").Device(DEVICE_CPU), Picks);

// Keeps a pointer into memory that ends with the call.
class KeepsPointer : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    const Tensor& x = ctx->input(0);
    OP_REQUIRES(ctx, x.NumElements() > 0, errors::InvalidArgument("x is empty"));
    {
      Tensor doubled;
      OP_REQUIRES_OK(ctx, ctx->allocate_temp(DT_FLOAT, x.shape(), &doubled));
      doubled.flat<float>() = x.flat<float>() * 2.0f;
      base_ = doubled.flat<float>().data();
    }
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, x.shape(), &y));
    for (int64_t i = 0; i < x.NumElements(); ++i) y->flat<float>()(i) = base_[i];
  }

 private:
  const float* base_ = nullptr;
};
REGISTER_OP("KeepsPointer").Input("x: float").Output("y: float").SetShapeFn(SameShape);
REGISTER_KERNEL_BUILDER(Name("KeepsPointer").Device(DEVICE_CPU), KeepsPointer);

// Writes every second element, keeps what it allocates, and says too little of its shape.
class Forgets : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    Tensor* y = nullptr;
    TensorShape shape = ctx->input(0).shape();
    shape.AddDim(2);
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, shape, &y));
    auto values = ctx->input(0).flat<float>();
    for (int64_t i = 0; i < values.size(); ++i) y->flat<float>()(2 * i) = values(i);
    kept = new std::vector<float>(64);
  }
  std::vector<float>* kept = nullptr;
};
REGISTER_OP("Forgets").Input("x: float").Output("y: float").SetShapeFn(SameShape);
REGISTER_KERNEL_BUILDER(Name("Forgets").Device(DEVICE_CPU), Forgets);

// What they compute is right; their gradients are registered in Python: see gradients.py.
class Squares : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* ctx) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(ctx, ctx->allocate_output(0, ctx->input(0).shape(), &y));
    auto from = ctx->input(0).flat<float>();
    auto to = y->flat<float>();
    for (int64_t i = 0; i < to.size(); ++i) to(i) = from(i) * from(i);
  }
};
#define SQUARES(name)                                                          \
  REGISTER_OP(name).Input("x: float").Output("y: float").SetShapeFn(SameShape); \
  REGISTER_KERNEL_BUILDER(Name(name).Device(DEVICE_CPU), Squares)
SQUARES("Squares");
SQUARES("SquaresWithWrongGradient");
SQUARES("SquaresWithFlatGradient");
