// Prints where TensorFlow keeps what a crash report needs, one "name number" per line; tensorflow_layouts.py runs it.
//
// Compiled against the headers of a wheel with -fno-access-control, and linked with nothing: all numbers come from the
// compiler, or from inline functions of the headers.

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"

using namespace tensorflow;

namespace {

void print(const char* name, long number) { std::printf("%s %ld\n", name, number); }

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not as expected: %s\n", what);
  _exit(1);
}

#define OFFSET(name, type, member) print(name, offsetof(type, member))
#define SIZE(name, type) print(name, sizeof(type))

void kernels() {
  using Params = OpKernelContext::Params;
  OFFSET("context_params", OpKernelContext, params_);
  OFFSET("params_op_kernel", Params, op_kernel);
  OFFSET("params_device", Params, device);
  OFFSET("params_inputs", Params, inputs);

  OFFSET("construction_props", OpKernelConstruction, props_);
  OFFSET("construction_device", OpKernelConstruction, device_);

  OFFSET("kernel_props", OpKernel, props_);
  OFFSET("kernel_name_view", OpKernel, name_view_);
  OFFSET("kernel_type_view", OpKernel, type_string_view_);

  OFFSET("props_op_def", NodeProperties, op_def);
  OFFSET("props_node_def", NodeProperties, node_def);
  OFFSET("props_input_types", NodeProperties, input_types);
}

// The byte in a shape that an accessor reads. All other bytes are zero meanwhile.
template <typename Read>
long byte_read_by(Read read) {
  alignas(TensorShapeRep) unsigned char raw[sizeof(TensorShapeRep)] = {};
  long found = -1;
  for (size_t i = 0; i < sizeof raw; ++i) {
    raw[i] = 1;
    if (static_cast<int>(read(*reinterpret_cast<TensorShapeRep*>(raw))) == 1) {
      require(found < 0, "one byte of a shape holds one fact");
      found = i;
    }
    raw[i] = 0;
  }
  require(found >= 0, "the facts of a shape are bytes");
  return found;
}

void tensors() {
  OFFSET("value_tensor", TensorValue, tensor);
  SIZE("value_size", TensorValue);

  OFFSET("tensor_shape", Tensor, shape_);
  OFFSET("tensor_buffer", Tensor, buf_);
  OFFSET("buffer_data", TensorBuffer, data_);

  OFFSET("shape_dims", TensorShapeRep, u_);
  print("shape_dtype", byte_read_by([](TensorShapeRep& shape) { return shape.data_type(); }));
  print("shape_ndims", byte_read_by([](TensorShapeRep& shape) { return shape.ndims_byte(); }));
  print("shape_tag", byte_read_by([](TensorShapeRep& shape) { return shape.tag(); }));
  OFFSET("shape_elements", TensorShapeRep, num_elements_);
  SIZE("sizeof_shape", TensorShapeRep);
  print("shape_tag_16", TensorShapeRep::REP16);
  print("shape_tag_32", TensorShapeRep::REP32);
  print("shape_tag_out_of_line", TensorShapeRep::REP_OUT_OF_LINE);

  SIZE("sizeof_tstring", TF_TString);
  print("tstring_type_mask", TF_TSTR_TYPE_MASK);
  print("tstring_type_small", TF_TSTR_SMALL);
  print("tstring_type_large", TF_TSTR_LARGE);
  print("tstring_type_offset", TF_TSTR_OFFSET);
  print("tstring_type_view", TF_TSTR_VIEW);
  OFFSET("tstring_small_size", TF_TString, u.smll.size);
  OFFSET("tstring_small_text", TF_TString, u.smll.str);
  OFFSET("tstring_large_size", TF_TString, u.large.size);
  OFFSET("tstring_large_pointer", TF_TString, u.large.ptr);
  OFFSET("tstring_offset_size", TF_TString, u.offset.size);
  OFFSET("tstring_offset_offset", TF_TString, u.offset.offset);
  OFFSET("tstring_view_size", TF_TString, u.view.size);
  OFFSET("tstring_view_pointer", TF_TString, u.view.ptr);
}

