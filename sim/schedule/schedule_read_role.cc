// A role of a schedule file: streams, regions, buffers, ops and repeats.
#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_fields.h"
#include "sim/schedule/schedule_format.h"
#include "sim/schedule/schedule_read_parts.h"

namespace rehearse {
namespace {

class RoleReader {
 public:
  RoleReader(const Schedule& schedule, const ListedNames& communicators)
      : schedule_(schedule), communicators_(communicators) {}

  // The keys of a role, whatever else the object has.
  Role Read(const JsonReader& reader) {
    has_streams_ = reader.Has("streams");
    if (has_streams_) ReadStreams(reader.At("streams"));
    if (reader.Has("regions")) {
      for (const JsonReader& region : reader.At("regions").Elements())
        role_.regions.push_back(ReadRegion(region));
    }
    if (reader.Has("buffers")) ReadBuffers(reader.At("buffers"));
    for (const JsonReader& op : reader.At("ops").Elements()) {
      role_.ops.push_back(ReadOp(op));
      ops_.Add(role_.ops.back().name);
    }
    if (reader.Has("repeats")) {
      for (const JsonReader& repeat : reader.At("repeats").Elements())
        role_.repeats.push_back(ReadRepeat(repeat));
    }
    return std::move(role_);
  }

 private:
  void ReadStreams(const JsonReader& reader) {
    for (const JsonReader& element : reader.Elements()) {
      const Stream stream = StreamFields().Read(element);
      AddStream(stream.name, stream.kind);
    }
  }

  void AddStream(const std::string& name, StreamKind kind) {
    role_.streams.push_back({name, kind});
    streams_.Add(name);
  }

  std::vector<CommunicatorId> ReadCuts(const JsonReader& reader, const char* key) const {
    std::vector<CommunicatorId> cuts;
    if (!reader.Has(key)) return cuts;
    for (const JsonReader& cut : OneOrMore(reader.At(key)))
      cuts.emplace_back(communicators_.Find(cut));
    return cuts;
  }

  static void CheckOrder(const JsonReader& reader, const SequenceOrder& order, uint64_t rows) {
    const uint64_t runs = order.parts * (order.balanced ? 2 : 1);
    if (order.sequence % runs != 0)
      reader.Fail(
          fmt::format("a sequence of {} is not cut into {} equal runs", order.sequence, runs));
    if (order.block % order.sequence != 0 || rows % order.block != 0) {
      reader.Fail(
          fmt::format("blocks of {} rows: sequences of {} do not fill them, or they do not "
                      "fill {} rows",
                      order.block, order.sequence, rows));
    }
  }

  Region ReadRegion(const JsonReader& object) const {
    const JsonReader reader = object.As(RegionFields().shape());
    Region region;
    RegionFields().ReadInto(reader, &region);
    region.rows.cut_by = ReadCuts(reader, "rows_cut_by");
    region.columns.cut_by = ReadCuts(reader, "columns_cut_by");
    region.flat_by = ReadCuts(reader, "flat_by");
    if (reader.Has("order")) CheckOrder(reader.At("order"), region.order, region.rows.size);
    return region;
  }

  void ReadBuffers(const JsonReader& reader) {
    std::vector<JsonReader> readers;
    for (const JsonReader& element : reader.Elements())
      readers.push_back(element.As(BufferFields().shape()));
    // A view may be of a later buffer.
    for (const JsonReader& buffer : readers) buffers_.Add(buffer.At("name").String());
    for (const JsonReader& buffer : readers) role_.buffers.push_back(ReadBuffer(buffer));
  }

  Buffer ReadBuffer(const JsonReader& reader) const {
    Buffer buffer;
    BufferFields().ReadInto(reader, &buffer);
    if (reader.Has("view")) buffer.view = ReadView(reader.At("view"));
    if (!reader.Has("bytes")) {
      buffer.bytes = UsualBytes(buffer);
      if (!buffer.view && !reader.Has("shape")) reader.Fail("missing key \"bytes\", or \"shape\"");
    }
    if (reader.Has("region")) {
      if (role_.regions.empty()) reader.At("region").Fail("the role has no regions");
      buffer.region = CountAt(reader.At("region"), 0, int64_t(role_.regions.size()) - 1);
    }
    return buffer;
  }

