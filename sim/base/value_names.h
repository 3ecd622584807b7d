// Names of values as files say them, each list written once: {"fused", KernelStyle::kFused}.
#pragma once

#include <cstddef>

#include "sim/base/error.h"

namespace rehearse {

template <typename Value>
struct ValueName {
  const char* name = "";
  Value value = {};
};

// The name of a value that is in the list.
template <typename Value, size_t kCount>
const char* NameIn(const ValueName<Value> (&names)[kCount], Value value) {
  for (const ValueName<Value>& one : names) {
    if (one.value == value) return one.name;
  }
  internal::FailCheck(__FILE__, __LINE__, "a value without a name");
}

}  // namespace rehearse
