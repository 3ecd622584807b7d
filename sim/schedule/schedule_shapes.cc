#include "sim/schedule/schedule_shapes.h"

#include <limits>
#include <utility>

#include "sim/schedule/schedule_format.h"
#include "sim/schedule/schedule_read_parts.h"

namespace rehearse {
namespace {

JsonShape Count(int64_t least = 0) { return AWhole(least, kMost32); }
JsonShape Elements() { return AWhole(0, kMost64); }

// A reference to one of a list: its name, or its place.
JsonShape Reference(const char* what) { return Either({AText(what), Count()}); }
JsonShape ListOfNames(const char* what) {
  return Either({AText(what), Count(), ListOf(Reference(what))});
}

JsonShape Ranks() { return Either({AText("\"all\" or ranges"), ListOf(AWhole(0, kMostRanks))}); }

JsonShape MeshAxes() { return ListOf(Tuple({AWhole(1, kMostRanks), AWhole(1, kMostRanks)})); }

JsonKey NameRow(const char* example) {
  return {"name", AText(), Required(), "the name by which others refer to it", example};
}

JsonKey DTypeRow() {
  return {"dtype", OneOf(DTypeNames()), Default("\"bf16\""), "type of the elements"};
}

JsonKey CutBy(const char* name, const char* about) {
  return {name, ListOfNames("name of a communicator"), Default("[]"), about, "\"row\""};
}

std::vector<JsonKey> RoleRows() {
  return {
      {"ops", ListOf(Either([] {
         std::vector<JsonShape> tables;
         for (const OpTable& op : OpTables()) tables.push_back(ObjectOf(op.table));
         return tables;
       }())),
       Required(), "the ops; those of a stream run in this order",
       R"([{"name": "forward", "duration": "4ms"}])"},
      {"streams", ListOf(ObjectOf(StreamShape)), Optional("those that ops name"),
       "streams, each of which runs its ops in list order",
       R"([{"name": "compute", "kind": "compute"}])"},
      {"regions", ListOf(ObjectOf(RegionShape)), Default("[]"), "parts of matrices that ranks hold",
       R"([{"rows": 8, "columns": 8}])"},
      {"buffers", ListOf(ObjectOf(BufferShape)), Default("[]"), "buffers that ops read and write",
       R"([{"name": "x", "kind": "activation", "shape": [8, 8]}])"},
      {"repeats", ListOf(ObjectOf(RepeatShape)), Default("[]"),
       "ops that are stored once and done repeatedly", R"([{"begin": 0, "end": 4, "times": 7}])"}};
}

std::vector<JsonKey> RowsOfAllOps() {
  const auto buffers = [](const char* name, const char* about) {
    return JsonKey{name, ListOfNames("name of a buffer"), Default("[]"), about, "\"x\""};
  };
  return {
      NameRow("\"forward\""),
      {"stream", Reference("name of a stream"),
       Optional("compute, or the one named like its communicator"), "the stream that runs it",
       "\"compute\""},
      {"after", ListOfNames("name of an earlier op"), Default("[]"),
       "ops that must be done before it begins", "\"forward\""},
      buffers("reads", "buffers"),
      buffers("writes", "buffers"),
      {"phase", OneOf(PhaseNames()), Default("\"forward\""), "phase of the step"},
      {"layer", AWhole(-1, kMost32), Default("-1"), "layer of the network; -1: none", "3"},
      {"micro_batch", AWhole(0, kMost32), Default("0"), "which micro-batch it belongs to", "1"}};
}

ObjectShape OpShape(const char* name, const char* about, std::vector<JsonKey> rows) {
  ObjectShape shape = {name, about, std::move(rows)};
  for (JsonKey& row : RowsOfAllOps()) shape.keys.push_back(std::move(row));
  return shape;
}

// With the key that says what is computed.
ObjectShape ComputeShape(const char* name, const char* about, JsonKey work,
                         std::vector<JsonKey> more = {}) {
  std::vector<JsonKey> rows = {
      std::move(work),
      {"kernel", OneOf(KernelNames()), Optional("none in particular"),
       "the kernel that runs when the schedule is executed"},
      DTypeRow(),
      {"flops", AFlopCount(), Optional("those of its sizes, or none"), "floating-point operations",
       "\"1.5TFLOP\""},
      {"bytes", ASize(), Optional("those of its sizes, or none"), "bytes read and written",
       "\"64MiB\""},
      {"kernels", Count(), Default("1"), "how many kernels are launched", "2"},
      {"strided", ANumber(0, 1e30), Default("0"),
       "memory: elements of kernels with broadcast or strided operands", "1048576"},
      {"strided_bytes", ASize(), Default("\"0B\""), "the part of `bytes` that is theirs",
       "\"2MiB\""},
      {"attributes",
       ListOf(ANumber(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max())),
       Default("[]"), "numbers that the kernel takes", "[0.1]"}};
  for (JsonKey& row : more) rows.push_back(std::move(row));
  return OpShape(name, about, std::move(rows));
}

JsonKey CommunicatorRow() {
  return {"communicator", Reference("name of a communicator"), Required(), "who takes part",
          "\"data\""};
}

ObjectShape MessageShape(const char* name, const char* about, JsonKey peer) {
  return OpShape(name, about,
                 {std::move(peer),
                  CommunicatorRow(),
                  {"bytes", ASize(), Required(), "size of the message", "\"64MiB\""}});
}

const ObjectShape& DurationOpShape() {
  static const ObjectShape shape =
      ComputeShape("op: duration", "Takes the same time on any device.",
                   {"duration", ADuration(), Required(), "how long it takes", "\"4ms\""});
  return shape;
}

const ObjectShape& GemmOpShape() {
  static const ObjectShape shape =
      ComputeShape("op: gemm", "A product of matrices.",
                   {"gemm", ObjectOf(GemmShape), Required(), "sizes of the product",
                    R"({"m": 4096, "n": 4096, "k": 4096})"});
  return shape;
}

const ObjectShape& ComputeOpShape() {
  static const ObjectShape shape = ComputeShape(
      "op: compute",
      "Fused attention, whose flops must be given; or memory traffic, whose bytes must be given.",
      {"compute", OneOf({"attention", "memory"}), Required(), "what its time is made of"},
      {{"attention", OneOf(AttentionKernelNames()), Default("\"fused\""),
        "the attention core whose time it takes, where compute is attention", "\"flash-2\""}});
  return shape;
}

const ObjectShape& CollectiveOpShape() {
  static const ObjectShape shape = OpShape(
      "op: collective", "A collective among the ranks of the group.",
      {{"collective", OneOf(CollectiveNames()), Required(), "which collective"},
       CommunicatorRow(),
       {"bytes", ASize(), Optional("none, for a barrier; otherwise it must be given"),
        "size, as nccl-tests counts it", "\"64MiB\""},
       DTypeRow(),
       {"reduction", OneOf(ReductionNames()), Default("\"sum\""), "how elements are reduced"},
       {"algorithm", AText("algorithm, or auto"), Optional("ring, or the only one for the kind"),
        "how it runs (rehearse list algorithms)", "\"tree\""},
       {"protocol", AText("protocol, none or auto"), Default("\"none\""),
        "NCCL's protocol; none: bare links", "\"simple\""},
       {"root", Count(), Default("0"), "root of a broadcast or reduce, a member of the group", "0"},
       {"pair_bytes", ListOf(ListOf(ASize())), Optional("all pairs alike"),
        "for an all-to-all: what each member sends to each, a row for each member",
        R"([["1MiB", "2MiB"], ["2MiB", "1MiB"]])"},
       {"rank_share", ANumberAbove(0, 1), Default("1"),
        "with deepep: share of the bytes that goes to ranks when each token is sent to a rank only "
        "once",
        "0.8"},
       {"machine_share", ANumberAbove(0, 1), Default("1"),
        "with deepep: likewise, the share that goes to machines", "0.45"}});
  return shape;
}

const ObjectShape& SendShape() {
  static const ObjectShape shape =
      MessageShape("op: send_to", "A message to a member of the rank's group.",
                   {"send_to", Count(), Required(), "which member", "1"});
  return shape;
}

const ObjectShape& ReceiveShape() {
  static const ObjectShape shape =
      MessageShape("op: receive_from", "A message from a member of the rank's group.",
                   {"receive_from", Count(), Required(), "which member", "0"});
  return shape;
}

}  // namespace

const ObjectShape& ScheduleShape() {
  static const ObjectShape shape = [] {
    ObjectShape whole = {
        "schedule",
        "What every rank does in one step. If there is only one role, its keys may stand beside "
        "these.",
        {SchemaForEditors(),
         SchemaVersion(kScheduleSchema),
         {"name", AText(), Optional("the file's"), "what results call it", "\"two-ranks\""},
         {"description", AText(), Optional("none"), "for people", "\"six ops\""},
         {"ranks", AWhole(1, kMostRanks), Required(), "how many ranks there are", "2"},
         {"role_of_rank", ListOf(Tuple({Reference("name of a role"), AWhole(1, kMostRanks)})),
          Optional("there is one role"),
          "runs of [role, number of ranks], repeated until each rank has a role",
          R"([["first", 4], ["last", 4]])"},
         {"facts", ObjectOf(FactsShape), Optional("none"),
          "totals for utilisation and tokens per second", R"({"tokens": 8192})"},
         {"communicators", ListOf(ObjectOf(CommunicatorShape)), Default("[]"),
          "groups of ranks that communicate", R"([{"name": "data", "ranks": "all"}])"},
         {"roles", ListOf(ObjectOf(RoleShape)), Optional("one, whose keys stand here"),
          "what ranks with the same work do", R"([{"name": "all", "ops": []}])"}}};
    for (JsonKey& row : RoleRows()) {
      if (row.presence.kind == Presence::Kind::kRequired)
        row.presence = Optional("\"roles\" have them");
      whole.keys.push_back(std::move(row));
    }
    return whole;
  }();
  return shape;
}

const ObjectShape& FactsShape() {
  static const ObjectShape shape = {
      "facts",
      "What a whole step does, over all ranks.",
      {{"model_flops", AFlopCount(), Optional("no MFU"), "operations without recomputation",
        "\"1TFLOP\""},
       {"hardware_flops", AFlopCount(), Optional("no HFU"), "operations with recomputation",
        "\"1.3TFLOP\""},
       {"tokens", ANumber(0, std::numeric_limits<double>::max()), Optional("none"),
        "tokens of the batch", "8192"},
       {"token_name", AText(), Default("\"tokens\""), "what they are called", "\"images\""}}};
  return shape;
}

const ObjectShape& CommunicatorShape() {
  static const ObjectShape shape = {
      "communicator",
      "Groups of ranks that communicate, given in one of three ways.",
      {NameRow("\"data\""),
       {"ranks", Ranks(), Optional("\"groups\" or \"mesh\""), "the ranks of one group",
        "\"0-3,8,16-64:8\""},
       {"groups", ListOf(Ranks()), Optional("\"ranks\" or \"mesh\""), "groups of equal size",
        R"(["0-1", [2, 3]])"},
       {"mesh", ObjectOf(CommunicatorMeshShape), Optional("\"ranks\" or \"groups\""),
        "axes of a dense mesh", R"({"members": [[4, 1]], "groups": [[2, 4]]})"}}};
  return shape;
}

const ObjectShape& CommunicatorMeshShape() {
  static const ObjectShape shape = {
      "mesh of a communicator",
      "Axes as [extent, stride], the first one fastest.",
      {{"members", MeshAxes(), Required(), "axes along which the members of a group lie",
        "[[4, 1]]"},
       {"groups", MeshAxes(), Required(), "axes along which groups differ", "[[2, 4]]"}}};
  return shape;
}

const ObjectShape& RoleShape() {
  static const ObjectShape shape = [] {
    ObjectShape role = {"role", "What ranks with the same work do.", {NameRow("\"all\"")}};
    for (JsonKey& row : RoleRows()) role.keys.push_back(std::move(row));
    return role;
  }();
  return shape;
}

std::vector<std::string> RoleKeys() {
  std::vector<std::string> keys;
  for (const JsonKey& row : RoleShape().keys) {
    if (row.name != "name") keys.push_back(row.name);
  }
  return keys;
}

const ObjectShape& StreamShape() {
  static const ObjectShape shape = {
      "stream",
      "Runs its ops one after the other.",
      {NameRow("\"compute\""), {"kind", OneOf(StreamKindNames()), Required(), "kind of its ops"}}};
  return shape;
}

const ObjectShape& RegionShape() {
  const auto size = [](const char* name) {
    return JsonKey{name, Elements(), Required(), "of the matrix", "4096"};
  };
  static const ObjectShape shape = {
      "region",
      "The part of a matrix that a rank holds.",
      {size("rows"),
       CutBy("rows_cut_by", "communicators that share the rows"),
       size("columns"),
       CutBy("columns_cut_by", "communicators that share the columns"),
       CutBy("flat_by", "communicators that share what is left, element by element"),
       {"order", ObjectOf(SequenceOrderShape), Optional("sequence after sequence"),
        "order of the rows, where ranks share sequences",
        R"({"sequence": 8192, "parts": 4, "block": 8192})"}}};
  return shape;
}

const ObjectShape& SequenceOrderShape() {
  static const ObjectShape shape = {
      "order of rows",
      "The order of rows on ranks that share sequences: rank by rank in each block.",
      {{"sequence", Elements(), Required(), "tokens of a sequence", "8192"},
       {"parts", Elements(), Required(), "ranks that share a sequence", "4"},
       {"block", Elements(), Required(), "rows that these ranks hold together", "8192"},
       {"balanced", TrueFalse(), Default("false"),
        "a rank has two pieces of each sequence, one as far from the beginning as the other is "
        "from the end"}}};
  return shape;
}

const ObjectShape& BufferShape() {
  static const ObjectShape shape = {
      "buffer",
      "Memory of a rank; with a shape, or with bytes.",
      {NameRow("\"x\""),
       {"kind", OneOf(BufferKindNames()), Required(), "what it is counted as"},
       DTypeRow(),
       {"shape", Tuple({Elements(), Elements()}), Optional("no matrix"), "[rows, columns]",
        "[4096, 4096]"},
       {"bytes", ASize(), Optional("those of the shape; none for a view"), "size of the memory",
        "\"32MiB\""},
       {"region", Count(), Optional("not told"), "which of \"regions\" it holds, counted from 0",
        "0"},
       {"view", ObjectOf(ViewShape), Optional("memory of its own"),
        "the part of another buffer that it is", R"({"of": "x", "row": 8})"},
       {"host", TrueFalse(), Default("false"), "in the host's memory; only host copies touch it",
        "true"}}};
  return shape;
}

const ObjectShape& ViewShape() {
  const auto begin = [](const char* name) {
    return JsonKey{name, Elements(), Default("0"), "where it begins", "8"};
  };
  static const ObjectShape shape = {
      "view",
      "A part of another buffer.",
      {{"of", Reference("name of a buffer"), Required(), "the other buffer", "\"x\""},
       begin("row"),
       begin("column"),
       CutBy("rows_cut_by",
             "communicators over which the rows are split; it is the member's share"),
       CutBy("columns_cut_by",
             "communicators over which the columns are split; it is the member's share")}};
  return shape;
}

const ObjectShape& RepeatShape() {
  const auto buffer = [](const char* name, const char* about) {
    return JsonKey{name, Count(), Optional("no buffers of its own"), about, "0"};
  };
  static const ObjectShape shape = {
      "repeat",
      "Ops that are stored once and done repeatedly.",
      {{"begin", Count(), Required(), "index of the first op", "0"},
       {"end", Count(1), Required(), "index after the last op", "4"},
       {"times", Count(), Required(), "how many more times they are done", "7"},
       buffer("first_buffer", "index of the first buffer that is new each time"),
       buffer("end_buffer", "index after the last such buffer"),
       {"micro_batches", AWhole(0, kMost32), Default("1"), "micro-batches that one time stands for",
        "1"},
       {"back", Count(1), Default("1"), "equally long pieces before it that it refers to", "1"}}};
  return shape;
}

const std::vector<OpTable>& OpTables() {
  static const std::vector<OpTable> tables = {
      {"duration", DurationOpShape},     {"gemm", GemmOpShape},  {"compute", ComputeOpShape},
      {"collective", CollectiveOpShape}, {"send_to", SendShape}, {"receive_from", ReceiveShape}};
  return tables;
}

const ObjectShape& GemmShape() {
  const auto side = [](const char* name) {
    return JsonKey{name, Elements(), Required(), "of m x k by k x n", "4096"};
  };
  const JsonShape mode = OneOf(GemmModeNames());
  static const ObjectShape shape = {
      "gemm",
      "Sizes of a product.",
      {side("m"),
       side("n"),
       side("k"),
       {"mode", mode, Default("\"NN\""), "which operands are transposed"},
       {"tuned", mode, Optional("mode"), "the mode whose time a simulation takes"},
       {"batch", Count(1), Default("1"), "how many products of this size", "8"}}};
  return shape;
}

}  // namespace rehearse
