// Calls a C++ function of TensorFlow that takes a string, as nearly every custom op does.
#include <string>

namespace tensorflow::port {
void CopyFromArray(std::string* text, const char* bytes, size_t count);
}

__attribute__((constructor)) void use() {
  std::string text;
  tensorflow::port::CopyFromArray(&text, "hello", 5);
}
