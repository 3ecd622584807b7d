#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/op_error.h"
#include "sim/schedule/schedule_check.h"
#include "sim/schedule/schedule_format.h"
#include "sim/schedule/schedule_json.h"

namespace rehearse {
namespace {

constexpr uint32_t kMostRanks = 1 << 24;
constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMost64 = std::numeric_limits<int64_t>::max();

uint32_t Count(const JsonReader& reader, int64_t least, int64_t most = kMost32) {
  return static_cast<uint32_t>(reader.Integer(least, most));
}

// Bytes may be none where ops communicate or compute.
Bytes SizeOrNone(const JsonReader& reader) {
  return reader.IsString() && reader.String() == "0B" ? Bytes(0) : reader.Size();
}

template <typename Enum>
Enum ChoiceOf(const JsonReader& reader, const std::vector<std::string>& names) {
  return static_cast<Enum>(reader.Choice(names));
}

// One thing, or a list of them.
std::vector<JsonReader> OneOrMore(const JsonReader& reader) {
  return reader.IsArray() ? reader.Elements() : std::vector<JsonReader>{reader};
}

// Things of one kind that are referred to by name, or by place.
class Names {
 public:
  explicit Names(std::string noun) : noun_(std::move(noun)) {}

  void Add(const std::string& name) {
    places_[name].push_back(count_++);
    if (!name.empty()) names_.push_back(name);
  }
  uint32_t count() const { return count_; }

  uint32_t Find(const JsonReader& reader) const {
    if (count_ == 0) reader.Fail(fmt::format("nothing can be named here: there is no {}", noun_));
    if (!reader.IsString()) {
      if (!reader.value().is_number())
        reader.Expected(fmt::format("the name of {}, or its place in the list", One()));
      return Count(reader, 0, int64_t{count_} - 1);
    }
    return FindNamed(reader.String(), reader);
  }
  // As the text of `reader`, which is to blame.
  uint32_t FindNamed(const std::string& name, const JsonReader& reader) const {
    const auto found = places_.find(name);
    if (found == places_.end())
      reader.Fail(fmt::format("found {}, expected the name of {}{}", QuotedJson(name), One(),
                              HintFor(name)));
    if (found->second.size() > 1)
      reader.Fail(fmt::format(
          "found {}, but {} {}s have this name; expected the place in the list: {} or {}",
          QuotedJson(name), found->second.size(), noun_, found->second[0], found->second[1]));
    return found->second.front();
  }
  // The latest of this name so far.
  uint32_t FindLatest(const JsonReader& reader) const {
    if (!reader.IsString() || count_ == 0) return Find(reader);
    const std::string name = reader.String();
    const auto found = places_.find(name);
    return found == places_.end() ? FindNamed(name, reader) : found->second.back();
  }
  bool Has(const std::string& name) const { return places_.contains(name); }

 private:
  std::string One() const { return (noun_.starts_with('e') ? "an " : "a ") + noun_; }
  std::string HintFor(const std::string& name) const {
    std::string hint = DidYouMean(name, names_);
    if (!hint.empty()) return hint;
    constexpr size_t kMostListed = 8;
    if (names_.empty() || names_.size() > kMostListed) return "";
    std::string list;
    for (const std::string& known : names_) list += (list.empty() ? "" : ", ") + QuotedJson(known);
    return "; known: " + list;
  }

