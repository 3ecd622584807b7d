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
  kRelease229,  // v2.29.2-1, end of 2025: other figures for Blackwell, and for NVLSTree
};
inline constexpr std::array kNcclVersions = {NcclVersion::kRelease218, NcclVersion::kRelease228,
                                             NcclVersion::kRelease229};
// Whose model chooses unless another is named.
inline constexpr NcclVersion kStandardNccl = NcclVersion::kRelease228;

// The library that chooses, and what its environment allows it.
struct NcclSettings {
  NcclVersion version = kStandardNccl;
  bool nvls = true;  // NCCL_NVLS_ENABLE: NVLS and NVLSTree may be chosen

  friend bool operator==(const NcclSettings&, const NcclSettings&) = default;
};

const char* Name(NcclVersion version);  // "2.28"
// Throws Error for others.
NcclVersion ParseNcclVersion(std::string_view name);

}  // namespace rehearse
