#include "sim/packets/rate_controller.h"

namespace rehearse {

std::unique_ptr<RateController> MakeRateController(const PacketOptions& options, uint32_t flows) {
  switch (options.rate_control) {
    case RateControl::kHpcc:
      return MakeHpcc(options.hpcc, flows);
    case RateControl::kSwift:
      return MakeSwift(options.swift, flows);
    case RateControl::kTimely:
      return MakeTimely(options.timely, flows);
    case RateControl::kNscc:
      return MakeNscc(options.nscc, options.link_control == LinkControl::kTrim, flows);
    case RateControl::kNone:
    case RateControl::kDcqcn:
    case RateControl::kWindow:
      break;
  }
  return nullptr;
}

}  // namespace rehearse
