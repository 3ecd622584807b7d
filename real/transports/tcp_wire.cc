#include "real/transports/tcp_wire.h"

#include <fmt/format.h>

#include "real/transports/transport.h"

namespace rehearse {

std::string FaultOf(const WireFrame& frame, uint32_t neighbour, uint32_t receiver, uint32_t ranks) {
  const bool is_message = frame.kind == FrameKind::kMessage;
  const bool is_abort = frame.kind == FrameKind::kAbort;
  if (!is_message && !is_abort && frame.kind != FrameKind::kFarewell &&
      frame.kind != FrameKind::kAlive) {
    return fmt::format("of kind {}", static_cast<uint32_t>(frame.kind));
  }
  // Rank 0 passes on what others say, but to rank 0 each rank speaks for itself.
  const bool from_is_right =
      receiver == 0 ? frame.from == neighbour : frame.from < ranks && frame.from != receiver;
  if (!from_is_right) return fmt::format("from rank {}", frame.from);
  const bool is_passed_on = is_message && receiver == 0;
  const bool to_is_right =
      is_passed_on ? frame.to < ranks && frame.to != neighbour : frame.to == receiver;
  if (!to_is_right) return fmt::format("to rank {} of {}", frame.to, ranks);
  const bool tag_is_right =
      is_message ? frame.tag < 2 * kControlTag || frame.tag == kBarrierTag : frame.tag == 0;
  if (!tag_is_right) return fmt::format("with tag {}", frame.tag);
  const uint64_t longest = is_message ? kLongestMessage : is_abort ? kLongestReason : 0;
  if (frame.bytes > longest) return fmt::format("of {} bytes", frame.bytes);
  return "";
}

}  // namespace rehearse
