// Which hosts of a fabric are machines with GPUs: those that the user names, or all that are not
// clearly there for something else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

class HostFilter {
 public:
  HostFilter() = default;  // all but service hosts
  // "gpu*,node[0-9]*": patterns as a shell has them, parted by commas; "" is none.
  explicit HostFilter(const std::string& patterns);

  // Whether the user has named hosts, so that nothing is left out but what the patterns leave out.
  bool is_given() const { return !patterns_.empty(); }
  bool Takes(const std::string& host) const;

 private:
  std::vector<std::string> patterns_;
};

// "login1", "storage-03", "ufm": a word of the name says what the host is for, and it is not GPUs.
bool IsServiceHost(std::string_view host);

}  // namespace rehearse
