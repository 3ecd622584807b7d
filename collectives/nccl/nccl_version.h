// Which release of NCCL chooses: its constants and rules differ (collectives/nccl/nccl_constants.h,
// collectives/nccl/nccl_model.h say how).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse {

enum class NcclVersion : uint8_t {
  k2_18,  // v2.18.3-1, 2023: no Blackwell, no PAT, NVLS for all-reduce only
  k2_28,  // v2.28.3-1, 2025
};
inline constexpr std::array kNcclVersions = {NcclVersion::k2_18, NcclVersion::k2_28};
inline constexpr NcclVersion kNewestNccl = NcclVersion::k2_28;

const char* Name(NcclVersion version);  // "2.28"
// Throws Error for others.
NcclVersion ParseNcclVersion(std::string_view name);

}  // namespace rehearse
