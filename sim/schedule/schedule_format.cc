#include "sim/schedule/schedule_format.h"

namespace rehearse {
namespace {

template <typename Enum>
std::vector<std::string> NamesUpTo(Enum last) {
  std::vector<std::string> names;
  for (int value = 0; value <= static_cast<int>(last); ++value)
    names.emplace_back(Name(static_cast<Enum>(value)));
  return names;
}

}  // namespace

const std::vector<std::string>& AttentionKernelNames() {
  static const std::vector<std::string> names = NamesUpTo(AttentionKernel::kEfficient);
  return names;
}

const std::vector<std::string>& KernelNames() {
  static const std::vector<std::string> names = NamesUpTo(Kernel::kGroupedGemm);
  return names;
}

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
