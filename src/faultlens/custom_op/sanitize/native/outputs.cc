// Loaded by guest.c: outputs of the op are filled with a pattern before the op writes them, and looked at when it
// returns. What still bears the pattern was never set. Floats are filled with a NaN of our own, which stays what it is
// when something is added to it: sums that were never begun with zero are seen, too.
//
// FAULTLENS_OUTPUTS_OF   the library whose ops are looked at

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"

namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

constexpr int kFrames = 24;
constexpr size_t kPiece = 4096;  // bytes that are compared at a time
constexpr int kSurely = 48;  // bits that would have to agree by chance

struct Filled {
  OpKernelContext* context;
  int index;
  uintptr_t address;  // in the library: the call of allocate_output, or 0
};

thread_local std::vector<Filled> filled;

constexpr uint32_t kFloatMark = 0x7fe5a3c6u;
constexpr uint64_t kDoubleMark = 0x7ffe5a3c6b91d2e7u;

bool IsFloat(tensorflow::DataType type) { return type == tensorflow::DT_FLOAT || type == tensorflow::DT_COMPLEX64; }
bool IsDouble(tensorflow::DataType type) { return type == tensorflow::DT_DOUBLE || type == tensorflow::DT_COMPLEX128; }
bool IsMarked(tensorflow::DataType type) { return IsFloat(type) || IsDouble(type); }

// Of whole numbers it differs from place to place: copied values do not bear it.
uint64_t PatternAt(tensorflow::DataType type, uint64_t place) {
  if (IsFloat(type)) return kFloatMark | static_cast<uint64_t>(kFloatMark) << 32;
  if (IsDouble(type)) return kDoubleMark;
  place = (place ^ (place >> 30)) * 0xbf58476d1ce4e5b9u;
  place = (place ^ (place >> 27)) * 0x94d049bb133111ebu;
  return place ^ (place >> 31);
}

// The pattern of memory from `begin` on, which is aligned as tensors are.
void WritePattern(tensorflow::DataType type, const unsigned char* begin, size_t size, unsigned char* to) {
  const uint64_t word = reinterpret_cast<uint64_t>(begin) / sizeof(uint64_t);
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    const uint64_t pattern = PatternAt(type, word + i / sizeof(uint64_t));
    memcpy(to + i, &pattern, std::min(sizeof(uint64_t), size - i));
  }
}

bool CanBeLookedAt(const Tensor& tensor) {
  return tensor.IsInitialized() && tensorflow::DataTypeCanUseMemcpy(tensor.dtype()) && tensor.TotalBytes() > 0 &&
         reinterpret_cast<uint64_t>(tensor.data()) % sizeof(uint64_t) == 0;
}

struct Range {
  std::atomic<uintptr_t> begin{0}, end{0};
};

int FindRange(dl_phdr_info* info, size_t, void* data) {
  static const char* library = getenv("FAULTLENS_OUTPUTS_OF");
  char real[PATH_MAX];
  if (!library || !info->dlpi_name || !realpath(info->dlpi_name, real) || strcmp(real, library) != 0) return 0;
  uintptr_t end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD) end = std::max<uintptr_t>(end, part.p_vaddr + part.p_memsz);
  }
  auto* range = static_cast<Range*>(data);
  range->end = info->dlpi_addr + end;
  range->begin = info->dlpi_addr;
  return 1;
}

// The place in the library whose ops are looked at, or 0. (dladdr would look through TensorFlow's symbols.)
uintptr_t InLibrary(void* address) {
  static Range range;
  if (range.begin == 0) dl_iterate_phdr(FindRange, &range);
  const auto place = reinterpret_cast<uintptr_t>(address);
  return range.begin != 0 && range.begin <= place && place < range.end ? place - range.begin : 0;
}

uintptr_t ComputeOf(const OpKernelContext& context) {
  auto* kernel = const_cast<tensorflow::OpKernel*>(&context.op_kernel());
  return InLibrary(reinterpret_cast<void*>(kernel->*(&tensorflow::OpKernel::Compute)));
}

// Where the op was when it called us, directly or through TensorFlow.
uintptr_t Caller(void* direct) {
  if (uintptr_t place = InLibrary(static_cast<char*>(direct) - 1)) return place;
  void* frames[kFrames];
  const int depth = backtrace(frames, kFrames);
  for (int i = 0; i < depth; ++i) {
    if (uintptr_t place = InLibrary(static_cast<char*>(frames[i]) - 1)) return place;
  }
  return 0;
}

void Fill(OpKernelContext* context, int index, Tensor* tensor, void* caller) {
  if (!ComputeOf(*context) || !CanBeLookedAt(*tensor)) return;
  auto* bytes = static_cast<unsigned char*>(tensor->data());
  WritePattern(tensor->dtype(), bytes, tensor->TotalBytes(), bytes);
  filled.push_back({context, index, Caller(caller)});
}

struct Unset {
  int64_t count = 0;
  int64_t first = -1;
};

