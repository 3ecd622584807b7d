// Which release of NCCL chooses: its constants and rules differ (collectives/nccl/nccl_constants.h,
// collectives/nccl/nccl_model.h say how).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse {

enum class NcclVersion : uint8_t {
  kRelease218,  // v2.18.3-1, 2023: no Blackwell, no PAT, NVLS for all-reduce only
  kRelease228,  // v2.28.3-1, 2025
};
inline constexpr std::array kNcclVersions = {NcclVersion::kRelease218, NcclVersion::kRelease228};
inline constexpr NcclVersion kNewestNccl = NcclVersion::kRelease228;

// The library that chooses, and what its environment allows it.
struct NcclSettings {
  NcclVersion version = kNewestNccl;
  bool nvls = true;  // NCCL_NVLS_ENABLE: NVLS and NVLSTree may be chosen

  friend bool operator==(const NcclSettings&, const NcclSettings&) = default;
};

const char* Name(NcclVersion version);  // "2.28"
// Throws Error for others.
NcclVersion ParseNcclVersion(std::string_view name);

}  // namespace rehearse
