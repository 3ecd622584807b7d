// Words and numbers of Chakra execution traces that their writer and their reader share: field
// numbers and enums of MLCommons' schema (github.com/mlcommons/chakra,
// schema/protobuf/et_def.proto; 0.0.4 has the same numbers), attributes as its feeder reads them
// (src/feeder/et_feeder_node.cpp there), and our own.
//
// A file is one rank's, NAME.RANK.et: messages one after the other, each preceded by its size as a
// varint: one GlobalMetadata, then Nodes. Groups of ranks are in a JSON file beside it, as
// ASTRA-sim reads it: {"0": [0, 1, ...]}, keyed by the collectives' pg_name. comm_size of a
// collective counts what a rank puts in: for an all-gather its own part, where our bytes are the
// whole (sim/schedule/schedule.h). For a gather and a scatter it is one rank's part, too. The
// schema has no word for a root: here it is comm_src where one rank gives, comm_dst where one
// takes.
#pragma once

#include <cstdint>

namespace rehearse::chakra {

inline constexpr const char* kVersion = "0.0.4";

// GlobalMetadata.
inline constexpr uint32_t kHeaderVersion = 1;
inline constexpr uint32_t kHeaderAttribute = 2;

inline constexpr uint32_t kNodeId = 1;
inline constexpr uint32_t kNodeName = 2;
inline constexpr uint32_t kNodeType = 3;
inline constexpr uint32_t kNodeControlDependencies = 4;
inline constexpr uint32_t kNodeDataDependencies = 5;
inline constexpr uint32_t kNodeDuration = 7;  // whole microseconds
inline constexpr uint32_t kNodeInputs = 8;    // an IOInfo
inline constexpr uint32_t kNodeAttribute = 10;
inline constexpr uint32_t kNodeStorage = 11;  // a StorageInfo

// IOInfo.
inline constexpr uint32_t kInputValues = 1;

// The name of the node in which PyTorch notes its groups of ranks.
inline constexpr const char* kGroupsNode = "## process_group:init ##";

// AttributeProto: a name and one value. Lists lie at the even numbers between these.
inline constexpr uint32_t kAttributeName = 1;
inline constexpr uint32_t kAttributeDouble = 3;
inline constexpr uint32_t kAttributeFloat = 5;
inline constexpr uint32_t kAttributeInt32 = 7;
inline constexpr uint32_t kAttributeInt64 = 9;
inline constexpr uint32_t kAttributeUint32 = 11;
inline constexpr uint32_t kAttributeUint64 = 13;
inline constexpr uint32_t kAttributeSint32 = 15;
inline constexpr uint32_t kAttributeSint64 = 17;
inline constexpr uint32_t kAttributeFixed32 = 19;
inline constexpr uint32_t kAttributeFixed64 = 21;
inline constexpr uint32_t kAttributeSfixed32 = 23;
inline constexpr uint32_t kAttributeSfixed64 = 25;
inline constexpr uint32_t kAttributeBool = 27;
inline constexpr uint32_t kAttributeString = 29;
inline constexpr uint32_t kAttributeBytes = 31;

enum NodeType : uint32_t {
  kInvalid,
  kMetadata,
  kMemoryLoad,
  kMemoryStore,
  kCompute,
  kSend,
  kReceive,
  kCollective,
  kStorage,
  kBatch,
  kCheckpoint,
};

enum CollectiveType : uint32_t {
  kAllReduce,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kBroadcast,
  kAllToAll,
  kReduceScatter,
  kReduceScatterBlock,
  kBarrier,
};

// Of nodes.
inline constexpr const char* kIsCpuOp = "is_cpu_op";       // bool
inline constexpr const char* kNumOps = "num_ops";          // int64
inline constexpr const char* kTensorSize = "tensor_size";  // uint64, bytes
inline constexpr const char* kCommType = "comm_type";      // int64
inline constexpr const char* kCommSize = "comm_size";      // int64, bytes
inline constexpr const char* kCommSource = "comm_src";     // int32, a rank
inline constexpr const char* kCommTarget = "comm_dst";     // int32, a rank
inline constexpr const char* kCommTag = "comm_tag";        // int32
inline constexpr const char* kGroupName = "pg_name";       // string

// Ours. Together they are the schedule's file (sim/schedule/schedule_json.h), cut in pieces: each
// node has its op (nodes without one repeat an earlier op), each file its role without ops, and all
// the rest.
inline constexpr const char* kOurs = "rehearse.";
inline constexpr const char* kOurOp = "rehearse.op";                    // string
inline constexpr const char* kOurPicoseconds = "rehearse.duration_ps";  // int64
inline constexpr const char* kOurSchedule = "rehearse.schedule";        // string
inline constexpr const char* kOurRole = "rehearse.role";                // string
inline constexpr const char* kOurPlace = "rehearse.role_place";         // int64: of roles
inline constexpr const char* kOurRoles = "rehearse.roles";              // int64: how many
inline constexpr const char* kOurRanks = "rehearse.ranks";              // likewise
inline constexpr const char* kOurNodes = "rehearse.nodes";              // of this file

}  // namespace rehearse::chakra
