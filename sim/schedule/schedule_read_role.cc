// A role of a schedule file: streams, regions, buffers, ops and repeats.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "sim/base/units.h"
#include "sim/schedule/schedule_format.h"
#include "sim/schedule/schedule_read_parts.h"
#include "sim/schedule/schedule_shapes.h"

namespace rehearse {
namespace {

// Bytes may be zero where ops communicate or compute.
Bytes SizeOrNone(const JsonReader& reader) {
  return reader.IsString() && reader.String() == "0B" ? Bytes(0) : reader.Size();
}

template <typename Enum>
Enum ChoiceOf(const JsonReader& reader) {
  return static_cast<Enum>(reader.Choice());
}

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
      const JsonReader stream = element.As(StreamShape());
      const std::string name = stream.At("name").String();
      AddStream(name, ChoiceOf<StreamKind>(stream.At("kind")));
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

  static uint64_t ReadElements(const JsonReader& reader) {
    return static_cast<uint64_t>(reader.Integer(0, kMost64));  // also of elements of a shape
  }

  static SequenceOrder ReadOrder(const JsonReader& object, uint64_t rows) {
    const JsonReader reader = object.As(SequenceOrderShape());
    SequenceOrder order;
    order.sequence = ReadElements(reader.At("sequence"));
    order.parts = ReadElements(reader.At("parts"));
    order.block = ReadElements(reader.At("block"));
    order.balanced = reader.At("balanced").Bool();
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
    return order;
  }

  Region ReadRegion(const JsonReader& object) const {
    const JsonReader reader = object.As(RegionShape());
    Region region;
    region.rows = {ReadElements(reader.At("rows")), ReadCuts(reader, "rows_cut_by")};
    region.columns = {ReadElements(reader.At("columns")), ReadCuts(reader, "columns_cut_by")};
    region.flat_by = ReadCuts(reader, "flat_by");
    if (reader.Has("order")) region.order = ReadOrder(reader.At("order"), region.rows.size);
    return region;
  }

  void ReadBuffers(const JsonReader& reader) {
    std::vector<JsonReader> readers;
    for (const JsonReader& element : reader.Elements())
      readers.push_back(element.As(BufferShape()));
    // A view may be of a later buffer.
    for (const JsonReader& buffer : readers) buffers_.Add(buffer.At("name").String());
    for (const JsonReader& buffer : readers) role_.buffers.push_back(ReadBuffer(buffer));
  }

  Buffer ReadBuffer(const JsonReader& reader) const {
    Buffer buffer;
    buffer.name = reader.At("name").String();
    buffer.kind = ChoiceOf<BufferKind>(reader.At("kind"));
    if (reader.Has("dtype")) buffer.dtype = ChoiceOf<DType>(reader.At("dtype"));
    if (reader.Has("shape")) {
      const std::vector<JsonReader> sizes = reader.At("shape").Elements();
      if (sizes.size() != 2) reader.At("shape").Expected("a shape as [rows, columns]");
      buffer.rows = ReadElements(sizes[0]);
      buffer.columns = ReadElements(sizes[1]);
    }
    if (reader.Has("view")) buffer.view = ReadView(reader.At("view"));
    buffer.bytes = UsualBytes(buffer);
    if (reader.Has("bytes"))
      buffer.bytes = SizeOrNone(reader.At("bytes"));
    else if (!buffer.view && !reader.Has("shape"))
      reader.Fail("missing key \"bytes\", or \"shape\"");
    if (reader.Has("region")) {
      if (role_.regions.empty()) reader.At("region").Fail("the role has no regions");
      buffer.region = CountAt(reader.At("region"), 0, int64_t(role_.regions.size()) - 1);
    }
    if (reader.Has("host")) buffer.on_host = reader.At("host").Bool();
    return buffer;
  }

  View ReadView(const JsonReader& object) const {
    const JsonReader reader = object.As(ViewShape());
    View view;
    view.of = BufferId(buffers_.Find(reader.At("of")));
    view.row = ReadElements(reader.At("row"));
    view.column = ReadElements(reader.At("column"));
    view.rows_cut_by = ReadCuts(reader, "rows_cut_by");
    view.columns_cut_by = ReadCuts(reader, "columns_cut_by");
    return view;
  }