  std::string noun_;
  uint32_t count_ = 0;
  std::map<std::string, std::vector<uint32_t>> places_;
  std::vector<std::string> names_;  // that are not empty, in order
};

// ---- ranks
// -----------------------------------------------------------------------------------------

// "0-3,8,16-64:8", of ranks below `ranks`.
std::vector<uint32_t> ParseRanges(const JsonReader& reader, uint32_t ranks) {
  const std::string text = reader.String();
  std::vector<uint32_t> list;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto fail = [&] {
    reader.Expected(fmt::format("ranks from 0 to {} such as \"0-3,8,16-64:8\"", ranks - 1));
  };
  const auto number = [&] {
    uint32_t value = 0;
    const auto [stop, fault] = std::from_chars(at, end, value);
    if (fault != std::errc()) fail();
    at = stop;
    return value;
  };
  const auto skip = [&](char wanted) {
    if (at == end || *at != wanted) return false;
    ++at;
    return true;
  };
  do {
    const uint32_t first = number();
    const uint32_t last = skip('-') ? number() : first;
    const uint32_t stride = last != first && skip(':') ? number() : 1;
    if (last < first || last >= ranks || stride == 0) fail();
    for (uint64_t rank = first; rank <= last; rank += stride) {
      list.push_back(static_cast<uint32_t>(rank));
      if (list.size() > ranks) reader.Fail("found a rank more than once");
    }
  } while (skip(','));
  if (at != end) fail();
  return list;
}

std::vector<uint32_t> ReadRanks(const JsonReader& reader, uint32_t ranks) {
  std::vector<uint32_t> list;
  if (reader.IsString() && reader.String() == "all") {
    for (uint32_t rank = 0; rank < ranks; ++rank) list.push_back(rank);
  } else if (reader.IsString()) {
    list = ParseRanges(reader, ranks);
  } else {
    if (!reader.IsArray())
      reader.Expected("ranks: \"all\", ranges such as \"0-3,8\", or a list such as [0, 1]");
    for (const JsonReader& rank : reader.Elements())
      list.push_back(Count(rank, 0, int64_t{ranks} - 1));
  }
  if (list.empty()) reader.Expected("at least one rank");
  return list;
}

std::vector<StridedAxis> ReadAxes(const JsonReader& reader) {
  std::vector<StridedAxis> axes;
  for (const JsonReader& axis : reader.Elements()) {
    const std::vector<JsonReader> numbers = axis.Elements();
    if (numbers.size() != 2) axis.Expected("an axis as [extent, stride]");
    axes.push_back({Count(numbers[0], 1, kMostRanks), Count(numbers[1], 1, kMostRanks)});
  }
  return axes;
}

// Together the axes of a mesh must meet each of its ranks once, as Communicator::Strided wants.
void CheckMesh(const JsonReader& reader, std::vector<StridedAxis> axes,
               const std::vector<StridedAxis>& more, uint32_t ranks) {
  axes.insert(axes.end(), more.begin(), more.end());
  std::erase_if(axes, [](const StridedAxis& axis) { return axis.extent == 1; });
  std::sort(axes.begin(), axes.end(),
            [](const StridedAxis& a, const StridedAxis& b) { return a.stride < b.stride; });
  uint64_t product = 1;
  for (const StridedAxis& axis : axes) {
    if (axis.stride != product)
      reader.Fail(
          fmt::format("the axes are those of no mesh: found a stride of {}, expected {}, "
                      "the product of the extents of smaller strides",
                      axis.stride, product));
    product *= axis.extent;
    if (product > ranks)
      reader.Fail(fmt::format("the mesh has at least {} ranks, but there are {}", product, ranks));
  }
}

Communicator ReadCommunicator(const JsonReader& reader, uint32_t ranks) {
  reader.AllowKeys({"name", "ranks", "groups", "mesh"});
  const std::string name = reader.At("name").String();
  const int forms = int{reader.Has("ranks")} + int{reader.Has("groups")} + int{reader.Has("mesh")};
  if (forms != 1)
    reader.Fail(fmt::format("found {} of the keys \"ranks\", \"groups\" and \"mesh\", expected one",
                            forms == 0 ? "none" : "more than one"));
  if (reader.Has("mesh")) {
    const JsonReader mesh = reader.At("mesh");
    mesh.AllowKeys({"members", "groups"});
    const std::vector<StridedAxis> members = ReadAxes(mesh.At("members"));
    const std::vector<StridedAxis> groups = ReadAxes(mesh.At("groups"));
    CheckMesh(mesh, members, groups, ranks);
    return Communicator::Strided(name, members, groups);
  }
  std::vector<std::vector<uint32_t>> groups;
  std::vector<bool> is_known(ranks);
  const auto add = [&](const JsonReader& group) {
    groups.push_back(ReadRanks(group, ranks));
    if (groups.back().size() != groups.front().size())
      group.Fail(fmt::format("found a group of {} ranks, expected {} as in the first group",
                             groups.back().size(), groups.front().size()));
    for (const uint32_t rank : groups.back()) {
      if (is_known[rank]) group.Fail(fmt::format("found rank {} for the second time", rank));
      is_known[rank] = true;
    }
  };
  if (reader.Has("ranks")) {
    add(reader.At("ranks"));
  } else {
    for (const JsonReader& group : reader.At("groups").Elements()) add(group);
    if (groups.empty()) reader.At("groups").Expected("at least one group of ranks");
  }
  return Communicator::Explicit(name, groups);
}

// ---- roles
// -----------------------------------------------------------------------------------------

const std::vector<std::string>& RoleKeys() {
  static const std::vector<std::string> keys = {"streams", "regions", "buffers", "ops", "repeats"};
  return keys;
}

class RoleReader {
 public:
  RoleReader(const Schedule& schedule, const Names& communicators)
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
    for (const JsonReader& stream : reader.Elements()) {
      stream.AllowKeys({"name", "kind"});
      const std::string name = stream.At("name").String();
      AddStream(name, ChoiceOf<StreamKind>(stream.At("kind"), StreamKindNames()));
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
    return static_cast<uint64_t>(reader.Integer(0, kMost64));
  }

