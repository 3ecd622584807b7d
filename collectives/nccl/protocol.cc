#include "collectives/nccl/protocol.h"

#include <string>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {
namespace {

struct Row {
  Protocol protocol;
  const char* name;
  const char* nccl_name;
};
constexpr Row kRows[] = {
    {Protocol::kLL, "ll", "LL"},
    {Protocol::kLL128, "ll128", "LL128"},
    {Protocol::kSimple, "simple", "Simple"},
};

}  // namespace

const char* Name(Protocol protocol) { return kRows[static_cast<size_t>(protocol)].name; }

Protocol ParseProtocol(std::string_view name) {
  std::vector<std::string> names = {"auto"};
  for (const Row& row : kRows) {
    if (name == row.name || name == row.nccl_name) return row.protocol;
    names.emplace_back(row.name);
  }
  const std::string wanted(name);
  throw Error(fmt::format("unknown protocol \"{}\"{}", wanted, KnownNames(wanted, names)));
}

}  // namespace rehearse