void containers() {
  OFFSET("string_pointer", std::string, _M_dataplus);
  OFFSET("string_length", std::string, _M_string_length);
  static_assert(std::is_same_v<absl::string_view, std::string_view>);
  OFFSET("view_pointer", std::string_view, _M_str);
  OFFSET("view_length", std::string_view, _M_len);
  using Values = absl::Span<const TensorValue>;
  OFFSET("span_pointer", Values, ptr_);
  OFFSET("span_length", Values, len_);

  // Twice the size; plus 1 if inlined_data points to the elements and they do not lie there themselves.
  using Types = DataTypeVector;
  OFFSET("inlined_size", Types, storage_.metadata_);
  OFFSET("inlined_data", Types, storage_.data_);
  const Types few(3, DT_INT64), many(9, DT_INT64);
  auto word = [](const Types& types, size_t offset) {
    return reinterpret_cast<const uintptr_t*>(reinterpret_cast<const char*>(&types) + offset);
  };
  auto size = [&](const Types& types) { return *word(types, offsetof(Types, storage_.metadata_)); };
  auto data = [&](const Types& types) { return word(types, offsetof(Types, storage_.data_)); };
  require(size(few) == 6 && static_cast<const void*>(few.data()) == data(few), "a short vector is inlined");
  require(size(many) == 19 && many.data() == reinterpret_cast<const DataType*>(*data(many)), "a long one is not");
}

// ---------------------------------------------------------------------------------------------------------- protobuf

// Which of the forms that protobuf's classes had over the years is this one?
#define HAS(member)                                                                     \
  template <typename Class, typename = void>                                            \
  constexpr bool has_##member = false;                                                  \
  template <typename Class>                                                             \
  constexpr bool has_##member<Class, std::void_t<decltype(&Class::member)>> = true;
HAS(elements_)
HAS(impl_)
HAS(soo_rep_)
HAS(current_size_)
HAS(tagged_rep_or_elem_)

template <typename Table, typename Node>
void map_of(size_t table) {
  print("map_elements", table + offsetof(Table, num_elements_));
  print("map_buckets", table + offsetof(Table, num_buckets_));
  print("map_table", table + offsetof(Table, table_));
  print("sizeof_map_count", sizeof(Table::num_elements_));
  OFFSET("map_node_next", Node, next);
  OFFSET("map_node_key", Node, kv.first);
  OFFSET("map_node_value", Node, kv.second);
}

template <typename Map>
void map() {
  if constexpr (has_elements_<Map>) {
    map_of<typename Map::InnerMap, typename Map::InnerMap::Node>(offsetof(Map, elements_));
  } else {
    map_of<Map, typename Map::Node>(0);
  }
}

template <typename Field>
constexpr size_t map_in_field() {
  if constexpr (has_impl_<Field>) {
    return offsetof(Field, impl_) + offsetof(typename Field::MapFieldLiteType, map_);
  } else {
    return offsetof(Field, map_);
  }
}

// The bit that makes a question come true.
template <typename Ask>
long only_bit(Ask ask) {
  uintptr_t found = 0;
  for (uintptr_t bit = 1; bit; bit <<= 1) {
    if (ask(bit)) {
      require(!found, "one bit is the mark");
      found = bit;
    }
  }
  require(found, "a bit is the mark");
  return found;
}

