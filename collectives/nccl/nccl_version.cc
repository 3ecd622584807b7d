#include "collectives/nccl/nccl_version.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {

const char* Name(NcclVersion version) {
  switch (version) {
    case NcclVersion::kRelease218:
      return "2.18";
    case NcclVersion::kRelease228:
      return "2.28";
    case NcclVersion::kRelease229:
      return "2.29";
  }
  return "?";
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
