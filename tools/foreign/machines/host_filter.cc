#include "tools/foreign/machines/host_filter.h"

#include <algorithm>

#include <fnmatch.h>

namespace rehearse {

HostFilter::HostFilter(const std::string& patterns) {
  size_t begin = 0;
  while (begin < patterns.size()) {
    const size_t end = std::min(patterns.find(',', begin), patterns.size());
    if (end > begin) patterns_.push_back(patterns.substr(begin, end - begin));
    begin = end + 1;
  }
}

bool HostFilter::Takes(const std::string& host) const {
  if (patterns_.empty()) return !IsServiceHost(host);
  return std::any_of(patterns_.begin(), patterns_.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), host.c_str(), 0) == 0;
  });
}

bool IsServiceHost(std::string_view host) {
  constexpr std::string_view kServices[] = {
      "admin",   "backup",     "bastion",  "beegfs",    "bmc",     "ceph",  "frontend",
      "gateway", "gpfs",       "headnode", "head",      "io",      "jump",  "login",
      "lustre",  "management", "mds",      "mgmt",      "mgs",     "nas",   "nfs",
      "nsd",     "oss",        "ost",      "provision", "service", "slurm", "storage",
      "stor",    "ufm",        "vast",     "weka",      "lnet",    "mdt",   "monitor"};
  size_t begin = 0;
  const auto is_letter = [&](size_t i) {
    return (host[i] >= 'a' && host[i] <= 'z') || (host[i] >= 'A' && host[i] <= 'Z');
  };
  while (begin < host.size()) {
    while (begin < host.size() && !is_letter(begin)) ++begin;
    size_t end = begin;
    std::string word;
    for (; end < host.size() && is_letter(end); ++end) word += static_cast<char>(host[end] | 0x20);
    if (std::find(std::begin(kServices), std::end(kServices), word) != std::end(kServices))
      return true;
    begin = end;
  }
  return false;
}

}  // namespace rehearse
