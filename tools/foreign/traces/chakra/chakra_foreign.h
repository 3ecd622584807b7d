// A Schedule from Chakra execution traces that others wrote.
//
// Ranks with equal files share a role. A rank's nodes go onto streams as ASTRA-sim would issue them
// (tools/foreign/traces/chakra/chakra_issue.h): compute, CPU, memory and storage, one for each
// group of collectives, and one for each peer and direction of messages. Messages are buffered, as
// there: a send does not wait until its receive is reached. What was measured keeps its time;
// compute without a time becomes a product of square matrices with as many operations. Collectives
// and messages take the time that the simulation gives them; gathers and scatters are all-to-alls
// in which only the root gives or takes. Storage, batches and checkpoints take as long as they
// took. Those without a time, nodes that only describe, and what a host says of communication
// without saying which, are left out: whatever waits for them waits for what they wait for.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/base/growing_array.h"
#include "sim/schedule/schedule.h"
#include "tools/foreign/traces/chakra/chakra_file.h"

namespace rehearse {

// A number of a node that may not be given, and is not negative where it is.
class GivenNumber {
 public:
  GivenNumber() = default;
  explicit GivenNumber(const std::optional<double>& number) : number_(number.value_or(kNone)) {}

  explicit operator bool() const { return number_ >= 0; }
  double operator*() const { return number_; }
  double value_or(double other) const { return number_ >= 0 ? number_ : other; }

 private:
  static constexpr double kNone = -1;
  double number_ = kNone;
};

// What is kept of a node, of which there may be ten millions. Texts are its trace's.
struct KeptNode {
  uint64_t id = 0;
  uint64_t offset = 0;
  const std::string* name = nullptr;
  const std::string* group = nullptr;   // of communication
  const std::string* engine = nullptr;  // of compute; null: the usual one
  uint64_t nanoseconds = 0;             // 0: not measured
  uint32_t type = 0;
  bool is_cpu_op = false;
  bool has_storage = false;
  GivenNumber num_ops;
  GivenNumber tensor_size;
  GivenNumber comm_type;
  GivenNumber comm_size;
  GivenNumber comm_source;
  GivenNumber comm_target;
  GivenNumber comm_tag;
};

struct ChakraTrace {
  std::string file;
  uint32_t rank = 0;  // the first that has it
  ChakraContents contents;
  // Of traces that others wrote. The numbers of the nodes that one comes after lie one after the
  // other for all.
  std::deque<KeptNode> nodes;
  std::unordered_set<std::string> texts;
  GrowingArray<uint64_t> before;
  std::vector<size_t> before_end;
  std::string ops;  // of those that Rehearse wrote: once per role, from its first trace

  void Keep(const ChakraNode& node);
  std::span<const uint64_t> Before(uint32_t node) const {
    const size_t begin = node == 0 ? 0 : before_end[node - 1];
    return {before.data() + begin, before_end[node] - begin};
  }
};

struct ChakraTraces {
  std::string name;
  std::vector<ChakraTrace> traces;      // the distinct ones
  std::vector<uint32_t> trace_of_rank;  // position in `traces`
  std::string groups;                   // file of the groups; "": none
};

// Checked. Throws Error with rank, node and offset for nodes of unknown types, cycles, unknown
// groups, and collectives and messages whose ranks do not agree. Appends to `remarks`.
Schedule ScheduleOfForeign(const ChakraTraces& traces, std::vector<std::string>* remarks);

}  // namespace rehearse
