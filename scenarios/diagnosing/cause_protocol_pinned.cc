// NCCL_PROTO sets a protocol for all sizes.
#include <array>

#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {
namespace {

constexpr std::array kPinnedProtocols = {Protocol::kLL, Protocol::kLL128, Protocol::kSimple};

}  // namespace

CollectiveCause ProtocolPinnedRow() {
  return {
      "protocol-pinned",
      "a protocol is pinned that NCCL would not choose at all sizes",
      "env | grep NCCL_PROTO, and /etc/nccl.conf",
      {0, 1, 2},
      false,
      [](double which) { return std::string(Name(kPinnedProtocols[static_cast<size_t>(which)])); },
      [](const CollectiveRun& run, double which) -> std::optional<CollectiveRun> {
        CollectiveRun changed = run;
        bool is_any = false;
        for (Trial& trial : changed.trials) {
          const bool is_sends =
              trial.kind == CollectiveKind::kAllToAll || trial.kind == CollectiveKind::kSendReceive;
          if (trial.protocol != Protocol::kAuto || is_sends) continue;
          trial.protocol = kPinnedProtocols[static_cast<size_t>(which)];
          is_any = true;
        }
        if (!is_any) return std::nullopt;
        return changed;
      }};
}

}  // namespace rehearse