template <size_t size>
Unset CountOf(const Tensor& tensor) {
  Unset unset;
  const auto* bytes = static_cast<const unsigned char*>(tensor.data());
  alignas(sizeof(uint64_t)) unsigned char pattern[kPiece];
  for (size_t begin = 0; begin < tensor.TotalBytes(); begin += kPiece) {
    const size_t length = std::min<size_t>(kPiece, tensor.TotalBytes() - begin);
    WritePattern(tensor.dtype(), bytes + begin, length, pattern);
    for (size_t i = 0; i < length; i += size) {
      if (memcmp(bytes + begin + i, pattern + i, size) != 0) continue;
      if (unset.count++ == 0) unset.first = static_cast<int64_t>((begin + i) / size);
    }
  }
  return unset;
}

Unset Count(const Tensor& tensor) {
  switch (tensor.TotalBytes() / tensor.NumElements()) {
    case 1: return CountOf<1>(tensor);
    case 2: return CountOf<2>(tensor);
    case 4: return CountOf<4>(tensor);
    case 8: return CountOf<8>(tensor);
    case 16: return CountOf<16>(tensor);
    default: return Unset();
  }
}

// Of values as small as a byte some bear the pattern by chance.
bool IsSure(const Unset& unset, const Tensor& tensor) {
  if (IsMarked(tensor.dtype())) return unset.count > 0;
  const size_t size = tensor.TotalBytes() / tensor.NumElements();
  const double by_chance = size >= 8 ? 0 : static_cast<double>(tensor.NumElements()) / (1ull << (8 * size));
  return unset.count * static_cast<int64_t>(8 * size) >= kSurely && unset.count > 4 * by_chance;
}

// An op is not to blame for what others handed to it.
bool CameIn(OpKernelContext* context, tensorflow::DataType type) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (!context->has_input(i) || tensorflow::IsRefType(context->input_dtype(i))) continue;
    const Tensor& input = context->input(i);
    if (input.dtype() == type && IsMarked(type) && CanBeLookedAt(input) && Count(input).count > 0) return true;
  }
  return false;
}

void Tell(const Filled& output, const OpKernelContext& context, const char* what) {
  const char* folder = getenv("FAULTLENS_SANITIZE_LOG");
  char path[PATH_MAX];
  if (!folder) return;
  snprintf(path, sizeof path, "%s/%d.outputs", folder, getpid());
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  dprintf(file, "%s\t%s\t%d\t%zx\t%s\n", context.op_kernel().type_string().c_str(), context.op_kernel().name().c_str(),
          output.index, static_cast<size_t>(output.address), what);
  close(file);
  auto note = reinterpret_cast<void (*)(const char*)>(dlsym(RTLD_DEFAULT, "faultlens_note_python"));
  if (note) note("outputs");
}

void TellUnset(const Filled& output, const OpKernelContext& context, const Tensor& tensor, const Unset& unset) {
  char what[512];
  snprintf(what, sizeof what, "%lld\t%lld\t%lld\t%s\t%s", static_cast<long long>(unset.count),
           static_cast<long long>(tensor.NumElements()), static_cast<long long>(unset.first),
           tensorflow::DataTypeString(tensor.dtype()).c_str(), tensor.shape().DebugString().c_str());
  Tell(output, context, what);
}

void Look(const Filled& output, OpKernelContext* context) {
  Tensor* tensor = context->mutable_output(output.index);
  if (!tensor || !CanBeLookedAt(*tensor)) return;
  const Unset unset = Count(*tensor);
  if (IsSure(unset, *tensor) && !CameIn(context, tensor->dtype())) {
    TellUnset(output, *context, *tensor, unset);
  }
}

std::vector<Filled> TakeOf(OpKernelContext* context) {
  std::vector<Filled> own, others;
  for (const Filled& each : filled) (each.context == context ? own : others).push_back(each);
  filled = std::move(others);
  return own;
}

// Outputs that TensorFlow will ask for, and that are not there.
void LookForMissing(OpKernelContext* context) {
  const uintptr_t compute = ComputeOf(*context);
  for (int i = 0; compute && i < context->num_outputs(); ++i) {
    if (context->output_required(i) && !tensorflow::IsRefType(context->expected_output_dtype(i)) &&
        context->mutable_output(i) == nullptr) {
      Tell({context, i, compute}, *context, "0\t0\t-1\t-\t-");
    }
  }
}

}  // namespace

extern "C" void faultlens_allocated(const tensorflow::Status* status, OpKernelContext* context, int index,
                                    Tensor** output, void* caller) {
  if (status->ok()) Fill(context, index, *output, caller);
}

extern "C" void faultlens_computed(OpKernelContext* context) {
  std::vector<Filled> outputs;
  if (!filled.empty()) outputs = TakeOf(context);
  if (!context->status().ok()) return;
  for (const Filled& each : outputs) Look(each, context);
  LookForMissing(context);
}