  View ReadView(const JsonReader& object) const {
    const JsonReader reader = object.As(ViewFields().shape());
    View view;
    ViewFields().ReadInto(reader, &view);
    view.of = BufferId(buffers_.Find(reader.At("of")));
    view.rows_cut_by = ReadCuts(reader, "rows_cut_by");
    view.columns_cut_by = ReadCuts(reader, "columns_cut_by");
    if (view.rows_turned > 0 && view.rows_cut_by.empty())
      reader.At("rows_turned").Fail("no communicator cuts the rows: missing key \"rows_cut_by\"");
    return view;
  }

  Repeat ReadRepeat(const JsonReader& object) const {
    const JsonReader reader = object.As(RepeatFields().shape());
    Repeat repeat;
    RepeatFields().ReadInto(reader, &repeat);
    const Repeat earlier = role_.repeats.empty() ? Repeat{} : role_.repeats.back();
    repeat.begin = CountAt(reader.At("begin"), earlier.end, int64_t(role_.ops.size()));
    repeat.end = CountAt(reader.At("end"), int64_t{repeat.begin} + 1, int64_t(role_.ops.size()));
    const auto buffers = int64_t(role_.buffers.size());
    repeat.first_buffer = repeat.end_buffer = earlier.end_buffer;
    if (reader.Has("first_buffer") || reader.Has("end_buffer")) {
      repeat.first_buffer = CountAt(reader.At("first_buffer"), earlier.end_buffer, buffers);
      repeat.end_buffer = CountAt(reader.At("end_buffer"), repeat.first_buffer, buffers);
    }
    repeat.back = CountAt(reader.At("back"), 1, 1 + int64_t{repeat.begin / repeat.size()});
    return repeat;
  }

  // ---- ops --------------------------------------------------------------------------------------

  // The one thing that the op does.
  static const OpTable& WorkOf(const JsonReader& object) {
    const OpTable* found = nullptr;
    for (const OpTable& table : OpTables()) {
      if (!object.Has(table.work)) continue;
      if (found != nullptr)
        object.Fail(fmt::format("found \"{}\" and \"{}\", expected one thing that the op does",
                                found->work, table.work));
      found = &table;
    }
    if (found == nullptr)
      object.Fail(
          "does nothing: found none of the keys \"duration\", \"gemm\", \"compute\", "
          "\"collective\", \"send_to\" and \"receive_from\", expected one");
    return *found;
  }

  Op ReadOp(const JsonReader& object) {
    static const std::vector<std::string> known = [] {
      std::vector<std::string> keys;
      for (const OpTable& table : OpTables()) {
        for (const JsonKey& row : table.table().keys) {
          if (std::find(keys.begin(), keys.end(), row.name) == keys.end()) keys.push_back(row.name);
        }
      }
      return keys;
    }();
    object.AllowKeys(known);
    const OpTable& table = WorkOf(object);
    const JsonReader reader = object.As(table.table());
    Op op;
    OpFields().ReadInto(reader, &op);
    op.work = ReadWork(reader, table);
    op.stream = ReadStream(reader, op.work);
    if (reader.Has("after")) {
      for (const JsonReader& before : OneOrMore(reader.At("after")))
        op.after.emplace_back(ops_.FindLatest(before));
    }
    const auto read_buffers = [&](const char* key, std::vector<BufferId>* list) {
      if (!reader.Has(key)) return;
      for (const JsonReader& buffer : OneOrMore(reader.At(key)))
        list->emplace_back(buffers_.Find(buffer));
    };
    read_buffers("reads", &op.reads);
    read_buffers("writes", &op.writes);
    return op;
  }

