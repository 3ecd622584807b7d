#include "real/transports/control.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

void SendBytes(Transport& transport, uint32_t to, const std::string& bytes) {
  const uint64_t size = bytes.size();
  transport.Wait(transport.Send(to, kControlTag, &size, sizeof size));
  if (size > 0) transport.Wait(transport.Send(to, kControlTag, bytes.data(), size));
}

std::string ReceiveBytes(Transport& transport, uint32_t from) {
  uint64_t size = 0;
  transport.Wait(transport.Receive(from, kControlTag, &size, sizeof size));
  constexpr uint64_t kMost = uint64_t{1} << 30;
  if (size > kMost)
    throw Error(fmt::format("rank {} announces {} bytes, expected at most {}", from, size, kMost));
  std::string bytes(size, '\0');
  if (size > 0) transport.Wait(transport.Receive(from, kControlTag, bytes.data(), size));
  return bytes;
}

}  // namespace

std::vector<std::string> GatherBytes(Transport& transport, const std::string& own) {
  if (transport.rank() != 0) {
    SendBytes(transport, 0, own);
    return {};
  }
  std::vector<std::string> all{own};
  for (uint32_t rank = 1; rank < transport.size(); ++rank) {
    all.push_back(ReceiveBytes(transport, rank));
  }
  return all;
}

std::string BroadcastBytes(Transport& transport, const std::string& of_rank_0) {
  if (transport.rank() != 0) return ReceiveBytes(transport, 0);
  for (uint32_t rank = 1; rank < transport.size(); ++rank) SendBytes(transport, rank, of_rank_0);
  return of_rank_0;
}

void RequireSame(Transport& transport, const char* what, const std::string& text) {
  std::string verdict;
  const std::vector<std::string> all = GatherBytes(transport, text);
  for (uint32_t rank = 1; rank < all.size() && verdict.empty(); ++rank) {
    if (all[rank] == all[0]) continue;
    verdict = fmt::format("rank {} has {} {}, but rank 0 has {}: all ranks must be given the same",
                          rank, what, all[rank], all[0]);
  }
  verdict = BroadcastBytes(transport, verdict);
  if (verdict.empty()) return;
  transport.Barrier();  // so that everybody knows before the first one leaves
  throw Error(verdict);
}

}  // namespace rehearse
