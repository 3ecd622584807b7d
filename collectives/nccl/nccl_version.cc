#include "collectives/nccl/nccl_version.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {

const char* Name(NcclVersion version) {
  return version == NcclVersion::kRelease218 ? "2.18" : "2.28";
}

NcclVersion ParseNcclVersion(std::string_view name) {
  std::vector<std::string> names;
  for (const NcclVersion version : kNcclVersions) {
    if (name == Name(version)) return version;
    names.emplace_back(Name(version));
  }
  const std::string wanted(name);
  throw Error(fmt::format("unknown release of NCCL \"{}\"{}", wanted, KnownNames(wanted, names)));
}

}  // namespace rehearse
