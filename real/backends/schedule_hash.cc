#include "real/backends/schedule_hash.h"

#include <bit>
#include <string_view>

#include <fmt/format.h>

namespace rehearse {
namespace {

// The hash is FNV-1a with 64 bits.
class Hasher {
 public:
  void Add(std::string_view text) {
    for (const char c : text) AddByte(static_cast<uint8_t>(c));
    AddByte(0);
  }
  void Add(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) AddByte(static_cast<uint8_t>(value >> (8 * byte)));
  }
  void Add(double value) { Add(std::bit_cast<uint64_t>(value)); }
  template <typename Ids>
  void AddIds(const Ids& ids) {
    Add(uint64_t{ids.size()});
    for (const auto id : ids) Add(uint64_t{id.index()});
  }
  uint64_t hash() const { return hash_; }

 private:
  void AddByte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

void AddWork(const Work& work, Hasher* hasher) {
  hasher->Add(uint64_t{work.index()});
  hasher->Add(CommunicationBytes(work).value());
  hasher->Add(uint64_t{CommunicatorOf(work).index()});
  if (const auto* compute = std::get_if<Compute>(&work)) {
    hasher->Add(Name(compute->kernel));
    hasher->Add(Name(compute->dtype));
    hasher->Add(Name(compute->gemm.mode));
    if (compute->tuned) hasher->Add(Name(*compute->tuned));
    if (compute->attention != AttentionKernel::kFused) hasher->Add(Name(compute->attention));
    for (const uint64_t size : {compute->gemm.m, compute->gemm.n, compute->gemm.k}) {
      hasher->Add(size);
    }
    if (compute->kind == ComputeKind::kFixed) hasher->Add(compute->duration.value());
    for (const double attribute : compute->attributes) hasher->Add(attribute);
  } else if (const auto* collective = std::get_if<Collective>(&work)) {
    hasher->Add(Name(collective->kind));
    hasher->Add(Name(collective->algorithm));
    hasher->Add(uint64_t{collective->root});
    hasher->Add(static_cast<uint64_t>(collective->reduction));
  } else if (const auto* send = std::get_if<Send>(&work)) {
    hasher->Add(uint64_t{send->peer});
  } else {
    hasher->Add(uint64_t{std::get<Receive>(work).peer});
  }
}

}  // namespace

std::string HashOf(const Schedule& schedule) {
  Hasher hasher;
  for (const Communicator& communicator : schedule.communicators) {
    hasher.Add(communicator.name());
    hasher.Add(uint64_t{communicator.size()});
  }
  for (const uint32_t role : schedule.role_of_rank) hasher.Add(uint64_t{role});
  for (const Role& role : schedule.roles) {
    for (const Buffer& buffer : role.buffers) {
      hasher.Add(buffer.name);
      hasher.Add(buffer.rows);
      hasher.Add(buffer.columns);
      hasher.Add(uint64_t{buffer.region});
      if (buffer.on_host) hasher.Add(std::string("host"));
    }
    for (const Op& op : role.ops) {
      hasher.Add(op.name);
      hasher.Add(uint64_t{op.stream.index()});
      AddWork(op.work, &hasher);
      hasher.AddIds(op.after);
      hasher.AddIds(op.reads);
      hasher.AddIds(op.writes);
    }
    for (const Repeat& repeat : role.repeats) {
      hasher.Add(uint64_t{repeat.begin});
      hasher.Add(uint64_t{repeat.end});
      hasher.Add(uint64_t{repeat.times});
      if (repeat.back > 1) hasher.Add(uint64_t{repeat.back});
    }
  }
  return fmt::format("{:016x}", hasher.hash());
}

}  // namespace rehearse