  Repeat ReadRepeat(const JsonReader& object) const {
    const JsonReader reader = object.As(RepeatShape());
    Repeat repeat;
    const Repeat earlier = role_.repeats.empty() ? Repeat{} : role_.repeats.back();
    repeat.begin = CountAt(reader.At("begin"), earlier.end, int64_t(role_.ops.size()));
    repeat.end = CountAt(reader.At("end"), int64_t{repeat.begin} + 1, int64_t(role_.ops.size()));
    repeat.times = CountAt(reader.At("times"), 0);
    const auto buffers = int64_t(role_.buffers.size());
    repeat.first_buffer = repeat.end_buffer = earlier.end_buffer;
    if (reader.Has("first_buffer") || reader.Has("end_buffer")) {
      repeat.first_buffer = CountAt(reader.At("first_buffer"), earlier.end_buffer, buffers);
      repeat.end_buffer = CountAt(reader.At("end_buffer"), repeat.first_buffer, buffers);
    }
    repeat.micro_batches = reader.At("micro_batches").Whole<int32_t>();
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
    const std::string& work = table.work;
    const JsonReader reader = object.As(table.table());
    Op op;
    op.name = reader.At("name").String();
    op.work = ReadWork(reader, work);
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
    op.tag.phase = ChoiceOf<Phase>(reader.At("phase"));
    op.tag.layer = reader.At("layer").Whole<int32_t>();
    op.tag.micro_batch = reader.At("micro_batch").Whole<int32_t>();
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

  Work ReadWork(const JsonReader& reader, const std::string& key) const {
    if (key == "collective") return ReadCollective(reader);
    if (key == "send_to") return ReadMessage<Send>(reader, "send_to");
    if (key == "receive_from") return ReadMessage<Receive>(reader, "receive_from");
    return ReadCompute(reader, key);
  }

  static Compute ReadCompute(const JsonReader& reader, const std::string& key) {
    Compute compute;
    if (reader.Has("dtype")) compute.dtype = ChoiceOf<DType>(reader.At("dtype"));
    if (key == "duration") {
      compute.kind = ComputeKind::kFixed;
      compute.duration = reader.At("duration").Duration();
    } else if (key == "gemm") {
      compute.kind = ComputeKind::kGemm;
      const JsonReader gemm = reader.At("gemm").As(GemmShape());
      compute.gemm = ReadGemm(gemm);
      if (gemm.Has("tuned")) compute.tuned = ChoiceOf<GemmMode>(gemm.At("tuned"));
    } else {
      const bool is_attention = reader.At("compute").Choice() == 0;
      compute.kind = is_attention ? ComputeKind::kAttention : ComputeKind::kMemory;
      reader.At(is_attention ? "flops" : "bytes");  // what its time is made of
      if (reader.Has("attention")) {
        if (!is_attention) reader.At("attention").Fail("only where \"compute\" is \"attention\"");
        compute.attention = ChoiceOf<AttentionKernel>(reader.At("attention"));
      }
    }
    if (reader.Has("kernel")) compute.kernel = ChoiceOf<Kernel>(reader.At("kernel"));
    compute.flops = reader.Has("flops") ? reader.At("flops").FlopCount() : UsualFlops(compute);
    compute.bytes = reader.Has("bytes") ? SizeOrNone(reader.At("bytes")) : UsualBytes(compute);
    if (reader.Has("kernels")) compute.kernels = CountAt(reader.At("kernels"), 0);
    ReadStrided(reader, &compute);
    if (reader.Has("attributes")) {
      constexpr double kMost = std::numeric_limits<double>::max();
      for (const JsonReader& attribute : reader.At("attributes").Elements())
        compute.attributes.push_back(attribute.Number(-kMost, kMost));
    }
    return compute;
  }

  static void ReadStrided(const JsonReader& reader, Compute* compute) {
    if (!reader.Has("strided")) {
      if (reader.Has("strided_bytes"))
        reader.At("strided_bytes").Fail("only beside \"strided\", whose bytes they are");
      return;
    }
    if (compute->kind != ComputeKind::kMemory)
      reader.At("strided").Fail("only where \"compute\" is \"memory\"");
    compute->strided = reader.At("strided").Number(0, 1e30);
    if (!reader.Has("strided_bytes")) return;
    compute->strided_bytes = SizeOrNone(reader.At("strided_bytes"));
    if (compute->strided_bytes > compute->bytes) {
      reader.At("strided_bytes")
          .Expected(fmt::format("at most the kernel's bytes, {}", PrintExactly(compute->bytes)));
    }
  }

  static Gemm ReadGemm(const JsonReader& reader) {
    Gemm gemm;
    gemm.m = ReadElements(reader.At("m"));
    gemm.n = ReadElements(reader.At("n"));
    gemm.k = ReadElements(reader.At("k"));
    if (reader.Has("mode")) gemm.mode = ChoiceOf<GemmMode>(reader.At("mode"));
    if (reader.Has("batch")) gemm.batch = CountAt(reader.At("batch"), 1);
    return gemm;
  }

  CommunicatorId ReadCommunicatorOf(const JsonReader& reader) const {
    return CommunicatorId(communicators_.Find(reader.At("communicator")));
  }

  Collective ReadCollective(const JsonReader& reader) const {
    Collective collective;
    collective.kind = ChoiceOf<CollectiveKind>(reader.At("collective"));
    collective.communicator = ReadCommunicatorOf(reader);
    if (collective.kind != CollectiveKind::kBarrier || reader.Has("bytes"))
      collective.bytes = SizeOrNone(reader.At("bytes"));
    if (reader.Has("dtype")) collective.dtype = ChoiceOf<DType>(reader.At("dtype"));
    if (reader.Has("reduction")) collective.reduction = ChoiceOf<Reduction>(reader.At("reduction"));
    collective.algorithm =
        reader.Has("algorithm") ? reader.At("algorithm").String() : UsualAlgorithm(collective.kind);
    if (reader.Has("protocol")) collective.protocol = reader.At("protocol").String();
    if (reader.Has("root")) collective.root = CountAt(reader.At("root"), 0);
    if (reader.Has("pair_bytes"))
      collective.pair_bytes = ReadPairs(
          reader.At("pair_bytes"), schedule_.communicators[collective.communicator.index()].size());
    if (reader.Has("rank_share")) collective.rank_share = reader.At("rank_share").Number();
    if (reader.Has("machine_share")) collective.machine_share = reader.At("machine_share").Number();
    return collective;
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

  template <typename Message>  // Send or Receive
  Message ReadMessage(const JsonReader& reader, const char* key) const {
    Message message;
    message.communicator = ReadCommunicatorOf(reader);
    message.peer = CountAt(reader.At(key), 0);
    message.bytes = SizeOrNone(reader.At("bytes"));
    return message;
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