  Region ReadRegion(const JsonReader& reader) const {
    reader.AllowKeys({"rows", "rows_cut_by", "columns", "columns_cut_by", "flat_by"});
    Region region;
    region.rows = {ReadElements(reader.At("rows")), ReadCuts(reader, "rows_cut_by")};
    region.columns = {ReadElements(reader.At("columns")), ReadCuts(reader, "columns_cut_by")};
    region.flat_by = ReadCuts(reader, "flat_by");
    return region;
  }

  void ReadBuffers(const JsonReader& reader) {
    const std::vector<JsonReader> readers = reader.Elements();
    // A view may be of a later buffer.
    for (const JsonReader& buffer : readers) {
      buffer.AllowKeys({"name", "kind", "dtype", "shape", "bytes", "region", "view"});
      buffers_.Add(buffer.At("name").String());
    }
    for (const JsonReader& buffer : readers) role_.buffers.push_back(ReadBuffer(buffer));
  }

  Buffer ReadBuffer(const JsonReader& reader) const {
    Buffer buffer;
    buffer.name = reader.At("name").String();
    buffer.kind = ChoiceOf<BufferKind>(reader.At("kind"), BufferKindNames());
    if (reader.Has("dtype")) buffer.dtype = ChoiceOf<DType>(reader.At("dtype"), DTypeNames());
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
      buffer.region = Count(reader.At("region"), 0, int64_t(role_.regions.size()) - 1);
    }
    return buffer;
  }

  View ReadView(const JsonReader& reader) const {
    reader.AllowKeys({"of", "row", "column", "rows_cut_by", "columns_cut_by"});
    View view;
    view.of = BufferId(buffers_.Find(reader.At("of")));
    if (reader.Has("row")) view.row = ReadElements(reader.At("row"));
    if (reader.Has("column")) view.column = ReadElements(reader.At("column"));
    view.rows_cut_by = ReadCuts(reader, "rows_cut_by");
    view.columns_cut_by = ReadCuts(reader, "columns_cut_by");
    return view;
  }

  Repeat ReadRepeat(const JsonReader& reader) const {
    reader.AllowKeys({"begin", "end", "times", "first_buffer", "end_buffer", "micro_batches"});
    Repeat repeat;
    const Repeat earlier = role_.repeats.empty() ? Repeat{} : role_.repeats.back();
    repeat.begin = Count(reader.At("begin"), earlier.end, int64_t(role_.ops.size()));
    repeat.end = Count(reader.At("end"), int64_t{repeat.begin} + 1, int64_t(role_.ops.size()));
    repeat.times = Count(reader.At("times"), 0);
    const auto buffers = int64_t(role_.buffers.size());
    repeat.first_buffer = repeat.end_buffer = earlier.end_buffer;
    if (reader.Has("first_buffer") || reader.Has("end_buffer")) {
      repeat.first_buffer = Count(reader.At("first_buffer"), earlier.end_buffer, buffers);
      repeat.end_buffer = Count(reader.At("end_buffer"), repeat.first_buffer, buffers);
    }
    if (reader.Has("micro_batches"))
      repeat.micro_batches = static_cast<int32_t>(reader.At("micro_batches").Integer(0, kMost32));
    return repeat;
  }

