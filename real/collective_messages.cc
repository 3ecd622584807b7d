#include "real/collective_messages.h"

#include "sim/error.h"

namespace rehearse {

StepMessages MessagesOf(const Collective& collective, uint32_t size, uint32_t member) {
  const uint32_t next = (member + 1) % size;
  const uint32_t previous = (member + size - 1) % size;
  StepMessages result;
  result.chunks = size;
  uint32_t step = 0;
  // p-1 steps around the ring, each member passing on chunk member - lag - step.
  const auto around = [&](bool reduces, uint32_t lag) {
    for (uint32_t s = 0; s + 1 < size; ++s, ++step) {
      const uint32_t mine = (member + 2 * size - lag - s) % size;
      result.messages.push_back({step, true, next, false, {mine}});
      result.messages.push_back({step, false, previous, reduces, {(mine + size - 1) % size}});
    }
  };
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      around(/*reduces=*/true, 1);
      around(/*reduces=*/false, 0);
      return result;
    case CollectiveKind::kReduceScatter:
      around(/*reduces=*/true, 1);
      return result;
    case CollectiveKind::kAllGather:
      around(/*reduces=*/false, 0);
      return result;
    case CollectiveKind::kAllToAll:
      result.chunks = 2 * size;
      for (uint32_t s = 1; s < size; ++s) {
        const uint32_t to = (member + s) % size;
        const uint32_t from = (member + size - s) % size;
        result.messages.push_back({s - 1, true, to, false, {to}});
        result.messages.push_back({s - 1, false, from, false, {size + from}});
      }
      return result;
    case CollectiveKind::kBroadcast:  // along the chain from member 0
      result.chunks = 1;
      if (member > 0) result.messages.push_back({0, false, previous, false, {0}});
      if (member + 1 < size) result.messages.push_back({1, true, next, false, {0}});
      return result;
    case CollectiveKind::kReduce:  // along the chain to member 0
      result.chunks = 1;
      if (member + 1 < size) result.messages.push_back({0, false, next, true, {0}});
      if (member > 0) result.messages.push_back({1, true, previous, false, {0}});
      return result;
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown kind of collective");
}

}  // namespace rehearse
