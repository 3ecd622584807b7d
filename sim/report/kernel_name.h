// Names of kernels in C++, which may be kilobytes long, as people can read them. Files keep them as
// they are.
#pragma once

#include <map>
#include <set>
#include <string>

namespace rehearse {

// Without its arguments, the arguments of templates and what is anonymous. Other names stay as they
// are: "send (to 3)", "a < b".
std::string ShortKernelName(const std::string& name);

// The same, with a number behind those that would be another's: what is told apart by name stays
// apart.
class ShortNames {
 public:
  const std::string& Of(const std::string& name);

 private:
  std::map<std::string, std::string> short_by_name_;
  std::set<std::string> taken_;
};

}  // namespace rehearse