  // ---- ops
  // -----------------------------------------------------------------------------------------

  Op ReadOp(const JsonReader& reader) {
    static const std::vector<std::string> works = {"duration",   "gemm",    "compute",
                                                   "collective", "send_to", "receive_from"};
    static const std::vector<std::string> of_all = {"name",   "stream", "after", "reads",
                                                    "writes", "phase",  "layer", "micro_batch"};
    static const std::vector<std::string> of_compute = {"kernel", "dtype",   "flops",
                                                        "bytes",  "kernels", "attributes"};
    static const std::vector<std::string> of_collective = {"communicator", "bytes",     "dtype",
                                                           "reduction",    "algorithm", "protocol",
                                                           "root",         "pair_bytes"};
    static const std::vector<std::string> of_message = {"communicator", "bytes"};
    std::vector<std::string> known = works;
    for (const auto* keys : {&of_all, &of_compute, &of_collective})
      known.insert(known.end(), keys->begin(), keys->end());
    reader.AllowKeys(known);

    std::string work;
    for (const std::string& key : works) {
      if (!reader.Has(key)) continue;
      if (!work.empty())
        reader.Fail(
            fmt::format("found \"{}\" and \"{}\", expected one thing that the op does", work, key));
      work = key;
    }
    if (work.empty())
      reader.Fail(
          "does nothing: found none of the keys \"duration\", \"gemm\", \"compute\", "
          "\"collective\", \"send_to\" and \"receive_from\", expected one");
    const auto& more = work == "collective"                          ? of_collective
                       : work == "send_to" || work == "receive_from" ? of_message
                                                                     : of_compute;
    known = {work};
    for (const auto* keys : {&of_all, &more}) known.insert(known.end(), keys->begin(), keys->end());
    reader.AllowKeys(known);

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
    if (reader.Has("phase")) op.tag.phase = ChoiceOf<Phase>(reader.At("phase"), PhaseNames());
    if (reader.Has("layer"))
      op.tag.layer = static_cast<int32_t>(reader.At("layer").Integer(-1, kMost32));
    if (reader.Has("micro_batch"))
      op.tag.micro_batch = static_cast<int32_t>(reader.At("micro_batch").Integer(0, kMost32));
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
    if (reader.Has("dtype")) compute.dtype = ChoiceOf<DType>(reader.At("dtype"), DTypeNames());
    if (key == "duration") {
      compute.kind = ComputeKind::kFixed;
      compute.duration = reader.At("duration").Duration();
    } else if (key == "gemm") {
      compute.kind = ComputeKind::kGemm;
      const JsonReader gemm = reader.At("gemm");
      compute.gemm = ReadGemm(gemm);
      if (gemm.Has("tuned")) compute.tuned = ChoiceOf<GemmMode>(gemm.At("tuned"), GemmModeNames());
    } else {
      const bool is_attention = reader.At("compute").Choice({"attention", "memory"}) == 0;
      compute.kind = is_attention ? ComputeKind::kAttention : ComputeKind::kMemory;
      reader.At(is_attention ? "flops" : "bytes");  // what its time is made of
    }
    if (reader.Has("kernel")) compute.kernel = ChoiceOf<Kernel>(reader.At("kernel"), KernelNames());
    compute.flops = reader.Has("flops") ? reader.At("flops").FlopCount() : UsualFlops(compute);
    compute.bytes = reader.Has("bytes") ? SizeOrNone(reader.At("bytes")) : UsualBytes(compute);
    if (reader.Has("kernels")) compute.kernels = Count(reader.At("kernels"), 0);
    if (reader.Has("attributes")) {
      constexpr double kMost = std::numeric_limits<double>::max();
      for (const JsonReader& attribute : reader.At("attributes").Elements())
        compute.attributes.push_back(attribute.Number(-kMost, kMost));
    }
    return compute;
  }

