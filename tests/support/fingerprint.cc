#include "tests/support/fingerprint.h"

#include <bit>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace rehearse {
namespace {

// The hash is FNV-1a with 64 bits.
class Fingerprint {
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
  std::string Text() const { return fmt::format("{:016x}", hash_); }

 private:
  void AddByte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

void AddWork(const Work& work, Fingerprint* to) {
  to->Add(uint64_t{work.index()});
  to->Add(CommunicationBytes(work).value());
  to->Add(uint64_t{CommunicatorOf(work).index()});
  if (const auto* compute = std::get_if<Compute>(&work)) {
    for (const uint64_t number :
         {static_cast<uint64_t>(compute->kind), static_cast<uint64_t>(compute->kernel),
          static_cast<uint64_t>(compute->dtype), compute->gemm.m, compute->gemm.n, compute->gemm.k,
          static_cast<uint64_t>(compute->gemm.mode), uint64_t{compute->gemm.batch},
          uint64_t{compute->kernels}}) {
      to->Add(number);
    }
    to->Add(compute->flops.value());
    to->Add(compute->bytes.value());
    for (const double attribute : compute->attributes) to->Add(attribute);
  } else if (const auto* collective = std::get_if<Collective>(&work)) {
    for (const uint64_t number :
         {static_cast<uint64_t>(collective->kind), static_cast<uint64_t>(collective->dtype),
          static_cast<uint64_t>(collective->reduction), uint64_t{collective->root}}) {
      to->Add(number);
    }
    to->Add(Name(collective->algorithm));
    to->Add(Name(collective->protocol));
  } else if (const auto* send = std::get_if<Send>(&work)) {
    to->Add(uint64_t{send->peer});
  } else {
    to->Add(uint64_t{std::get<Receive>(work).peer});
  }
}

}  // namespace

std::string FingerprintOf(const Schedule& schedule) {
  Fingerprint all;
  for (const Communicator& communicator : schedule.communicators) {
    all.Add(communicator.name());
    for (uint32_t group = 0; group < communicator.group_count(); ++group) {
      for (uint32_t member = 0; member < communicator.size(); ++member) {
        all.Add(uint64_t{communicator.Rank(group, member)});
      }
    }
  }
  for (const uint32_t role : schedule.role_of_rank) all.Add(uint64_t{role});
  for (const Role& role : schedule.roles) {
    all.Add(role.name);
    for (const Stream& stream : role.streams) all.Add(stream.name);
    for (const Region& region : role.regions) {
      for (const Extent* extent : {&region.rows, &region.columns}) {
        all.Add(extent->size);
        all.AddIds(extent->cut_by);
      }
      all.AddIds(region.flat_by);
    }
    for (const Buffer& buffer : role.buffers) {
      all.Add(buffer.name);
      all.Add(buffer.bytes.value());
      for (const uint64_t number :
           {static_cast<uint64_t>(buffer.kind), static_cast<uint64_t>(buffer.dtype), buffer.rows,
            buffer.columns, uint64_t{buffer.region}}) {
        all.Add(number);
      }
      if (!buffer.view) continue;
      all.Add(uint64_t{buffer.view->of.index()});
      all.Add(buffer.view->row);
      all.Add(buffer.view->column);
      all.AddIds(buffer.view->rows_cut_by);
      all.AddIds(buffer.view->columns_cut_by);
      if (buffer.view->rows_turned > 0) all.Add(uint64_t{buffer.view->rows_turned});
    }
    for (const Op& op : role.ops) {
      all.Add(op.name);
      all.Add(uint64_t{op.stream.index()});
      all.Add(static_cast<uint64_t>(op.tag.phase));
      all.Add(static_cast<uint64_t>(int64_t{op.tag.layer}));
      all.Add(static_cast<uint64_t>(int64_t{op.tag.micro_batch}));
      AddWork(op.work, &all);
      all.AddIds(op.after);
      all.AddIds(op.reads);
      all.AddIds(op.writes);
    }
  }
  all.Add(schedule.model_flops.value());
  all.Add(schedule.hardware_flops.value());
  all.Add(schedule.tokens);
  return all.Text();
}

}  // namespace rehearse
