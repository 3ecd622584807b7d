#include "sim/schedule/schedule_format.h"

namespace rehearse {
std::string UsualStream(const Work& work, const std::vector<Communicator>& communicators) {
  const CommunicatorId id = CommunicatorOf(work);
  return id.IsSet() ? communicators[id.index()].name() : "compute";
}

StreamKind UsualStreamKind(const Work& work) {
  return std::holds_alternative<Compute>(work) ? StreamKind::kCompute : StreamKind::kCommunication;
}

Flops UsualFlops(const Compute& compute) {
  return compute.kind == ComputeKind::kGemm ? FlopsOf(compute.gemm) : Flops(0);
}

Bytes UsualBytes(const Compute& compute) {
  return compute.kind == ComputeKind::kGemm ? BytesOf(compute.gemm, compute.dtype) : Bytes(0);
}

Bytes UsualBytes(const Buffer& buffer) {
  if (buffer.view) return Bytes(0);
  return static_cast<double>(buffer.rows) * static_cast<double>(buffer.columns) *
         SizeOf(buffer.dtype);
}

}  // namespace rehearse
