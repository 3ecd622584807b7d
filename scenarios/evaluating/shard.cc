#include "scenarios/evaluating/shard.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "sim/base/fnv.h"
#include "sim/base/threads.h"

namespace rehearse {

std::string Shard::Text() const { return fmt::format("shard {}/{}", number, of); }

std::vector<bool> Shard::Own(size_t count) const {
  if (IsWhole()) return std::vector<bool>(count, true);
  std::vector<uint64_t> keys(count);
  for (size_t i = 0; i < count; ++i) {
    Fnv1a hash;
    hash.Add(uint64_t{i});
    keys[i] = hash.hash();
  }
  std::vector<size_t> dealt(count);
  std::iota(dealt.begin(), dealt.end(), size_t{0});
  std::sort(dealt.begin(), dealt.end(),
            [&](size_t a, size_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  std::vector<bool> own(count, false);
  for (size_t i = number - 1; i < count; i += of) own[dealt[i]] = true;
  return own;
}

void ForLeased(size_t count, unsigned threads, Leases* leases,
               const std::function<void(size_t)>& work) {
  if (leases == nullptr) return InParallel(count, threads, work);
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  InParallel(threads, threads, [&](size_t) {
    for (uint64_t i = leases->Next(); i < count; i = leases->Next()) work(i);
  });
}

}  // namespace rehearse