  static Gemm ReadGemm(const JsonReader& reader) {
    reader.AllowKeys({"m", "n", "k", "mode", "tuned", "batch"});
    Gemm gemm;
    gemm.m = ReadElements(reader.At("m"));
    gemm.n = ReadElements(reader.At("n"));
    gemm.k = ReadElements(reader.At("k"));
    if (reader.Has("mode")) gemm.mode = ChoiceOf<GemmMode>(reader.At("mode"), GemmModeNames());
    if (reader.Has("batch")) gemm.batch = Count(reader.At("batch"), 1);
    return gemm;
  }

  CommunicatorId ReadCommunicatorOf(const JsonReader& reader) const {
    return CommunicatorId(communicators_.Find(reader.At("communicator")));
  }

  Collective ReadCollective(const JsonReader& reader) const {
    Collective collective;
    collective.kind = ChoiceOf<CollectiveKind>(reader.At("collective"), CollectiveNames());
    collective.communicator = ReadCommunicatorOf(reader);
    if (collective.kind != CollectiveKind::kBarrier || reader.Has("bytes"))
      collective.bytes = SizeOrNone(reader.At("bytes"));
    if (reader.Has("dtype")) collective.dtype = ChoiceOf<DType>(reader.At("dtype"), DTypeNames());
    if (reader.Has("reduction"))
      collective.reduction = ChoiceOf<Reduction>(reader.At("reduction"), ReductionNames());
    collective.algorithm =
        reader.Has("algorithm") ? reader.At("algorithm").String() : UsualAlgorithm(collective.kind);
    if (reader.Has("protocol")) collective.protocol = reader.At("protocol").String();
    if (reader.Has("root")) collective.root = Count(reader.At("root"), 0);
    if (reader.Has("pair_bytes"))
      collective.pair_bytes = ReadPairs(
          reader.At("pair_bytes"), schedule_.communicators[collective.communicator.index()].size());
    return collective;
  }

  // What each member sends to each, a row a member.
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
    message.peer = Count(reader.At(key), 0);
    message.bytes = SizeOrNone(reader.At("bytes"));
    return message;
  }

  const Schedule& schedule_;
  const Names& communicators_;
  bool has_streams_ = false;
  Role role_;
  Names streams_{"stream"};
  Names buffers_{"buffer"};
  Names ops_{"earlier op"};
};

// ---- the document
// ----------------------------------------------------------------------------------

void CheckSchema(const JsonReader& document) {
  const JsonReader schema = document.At("schema");
  if (schema.String() != kScheduleSchema) schema.Expected(QuotedJson(kScheduleSchema));
}

void ReadFacts(const JsonReader& reader, Schedule* schedule) {
  reader.AllowKeys({"model_flops", "hardware_flops", "tokens", "token_name"});
  if (reader.Has("model_flops")) schedule->model_flops = reader.At("model_flops").FlopCount();
  if (reader.Has("hardware_flops"))
    schedule->hardware_flops = reader.At("hardware_flops").FlopCount();
  if (reader.Has("tokens"))
    schedule->tokens = reader.At("tokens").Number(0, std::numeric_limits<double>::max());
  if (reader.Has("token_name")) schedule->token_name = reader.At("token_name").String();
}