  StreamId ReadStream(const JsonReader& reader, const Work& work) {
    if (!has_streams_) {
      const std::string name = reader.Has("stream") ? reader.At("stream").String()
                                                    : UsualStream(work, schedule_.communicators);
      if (!streams_.Has(name)) AddStream(name, UsualStreamKind(work));
      return StreamId(streams_.FindNamed(name, reader));
    }
    return StreamId(reader.Has("stream")
                        ? streams_.Find(reader.At("stream"))
                        : streams_.FindNamed(UsualStream(work, schedule_.communicators), reader));
  }

  Work ReadWork(const JsonReader& reader, const OpTable& table) const {
    Work work;
    table.read(reader, &work);
    if (auto* const compute = std::get_if<Compute>(&work)) {
      FinishCompute(reader, table.work, compute);
      return work;
    }
    const CommunicatorId id(communicators_.Find(reader.At("communicator")));
    if (auto* const collective = std::get_if<Collective>(&work)) {
      collective->communicator = id;
      FinishCollective(reader, collective);
    } else if (auto* const send = std::get_if<Send>(&work)) {
      send->communicator = id;
    } else {
      std::get<Receive>(work).communicator = id;
    }
    return work;
  }

  static void FinishCompute(const JsonReader& reader, const std::string& key, Compute* compute) {
    if (key == "duration") {
      compute->kind = ComputeKind::kFixed;
    } else if (key == "gemm") {
      compute->kind = ComputeKind::kGemm;
    } else {
      const bool is_attention = compute->kind == ComputeKind::kAttention;
      MustHave(reader, {is_attention ? "flops" : "bytes"});  // what its time is made of
      if (reader.Has("attention") && !is_attention)
        reader.At("attention").Fail("only where \"compute\" is \"attention\"");
    }
    if (!reader.Has("flops")) compute->flops = UsualFlops(*compute);
    if (!reader.Has("bytes")) compute->bytes = UsualBytes(*compute);
    CheckStrided(reader, *compute);
  }

  static void CheckStrided(const JsonReader& reader, const Compute& compute) {
    if (!reader.Has("strided")) {
      if (reader.Has("strided_bytes"))
        reader.At("strided_bytes").Fail("only beside \"strided\", whose bytes they are");
      return;
    }
    if (compute.kind != ComputeKind::kMemory)
      reader.At("strided").Fail("only where \"compute\" is \"memory\"");
    if (compute.strided_bytes > compute.bytes) {
      reader.At("strided_bytes")
          .Expected(fmt::format("at most the kernel's bytes, {}", PrintExactly(compute.bytes)));
    }
  }

  void FinishCollective(const JsonReader& reader, Collective* collective) const {
    if (collective->kind != CollectiveKind::kBarrier) MustHave(reader, {"bytes"});
    if (!reader.Has("algorithm")) collective->algorithm = UsualAlgorithm(collective->kind);
    if (!reader.Has("pair_bytes")) return;
    collective->pair_bytes = ReadPairs(
        reader.At("pair_bytes"), schedule_.communicators[collective->communicator.index()].size());
  }

  // What each member sends to each, one row per member.
  static std::vector<Bytes> ReadPairs(const JsonReader& reader, uint32_t size) {
    std::vector<Bytes> pairs;
    const std::vector<JsonReader> rows = reader.Elements();
    if (rows.size() != size)
      reader.Fail(
          fmt::format("found {} rows, expected one for each of {} members", rows.size(), size));
    for (const JsonReader& row : rows) {
      const std::vector<JsonReader> sizes = row.Elements();
      if (sizes.size() != size)
        row.Fail(
            fmt::format("found {} sizes, expected one for each of {} members", sizes.size(), size));
      for (const JsonReader& bytes : sizes) pairs.push_back(SizeOrNone(bytes));
    }
    return pairs;
  }

  const Schedule& schedule_;
  const ListedNames& communicators_;
  bool has_streams_ = false;
  Role role_;
  ListedNames streams_{"stream"};
  ListedNames buffers_{"buffer"};
  ListedNames ops_{"earlier op"};
};

}  // namespace

Role ReadRole(const JsonReader& reader, const Schedule& schedule,
              const ListedNames& communicators) {
  return RoleReader(schedule, communicators).Read(reader);
}

}  // namespace rehearse
