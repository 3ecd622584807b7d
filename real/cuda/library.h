// A shared library that is opened when it is first needed, and its functions as checked calls.
//
// Rehearse does not link to CUDA: one binary starts on any Linux, and says what is missing only
// when a GPU is asked for. So each library that the CUDA backend calls is a struct of Entry members
// (real/cuda/libraries.h), found by name when the struct is made. It is immutable afterwards and as
// safe to call from several threads as the library itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.h"

namespace rehearse {

class Library {
 public:
  // Opens the first of `names` that exists, or only the file that the environment variable
  // `override` names. `purpose` ends the message "… is needed for <purpose>". Throws Error with
  // what was tried.
  Library(const std::vector<std::string>& names, const char* override, const char* purpose);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const std::string& path() const { return path_; }  // the file, as the loader resolved it
  // Throws Error if the library has no such function: it is too old.
  void* Find(const char* name) const;

  // How the library describes its status codes; while it is unset, the number itself is shown.
  void set_describe(const char* (*describe)(int)) { describe_ = describe; }
  std::string Describe(int status) const;

 private:
  void* handle_ = nullptr;
  std::string path_;
  const char* (*describe_)(int) = nullptr;
};

namespace internal {
[[noreturn]] void FailCall(const Library& library, const char* name, int status);
}

// A function of the library that returns a status, 0 for success; calling it throws Error for any
// other status.
template <typename Signature>
class Entry;

template <typename... Parameters>
class Entry<int(Parameters...)> {
 public:
  Entry(const Library& library, const char* name)
      : library_(&library),
        name_(name),
        function_(reinterpret_cast<int (*)(Parameters...)>(library.Find(name))) {}

  void operator()(Parameters... parameters) const {
    const int status = function_(parameters...);
    if (status != 0) internal::FailCall(*library_, name_, status);
  }
  // The bare status, for functions with more than one good answer ("not ready").
  int Status(Parameters... parameters) const { return function_(parameters...); }
  // Throws as a call that returned `status` would.
  [[noreturn]] void Fail(int status) const { internal::FailCall(*library_, name_, status); }

 private:
  const Library* library_;
  const char* name_;
  int (*function_)(Parameters...);
};

}  // namespace rehearse
