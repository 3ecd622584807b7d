#include "tools/foreign/traces/kernel_names.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace rehearse {
namespace {

char LowerLetter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string LowerName(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerLetter);
  return lower;
}

// In small letters, without what libraries put between words: "all_reduce", "AllReduce" and
// "allreduce" are one.
std::string BareWord(std::string_view text) {
  std::string bare;
  for (const char c : text)
    if (c != '_' && c != '-') bare += LowerLetter(c);
  return bare;
}

bool HoldsAny(std::string_view text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string_view::npos; });
}

// The function's own name: "void (anonymous namespace)::f<g>(h)" is "f", for kernels that have
// others' names among their arguments.
std::string FunctionName(std::string_view name) {
  std::string text(name);
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  for (size_t at = text.find(kAnonymous); at != std::string::npos; at = text.find(kAnonymous))
    text.erase(at, kAnonymous.size());
  text.erase(std::min(text.find_first_of("<("), text.size()));
  const size_t space = text.rfind(' ');
  return space == std::string::npos ? text : text.substr(space + 1);
}

// The collective in a bare name; "" if there is none.
std::string CollectiveIn(const std::string& bare) {
  constexpr std::pair<const char*, CollectiveKind> kWords[] = {
      {"reducescatter", CollectiveKind::kReduceScatter},
      {"gemmrs", CollectiveKind::kReduceScatter},
      {"allreduce", CollectiveKind::kAllReduce},
      {"allgather", CollectiveKind::kAllGather},
      {"aggemm", CollectiveKind::kAllGather},
      {"alltoall", CollectiveKind::kAllToAll},
      {"all2all", CollectiveKind::kAllToAll},
      {"a2a", CollectiveKind::kAllToAll},
      {"dispatch", CollectiveKind::kAllToAll},
      {"combine", CollectiveKind::kAllToAll},
      {"broadcast", CollectiveKind::kBroadcast},
      {"barrier", CollectiveKind::kBarrier},
      {"sendrecv", CollectiveKind::kSendReceive}};
  for (const auto& [word, kind] : kWords)
    if (bare.find(word) != std::string::npos) return Name(kind);
  return "";
}

}  // namespace

std::optional<CollectiveKind> CollectiveOfWord(std::string_view word) {
  if (word.starts_with("nccl:")) word.remove_prefix(5);
  constexpr std::pair<const char*, CollectiveKind> kWords[] = {
      {"allreduce", CollectiveKind::kAllReduce},
      {"allgather", CollectiveKind::kAllGather},
      {"allgatherintotensor", CollectiveKind::kAllGather},
      {"reducescatter", CollectiveKind::kReduceScatter},
      {"reducescattertensor", CollectiveKind::kReduceScatter},
      {"alltoall", CollectiveKind::kAllToAll},
      {"alltoallv", CollectiveKind::kAllToAll},
      {"alltoallsingle", CollectiveKind::kAllToAll},
      {"broadcast", CollectiveKind::kBroadcast},
      {"reduce", CollectiveKind::kReduce},
      {"barrier", CollectiveKind::kBarrier}};
  std::string bare = BareWord(word);
  // Variants of one collective, of which several may follow each other.
  for (const std::string_view variant : {"coalesced", "base", "oop", "out"}) {
    if (bare.size() > variant.size() && bare.ends_with(variant))
      bare.erase(bare.size() - variant.size());
  }
  for (const auto& [known, kind] : kWords)
    if (bare == known) return kind;
  return std::nullopt;
}

std::optional<std::string> CommunicationOfKernel(std::string_view name) {
  const std::string lower = LowerName(name);
  const std::string bare = BareWord(name);
  if (HoldsAny(lower, {"nccl", "rccl"})) {
    // "ncclDevKernel_Reduce_Sum_f32", and "ncclDevKernel_SendRecv"; RCCL's "ncclDevKernel_Generic"
    // says nothing.
    std::string kind = CollectiveIn(bare);
    if (kind.empty() && lower.find("_reduce") != std::string::npos)
      kind = Name(CollectiveKind::kReduce);
    return kind.empty() ? kSomeCommunication : kind;
  }
  // Compilers name what they fuse after the operators around it.
  if (lower.starts_with("triton_")) return std::nullopt;
  const bool is_library =
      (lower.find("deep_ep::") != std::string::npos && !HoldsAny(lower, {"layout"})) ||
      HoldsAny(lower, {"nvshmem", "rocshmem", "roc_shmem", "flux::", "mscclpp", "msccl",
                       "userbuffers", "pplx::"});
  const std::string function = BareWord(FunctionName(name));
  const bool is_named_so =
      HoldsAny(function, {"multimem", "crossdevicereduce", "oneshot", "twoshot", "allreduce",
                          "allgather", "reducescatter", "alltoall", "all2all"}) &&
      !HoldsAny(function, {"warpall", "blockall", "threadall", "copyin", "copyout"});
  if (!is_library && !is_named_so) return std::nullopt;
  std::string kind = CollectiveIn(bare);
  // One or two passes over the memory of the others are how all-reduces are written.
  if (kind.empty() && HoldsAny(function, {"crossdevicereduce", "oneshot", "twoshot"}))
    kind = Name(CollectiveKind::kAllReduce);
  return kind.empty() ? kSomeCommunication : kind;
}

const char* ComputeOfKernel(std::string_view name) {
  std::string lower = LowerName(name);
  if (HoldsAny(lower, {"flash", "fmha", "attention"})) return "attention";
  // FBGEMM's kernels for embedding tables are in its namespace, and have no product in them.
  constexpr std::string_view kLibrary = "fbgemm";
  for (size_t at = lower.find(kLibrary); at != std::string::npos; at = lower.find(kLibrary))
    lower.erase(at, kLibrary.size());
  if (lower.find("embedding") != std::string::npos) return "memory";
  return HoldsAny(lower, {"gemm", "nvjet", "cutlass", "xmma", "cijk_"}) ? "gemm" : "memory";
}

}  // namespace rehearse
