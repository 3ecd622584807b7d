#include "sim/schedule/schedule_fields.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/units.h"
#include "sim/schedule/schedule_format.h"
#include "sim/schedule/schedule_read_parts.h"

namespace rehearse {
namespace {

JsonShape Count(int64_t least = 0) { return AWhole(least, kMost32); }
JsonShape Elements(int64_t least = 0) { return AWhole(least, kMost64); }

// A reference to one of a list: its name, or its place.
JsonShape Reference(const char* what) { return Either({AText(what), Count()}); }
JsonShape ListOfNames(const char* what) {
  return Either({AText(what), Count(), ListOf(Reference(what))});
}

JsonShape Ranks() { return Either({AText("\"all\" or ranges"), ListOf(AWhole(0, kMostRanks))}); }

JsonShape MeshAxes() { return ListOf(Tuple({AWhole(1, kMostRanks), AWhole(1, kMostRanks)})); }

template <typename T>
Field<T> NameRow(std::string T::*member, const char* example) {
  return {"name", member, AText(), Required(), "the name by which others refer to it", example};
}

template <typename T>
Field<T> DTypeRow(DType T::*member) {
  return {"dtype", member, OneUpTo<DType::kFp4>(), Usual(), "type of the elements"};
}

JsonKey CutBy(const char* name, const char* about) {
  return {name, ListOfNames("name of a communicator"), Default("[]"), about, "\"row\""};
}

void ReadSizeOrNone(const JsonReader& reader, Bytes* bytes) { *bytes = SizeOrNone(reader); }
void WriteSizeOrNone(const Bytes& bytes, nlohmann::ordered_json* to) { *to = PrintExactly(bytes); }
void ReadAlgorithm(const JsonReader& reader, AlgorithmId* algorithm) {
  *algorithm = reader.StringBy(ParseAlgorithm);
}
void WriteAlgorithm(const AlgorithmId& algorithm, nlohmann::ordered_json* to) {
  *to = Name(algorithm);
}
void ReadProtocol(const JsonReader& reader, Protocol* protocol) {
  *protocol = reader.StringBy(ParseProtocol);
}
void WriteProtocol(const Protocol& protocol, nlohmann::ordered_json* to) { *to = Name(protocol); }
FieldShape ASizeOrNone() { return ReadBy(ASize(), ReadSizeOrNone, WriteSizeOrNone); }

// ---- Roles --------------------------------------------------------------------------------------

FieldList<Role> RoleRows() {
  return {
      {"ops", ListOf(Either([] {
         std::vector<JsonShape> tables;
         for (const OpTable& op : OpTables()) tables.push_back(ObjectOf(op.table));
         return tables;
       }())),
       Required(), "the ops; those of a stream run in this order",
       R"([{"name": "forward", "duration": "4ms"}])"},
      {"streams", ListOf(ObjectOf(ShapeIn<StreamFields>)), Optional("those that ops name"),
       "streams, each of which runs its ops in list order",
       R"([{"name": "compute", "kind": "compute"}])"},
      {"regions", ListOf(ObjectOf(ShapeIn<RegionFields>)), Default("[]"),
       "parts of matrices that ranks hold", R"([{"rows": 8, "columns": 8}])"},
      {"buffers", ListOf(ObjectOf(ShapeIn<BufferFields>)), Default("[]"),
       "buffers that ops read and write",
       R"([{"name": "x", "kind": "activation", "shape": [8, 8]}])"},
      {"repeats", ListOf(ObjectOf(ShapeIn<RepeatFields>)), Default("[]"),
       "ops that are stored once and done repeatedly", R"([{"begin": 0, "end": 4, "times": 7}])"}};
}

// ---- Ops ----------------------------------------------------------------------------------------

// The rows of what an op does, and those that all ops have.
template <typename T>
FieldList<T> WithOpRows(FieldList<T> rows) {
  for (const JsonKey& row : OpFields().shape().keys) rows.push_back(row);
  return rows;
}

FieldList<Compute> ComputeRows() {
  return {
      {"kernel", &Compute::kernel, OneUpTo<Kernel::kStateNormBackward>(),
       Optional("none in particular"), "the kernel that runs when the schedule is executed"},
      DTypeRow(&Compute::dtype),
      {"flops", &Compute::flops, AFlopCount(), Optional("those of its sizes, or none"),
       "floating-point operations", "\"1.5TFLOP\""},
      {"bytes", &Compute::bytes, ASizeOrNone(), Optional("those of its sizes, or none"),
       "bytes read and written", "\"64MiB\""},
      {"kernels", &Compute::kernels, Count(), Usual(), "how many kernels are launched", "2"},
      {"strided", &Compute::strided, ANumber(0, 1e30), Usual(),
       "memory: elements of kernels with broadcast or strided operands", "1048576"},
      {"strided_bytes", &Compute::strided_bytes, ASizeOrNone(), Usual(),
       "the part of `bytes` that is theirs", "\"2MiB\""},
      {"attributes", &Compute::attributes,
       ListOf(ANumber(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max())),
       Usual(), "numbers that the kernel takes", "[0.1]"}};
}

const Fields<Compute>& DurationOpFields() {
  static const Fields<Compute> fields(
      "op: duration", "Takes the same time on any device.",
      WithOpRows<Compute>({{"duration", &Compute::duration, ADuration(), Required(),
                            "how long it takes", "\"4ms\""},
                           ComputeRows()}));
  return fields;
}

const Fields<Compute>& GemmOpFields() {
  static const Fields<Compute> fields(
      "op: gemm", "A product of matrices.",
      WithOpRows<Compute>({{"gemm", kItself, ObjectIn<GemmFields>(), Required(),
                            "sizes of the product", R"({"m": 4096, "n": 4096, "k": 4096})"},
                           ComputeRows()}));
  return fields;
}

const Fields<Compute>& ComputeOpFields() {
  static constexpr ValueName<ComputeKind> kKinds[] = {{"attention", ComputeKind::kAttention},
                                                      {"memory", ComputeKind::kMemory},
                                                      {"host", ComputeKind::kHost}};
  static const Fields<Compute> fields(
      "op: compute",
      "Fused attention, whose flops must be given; or memory traffic, whose bytes must be given: "
      "of the device's memory or, by the host's processor, of the host's.",
      WithOpRows<Compute>(
          {{"compute", &Compute::kind, OneOf(kKinds), Required(), "what its time is made of"},
           ComputeRows(),
           {"attention", &Compute::attention, OneUpTo<AttentionKernel::kEfficient>(), Usual(),
            "the attention core whose time it takes, where compute is attention", "\"flash-2\""}}));
  return fields;
}

JsonKey CommunicatorRow() {
  return {"communicator", Reference("name of a communicator"), Required(), "who takes part",
          "\"data\""};
}

const Fields<Collective>& CollectiveOpFields() {
  static const Fields<Collective> fields(
      "op: collective", "A collective among the ranks of the group.",
      WithOpRows<Collective>(
          {{"collective", &Collective::kind, OneUpTo<CollectiveKind::kFromHost>(), Required(),
            "which collective"},
           CommunicatorRow(),
           {"bytes", &Collective::bytes, ASizeOrNone(),
            Optional("none, for a barrier; otherwise it must be given"),
            "size, as nccl-tests counts it", "\"64MiB\""},
           DTypeRow(&Collective::dtype),
           {"reduction", &Collective::reduction, OneOf(kReductionNames), Usual(),
            "how elements are reduced"},
           {"algorithm", &Collective::algorithm,
            ReadBy(AText("algorithm, or auto"), ReadAlgorithm, WriteAlgorithm),
            Optional("ring, or the only one for the kind"),
            "how it runs (rehearse list algorithms)", "\"tree\""},
           {"protocol", &Collective::protocol,
            ReadBy(AText("protocol, none or auto"), ReadProtocol, WriteProtocol), Usual(),
            "NCCL's protocol; none: bare links", "\"simple\""},
           {"root", &Collective::root, Count(), Usual(),
            "root of a broadcast or reduce, a member of the group", "0"},
           {"pair_bytes", ListOf(ListOf(ASize())), Optional("all pairs alike"),
            "for an all-to-all: what each member sends to each, a row for each member",
            R"([["1MiB", "2MiB"], ["2MiB", "1MiB"]])"},
           {"rank_share", &Collective::rank_share, ANumberAbove(0, 1), Usual(),
            "with deepep: share of the bytes that goes to ranks when each token is sent to a rank "
            "only once",
            "0.8"},
           {"machine_share", &Collective::machine_share, ANumberAbove(0, 1), Usual(),
            "with deepep: likewise, the share that goes to machines", "0.45"},
           {"copied", &Collective::copied, TrueFalse(), Usual(),
            "copy engines move it over the bare links, beside kernels that it does not slow down",
            "true"}}));
  return fields;
}

template <typename Message>  // Send or Receive
FieldList<Message> MessageRows(const char* peer, const char* example) {
  return WithOpRows<Message>(
      {{peer, &Message::peer, Count(), Required(), "which member", example},
       CommunicatorRow(),
       {"bytes", &Message::bytes, ASizeOrNone(), Required(), "size of the message", "\"64MiB\""}});
}

const Fields<Send>& SendFields() {
  static const Fields<Send> fields("op: send_to", "A message to a member of the rank's group.",
                                   MessageRows<Send>("send_to", "1"));
  return fields;
}

const Fields<Receive>& ReceiveFields() {
  static const Fields<Receive> fields("op: receive_from",
                                      "A message from a member of the rank's group.",
                                      MessageRows<Receive>("receive_from", "0"));
  return fields;
}

template <auto kFields>
OpTable TableOf(const char* work) {
  return {work, ShapeIn<kFields>, [](const JsonReader& reader, Work* read) {
            using Kind = typename std::remove_cvref_t<decltype(kFields())>::Type;
            kFields().ReadInto(reader, &read->emplace<Kind>());
          }};
}

}  // namespace

const Fields<ScheduleTitle>& ScheduleFields() {
  static const Fields<ScheduleTitle> fields(
      "schedule",
      "What every rank does in one step. If there is only one role, its keys may stand beside "
      "these.",
      [] {
        FieldList<ScheduleTitle> rows = {
            SchemaForEditors(),
            SchemaVersion(kScheduleSchema),
            {"name", &ScheduleTitle::name, AText(), Optional("the file's"), "what results call it",
             "\"two-ranks\""},
            {"description", &ScheduleTitle::description, AText(), Optional("none"), "for people",
             "\"six ops\""},
            {"ranks", AWhole(1, kMostRanks), Required(), "how many ranks there are", "2"},
            {"role_of_rank", ListOf(Tuple({Reference("name of a role"), AWhole(1, kMostRanks)})),
             Optional("there is one role"),
             "runs of [role, number of ranks], repeated until each rank has a role",
             R"([["first", 4], ["last", 4]])"},
            {"facts", ObjectOf(ShapeIn<FactsFields>), Optional("none"),
             "totals for utilisation and tokens per second", R"({"tokens": 8192})"},
            {"communicators", ListOf(ObjectOf(CommunicatorShape)), Default("[]"),
             "groups of ranks that communicate", R"([{"name": "data", "ranks": "all"}])"},
            {"roles", ListOf(ObjectOf(ShapeIn<RoleFields>)), Optional("one, whose keys stand here"),
             "what ranks with the same work do", R"([{"name": "all", "ops": []}])"}};
        for (JsonKey row : RoleFields().shape().keys) {
          if (row.name == "name") continue;
          if (row.presence.kind == Presence::Kind::kRequired)
            row.presence = Optional("\"roles\" have them");
          rows.push_back(std::move(row));
        }
        return rows;
      }());
  return fields;
}

const Fields<Schedule>& FactsFields() {
  static const Fields<Schedule> fields(
      "facts", "What a whole step does, over all ranks.",
      {{"model_flops", &Schedule::model_flops, AFlopCount(), Optional("no MFU"),
        "operations without recomputation", "\"1TFLOP\""},
       {"hardware_flops", &Schedule::hardware_flops, AFlopCount(), Optional("no HFU"),
        "operations with recomputation", "\"1.3TFLOP\""},
       {"tokens", &Schedule::tokens, ANumber(0, std::numeric_limits<double>::max()),
        Optional("none"), "tokens of the batch", "8192"},
       {"token_name", &Schedule::token_name, AText(), Usual(), "what they are called",
        "\"images\""}});
  return fields;
}

const ObjectShape& CommunicatorShape() {
  static const ObjectShape shape = {
      "communicator",
      "Groups of ranks that communicate, given in one of three ways.",
      {{"name", AText(), Required(), "the name by which others refer to it", "\"data\""},
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

const Fields<Role>& RoleFields() {
  static const Fields<Role> fields("role", "What ranks with the same work do.",
                                   {NameRow(&Role::name, "\"all\""), RoleRows()});
  return fields;
}

std::vector<std::string> RoleKeys() {
  std::vector<std::string> keys;
  for (const JsonKey& row : RoleFields().shape().keys) {
    if (row.name != "name") keys.push_back(row.name);
  }
  return keys;
}

const Fields<Stream>& StreamFields() {
  static const Fields<Stream> fields(
      "stream", "Runs its ops one after the other.",
      {NameRow(&Stream::name, "\"compute\""),
       {"kind", &Stream::kind, OneOf(kStreamKindNames), Required(), "kind of its ops"}});
  return fields;
}

namespace {

const Fields<SequenceOrder>& SequenceOrderFields() {
  static const Fields<SequenceOrder> fields(
      "order of rows",
      "The order of rows on ranks that share sequences: rank by rank in each block.",
      {{"sequence", &SequenceOrder::sequence, Elements(1), Required(), "tokens of a sequence",
        "8192"},
       {"parts", &SequenceOrder::parts, Elements(1), Required(), "ranks that share a sequence",
        "4"},
       {"block", &SequenceOrder::block, Elements(1), Required(),
        "rows that these ranks hold together", "8192"},
       {"balanced", &SequenceOrder::balanced, TrueFalse(), Usual(),
        "a rank has two pieces of each sequence, one as far from the beginning as the other is "
        "from the end"}});
  return fields;
}

Field<Extent> SizeRow(const char* name) {
  return {name, &Extent::size, Elements(), Required(), "of the matrix", "4096"};
}

void ReadMatrix(const JsonReader& reader, Buffer* buffer) {
  const std::vector<JsonReader> sizes = reader.Elements();
  if (sizes.size() != 2) reader.Expected("a shape as [rows, columns]");
  buffer->rows = static_cast<uint64_t>(sizes[0].Integer(0, kMost64));
  buffer->columns = static_cast<uint64_t>(sizes[1].Integer(0, kMost64));
}
void WriteMatrix(const Buffer& buffer, nlohmann::ordered_json* to) {
  *to = {buffer.rows, buffer.columns};
}

}  // namespace

const Fields<Region>& RegionFields() {
  static const Fields<Region> fields(
      "region", "The part of a matrix that a rank holds.",
      {SizeRow("rows").Within(&Region::rows),
       CutBy("rows_cut_by", "communicators that share the rows"),
       SizeRow("columns").Within(&Region::columns),
       CutBy("columns_cut_by", "communicators that share the columns"),
       CutBy("flat_by", "communicators that share what is left, element by element"),
       {"order", &Region::order, ObjectIn<SequenceOrderFields>(),
        Optional("sequence after sequence"), "order of the rows, where ranks share sequences",
        R"({"sequence": 8192, "parts": 4, "block": 8192})"}});
  return fields;
}

const Fields<Buffer>& BufferFields() {
  static const Fields<Buffer> fields(
      "buffer", "Memory of a rank; with a shape, or with bytes.",
      {NameRow(&Buffer::name, "\"x\""),
       {"kind", &Buffer::kind, OneOf(kBufferKindNames), Required(), "what it is counted as"},
       DTypeRow(&Buffer::dtype),
       {"shape", kItself, ReadBy(Tuple({Elements(), Elements()}), ReadMatrix, WriteMatrix),
        Optional("no matrix"), "[rows, columns]", "[4096, 4096]"},
       {"bytes", &Buffer::bytes, ASizeOrNone(), Optional("those of the shape; none for a view"),
        "size of the memory", "\"32MiB\""},
       {"region", Count(), Optional("not told"), "which of \"regions\" it holds, counted from 0",
        "0"},
       {"view", ObjectOf(ShapeIn<ViewFields>), Optional("memory of its own"),
        "the part of another buffer that it is", R"({"of": "x", "row": 8})"},
       {"host", &Buffer::on_host, TrueFalse(), Usual(),
        "in the host's memory; only host copies touch it", "true"},
       {"borrowed", &Buffer::borrowed, TrueFalse(), Usual(),
        "lies where another array is that is not needed at the same time: it counts as no memory",
        "true"}});
  return fields;
}

const Fields<View>& ViewFields() {
  const auto begin = [](const char* name, uint64_t View::*member) {
    return Field<View>(name, member, Elements(), Usual(), "where it begins", "8");
  };
  static const Fields<View> fields(
      "view", "A part of another buffer.",
      {{"of", Reference("name of a buffer"), Required(), "the other buffer", "\"x\""},
       begin("row", &View::row),
       begin("column", &View::column),
       CutBy("rows_cut_by",
             "communicators over which the rows are split; it is the member's share"),
       CutBy("columns_cut_by",
             "communicators over which the columns are split; it is the member's share"),
       {"rows_turned", &View::rows_turned, Count(), Usual(),
        "it is the share of the member so many places further on, the first following the last",
        "3"}});
  return fields;
}

const Fields<Repeat>& RepeatFields() {
  const auto buffer = [](const char* name, const char* about) {
    return JsonKey{name, Count(), Optional("no buffers of its own"), about, "0"};
  };
  static const Fields<Repeat> fields(
      "repeat", "Ops that are stored once and done repeatedly.",
      {{"begin", Count(), Required(), "index of the first op", "0"},
       {"end", Count(1), Required(), "index after the last op", "4"},
       {"times", &Repeat::times, Count(), Required(), "how many more times they are done", "7"},
       buffer("first_buffer", "index of the first buffer that is new each time"),
       buffer("end_buffer", "index after the last such buffer"),
       {"micro_batches", &Repeat::micro_batches, AWhole(0, kMost32), Usual(),
        "micro-batches that one time stands for", "1"},
       {"back", Count(1), Default("1"), "equally long pieces before it that it refers to", "1"}});
  return fields;
}

const std::vector<OpTable>& OpTables() {
  static const std::vector<OpTable> tables = {
      TableOf<DurationOpFields>("duration"), TableOf<GemmOpFields>("gemm"),
      TableOf<ComputeOpFields>("compute"),   TableOf<CollectiveOpFields>("collective"),
      TableOf<SendFields>("send_to"),        TableOf<ReceiveFields>("receive_from")};
  return tables;
}

const Fields<Op>& OpFields() {
  const auto buffers = [](const char* name, const char* about) {
    return JsonKey{name, ListOfNames("name of a buffer"), Default("[]"), about, "\"x\""};
  };
  static const Fields<Op> fields(
      "op", "What every op may say.",
      {NameRow(&Op::name, "\"forward\""),
       {"stream", Reference("name of a stream"),
        Optional("compute, or the one named like its communicator"), "the stream that runs it",
        "\"compute\""},
       {"after", ListOfNames("name of an earlier op"), Default("[]"),
        "ops that must be done before it begins", "\"forward\""},
       buffers("reads", "buffers"),
       buffers("writes", "buffers"),
       Within(&Op::tag, FieldList<Tag>{{"phase", &Tag::phase, OneUpTo<Phase::kUpdate>(), Usual(),
                                        "phase of the step"},
                                       {"layer", &Tag::layer, AWhole(-1, kMost32), Usual(),
                                        "layer of the network; -1: none", "3"},
                                       {"micro_batch", &Tag::micro_batch, AWhole(0, kMost32),
                                        Usual(), "which micro-batch it belongs to", "1"}})});
  return fields;
}

const Fields<Compute>& GemmFields() {
  const auto side = [](const char* name, uint64_t Gemm::*member) {
    return Field<Gemm>(name, member, Elements(), Required(), "of m x k by k x n", "4096");
  };
  const FieldShape mode = OneUpTo<GemmMode::kTN>();
  const auto parts = [](const char* name, uint32_t Compute::*member, const char* about) {
    return Field<Compute>(name, member, Count(1), Usual(), about, "8");
  };
  static const Fields<Compute> fields(
      "gemm", "Sizes of a product.",
      {Within(&Compute::gemm, FieldList<Gemm>{side("m", &Gemm::m),
                                              side("n", &Gemm::n),
                                              side("k", &Gemm::k),
                                              {"mode", &Gemm::mode, mode, Usual(),
                                               "which operands are transposed"}}),
       {"tuned", &Compute::tuned, mode, Optional("mode"), "the mode whose time a simulation takes"},
       Within(&Compute::gemm, FieldList<Gemm>{{"batch", &Gemm::batch, Count(1), Usual(),
                                               "how many products of this size", "8"}}),
       parts("row_parts", &Compute::row_parts,
             "it takes its part of the time of one kernel with so many times the rows"),
       parts("column_parts", &Compute::column_parts,
             "it takes its part of the time of one kernel with so many times the columns")});
  return fields;
}

}  // namespace rehearse