// Runs [role, ranks] that are gone through again and again until each rank has one.
std::vector<uint32_t> ReadRuns(const JsonReader& reader, const Names& roles, uint32_t ranks) {
  std::vector<uint32_t> list;
  for (const JsonReader& run : reader.Elements()) {
    const std::vector<JsonReader> parts = run.Elements();
    if (parts.size() != 2) run.Expected("a run as [role, number of ranks]");
    const uint32_t role = roles.Find(parts[0]);
    list.resize(list.size() + Count(parts[1], 1, ranks), role);
    if (list.size() > ranks)
      reader.Fail(fmt::format("found runs of more than {} ranks, which is all there are", ranks));
  }
  if (list.empty() || ranks % list.size() != 0)
    reader.Fail(fmt::format("found runs of {} ranks, expected all {} ranks or a divisor of them",
                            list.size(), ranks));
  list.reserve(ranks);
  const size_t period = list.size();
  while (list.size() < ranks) list.push_back(list[list.size() - period]);
  return list;
}

void ReadRoles(const JsonReader& document, const Names& communicators, Schedule* schedule) {
  Names roles("role");
  if (!document.Has("roles")) {
    schedule->roles.push_back(RoleReader(*schedule, communicators).Read(document));
    schedule->roles.back().name = "all";
    roles.Add("all");
  } else {
    for (const std::string& key : RoleKeys()) {
      if (document.Has(key))
        document.At(key).Fail(
            fmt::format("found \"{}\" beside \"roles\", expected it in one of the roles", key));
    }
    const JsonReader list = document.At("roles");
    for (const JsonReader& reader : list.Elements()) {
      std::vector<std::string> keys = RoleKeys();
      keys.emplace_back("name");
      reader.AllowKeys(keys);
      const std::string name = reader.At("name").String();
      schedule->roles.push_back(RoleReader(*schedule, communicators).Read(reader));
      schedule->roles.back().name = name;
      roles.Add(name);
    }
    if (schedule->roles.empty()) list.Expected("at least one role");
  }
  const uint32_t ranks = Count(document.At("ranks"), 1, kMostRanks);
  if (document.Has("role_of_rank"))
    schedule->role_of_rank = ReadRuns(document.At("role_of_rank"), roles, ranks);
  else if (roles.count() > 1)
    document.Fail("missing key \"role_of_rank\": there is more than one role");
  else
    schedule->role_of_rank.assign(ranks, 0);
}

// Runs the checks, and says where in the file an op that they complain about is; of a role with
// repeats only which role, because they count copies.
void Check(const JsonReader& document, const Schedule& schedule) {
  try {
    CheckSchedule(schedule);
    CheckBuffers(schedule);
  } catch (const OpError& error) {
    const JsonReader role =
        document.Has("roles") ? document.At("roles").Elements()[error.role()] : document;
    if (!schedule.roles[error.role()].repeats.empty()) role.Fail(error.what());
    role.At("ops").Elements()[error.op()].Fail(error.what());
  } catch (const Error& error) {
    document.Fail(error.what());
  }
}

}  // namespace

bool IsSchedule(const nlohmann::json& document) {
  if (!document.is_object() || !document.contains("schema")) return false;
  const nlohmann::json& schema = document["schema"];
  return schema.is_string() && schema.get<std::string>().starts_with(kScheduleSchemas);
}

Schedule ReadSchedule(const JsonReader& document) {
  CheckSchema(document);
  std::vector<std::string> keys = {"schema",       "name",  "description",   "ranks",
                                   "role_of_rank", "facts", "communicators", "roles"};
  keys.insert(keys.end(), RoleKeys().begin(), RoleKeys().end());
  document.AllowKeys(keys);
  Schedule schedule;
  const uint32_t ranks = Count(document.At("ranks"), 1, kMostRanks);
  if (document.Has("facts")) ReadFacts(document.At("facts"), &schedule);
  Names communicators("communicator");
  if (document.Has("communicators")) {
    for (const JsonReader& reader : document.At("communicators").Elements()) {
      schedule.communicators.push_back(ReadCommunicator(reader, ranks));
      communicators.Add(schedule.communicators.back().name());
    }
  }
  ReadRoles(document, communicators, &schedule);
  Check(document, schedule);
  return schedule;
}

ScheduleTitle ReadScheduleTitle(const JsonReader& document) {
  ScheduleTitle title;
  if (document.Has("name")) title.name = document.At("name").String();
  if (document.Has("description")) title.description = document.At("description").String();
  return title;
}

}  // namespace rehearse