// Elements of a RepeatedField. Where repeated_long_bit is not 0 and not set in the word at repeated_pointer, they lie at
// repeated_inline and their number is the word & repeated_inline_mask. Else the pointer is the word without the bits of
// repeated_tag_mask, and the number is the int at repeated_size.
template <typename Field>
void repeated() {
  if constexpr (has_soo_rep_<Field>) {
    using Long = decltype(Field::soo_rep_.long_rep);
    using Short = decltype(Field::soo_rep_.short_rep);
    constexpr size_t base = offsetof(Field, soo_rep_);
    print("repeated_size", base + offsetof(Long, size));
    print("repeated_pointer", base + offsetof(Long, elements_int));
    Long pointer;
    pointer.elements_int = ~uintptr_t{0};
    print("repeated_tag_mask", ~reinterpret_cast<uintptr_t>(pointer.elements()));
    Short word;
    print("repeated_long_bit", only_bit([&](uintptr_t bit) {
            word.arena_and_size = bit;
            return !word.is_soo();
          }));
    print("repeated_inline", base + offsetof(Short, data));
    word.arena_and_size = ~uintptr_t{0};
    print("repeated_inline_mask", word.size());
  } else {
    if constexpr (has_current_size_<Field>) {
      OFFSET("repeated_size", Field, current_size_);
    } else {
      OFFSET("repeated_size", Field, size_);
    }
    OFFSET("repeated_pointer", Field, arena_or_elements_);
    print("repeated_tag_mask", 0);
    print("repeated_long_bit", 0);
    print("repeated_inline", 0);
    print("repeated_inline_mask", 0);
  }
}

// Elements of a RepeatedPtrField, which are pointers. Where pointers_many_bit is not 0 and not set in the word at
// pointers_array, that word is the only element. Else it points, without that bit, to a block that has them at
// pointers_first.
template <typename Field>
void repeated_pointers() {
  OFFSET("pointers_size", Field, current_size_);
  if constexpr (has_tagged_rep_or_elem_<Field>) {
    OFFSET("pointers_array", Field, tagged_rep_or_elem_);
    alignas(Field) char raw[sizeof(Field)] = {};
    Field& field = *reinterpret_cast<Field*>(raw);
    print("pointers_many_bit", only_bit([&](uintptr_t bit) {
            field.tagged_rep_or_elem_ = reinterpret_cast<void*>(bit);
            return !field.using_sso();
          }));
  } else {
    OFFSET("pointers_array", Field, rep_);
    print("pointers_many_bit", 0);
  }
  OFFSET("pointers_first", typename Field::Rep, elements);
}

void messages() {
  map<google::protobuf::Map<std::string, AttrValue>>();
  repeated<google::protobuf::RepeatedField<int64_t>>();
  repeated_pointers<google::protobuf::internal::RepeatedPtrFieldBase>();
  print("arena_string_mask", google::protobuf::internal::TaggedStringPtr::kMask);

  OFFSET("node_def_name", NodeDef, _impl_.name_);
  OFFSET("node_def_op", NodeDef, _impl_.op_);
  print("node_def_attr", offsetof(NodeDef, _impl_.attr_) + map_in_field<decltype(NodeDef::_impl_.attr_)>());

  OFFSET("attr_case", AttrValue, _impl_._oneof_case_);
  OFFSET("attr_value", AttrValue, _impl_.value_);
  OFFSET("list_s", AttrValue_ListValue, _impl_.s_);
  OFFSET("list_i", AttrValue_ListValue, _impl_.i_);
  OFFSET("list_f", AttrValue_ListValue, _impl_.f_);
  OFFSET("list_b", AttrValue_ListValue, _impl_.b_);
  OFFSET("list_type", AttrValue_ListValue, _impl_.type_);
  OFFSET("list_shape", AttrValue_ListValue, _impl_.shape_);
  OFFSET("list_func", AttrValue_ListValue, _impl_.func_);
  OFFSET("func_name", NameAttrList, _impl_.name_);
  OFFSET("shape_proto_dim", TensorShapeProto, _impl_.dim_);
  OFFSET("shape_proto_unknown_rank", TensorShapeProto, _impl_.unknown_rank_);
  OFFSET("dim_size", TensorShapeProto_Dim, _impl_.size_);

  OFFSET("op_def_name", OpDef, _impl_.name_);
}

// A constructor that comes first: the initialisers of the headers would call into TensorFlow.
__attribute__((constructor(101))) void probe() {
  kernels();
  tensors();
  containers();
  messages();
  std::fflush(stdout);
  _exit(0);
}

}  // namespace

int main() {}
