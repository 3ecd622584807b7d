#include "real/backends/library_choice.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "collectives/algorithms/algorithm.h"

namespace rehearse {
namespace {

// Letters and digits alone, in lower case: NCCL writes "NVLS_TREE" to profilers and
// "NVLSTree" elsewhere.
std::string Plain(std::string_view text) {
  std::string plain;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) != 0) plain += static_cast<char>(std::tolower(code));
  }
  return plain;
}

}  // namespace

std::string AlgorithmOf(const LibraryChoice& choice) {
  std::string plain = Plain(choice.algorithm.data());
  if (plain.empty()) return "messages";
  for (const Algorithm& row : Algorithms()) {
    if (plain == Plain(row.name()) || plain == Plain(NcclName(row.id))) return row.name();
  }
  return plain;
}

std::string ProtocolOf(const LibraryChoice& choice) {
  std::string plain = Plain(choice.protocol.data());
  if (plain.empty()) return "none";
  return plain;
}

std::vector<ChosenCollective> ChosenCollectives(
    const Schedule& schedule, const std::vector<std::vector<LibraryChoice>>& by_rank) {
  std::set<ChosenCollective> chosen;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const Role& role = schedule.roles[schedule.role_of_rank[rank]];
    for (const LibraryChoice& choice : by_rank[rank]) {
      const auto* collective = std::get_if<Collective>(&role.ops[choice.op].work);
      if (collective == nullptr) continue;
      chosen.insert({schedule.communicators[collective->communicator.index()].name(),
                     Name(collective->kind), collective->bytes, AlgorithmOf(choice),
                     ProtocolOf(choice), choice.channels});
    }
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace rehearse
