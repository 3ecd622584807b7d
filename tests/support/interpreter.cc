#include "tests/support/interpreter.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include "sim/base/error.h"

namespace rehearse {
namespace {

using Values = std::vector<int64_t>;

// Which part of `size` elements the part of the collective with this index works on.
Range ShareOf(const std::vector<Part>& parts, size_t index, uint64_t size) {
  double before = 0;
  for (size_t i = 0; i < index; ++i) before += parts[i].share;
  const auto cut = [&](double share) {
    return static_cast<uint64_t>(std::llround(share * static_cast<double>(size)));
  };
  return {cut(before), index + 1 == parts.size() ? size : cut(before + parts[index].share)};
}

// One part of the collective, with all members' chunks.
class PartRun {
 public:
  PartRun(const Algorithm& algorithm, const std::vector<Part>& parts, size_t index,
          const DataProblem& problem)
      : algorithm_(algorithm),
        parts_(parts),
        index_(index),
        input_(parts[index].input),
        order_(parts[index].order),
        problem_(problem),
        chunks_(ChunkCount(algorithm, input_)) {
    const uint32_t everyone = input_.ranks() + algorithm.switches(input_);
    space_.assign(everyone, std::vector<std::optional<Values>>(chunks_));
    for (uint32_t position = 0; position < everyone; ++position) {
      messages_.push_back(MessagesOf(algorithm, input_, position));
    }
  }

  void Fill(const Data& inputs) {
    for (uint32_t position = 0; position < input_.ranks(); ++position) {
      const Values& own = inputs[order_[position]];
      for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
        if (const auto range = InputRange(position, chunk)) {
          space_[position][chunk] = Values(own.begin() + static_cast<ptrdiff_t>(range->begin),
                                           own.begin() + static_cast<ptrdiff_t>(range->end));
        }
      }
    }
  }

  void Run(uint64_t seed, Traffic* traffic) {
    std::mt19937_64 random(seed);
    std::vector<uint32_t> turns(space_.size());
    std::iota(turns.begin(), turns.end(), 0u);
    next_.assign(space_.size(), 0);
    has_sent_.assign(space_.size(), false);
    bool moves = true;
    while (moves) {
      moves = false;
      std::shuffle(turns.begin(), turns.end(), random);
      for (const uint32_t position : turns) {
        while (Advance(position, traffic)) moves = true;
      }
    }
    for (uint32_t position = 0; position < space_.size(); ++position) {
      CHECK_EQ(next_[position], messages_[position].size());
    }
    for (const auto& [pair, queue] : sent_) CHECK(queue.empty());
  }

  void Empty(Data* outputs) const {
    for (uint32_t position = 0; position < input_.ranks(); ++position) {
      Values& own = (*outputs)[order_[position]];
      for (uint32_t chunk = 0; chunk < chunks_; ++chunk) {
        const auto range = OutputRange(position, chunk);
        if (!range || range->size() == 0) continue;
        CHECK(space_[position][chunk].has_value());
        CHECK_EQ(space_[position][chunk]->size(), range->size());
        std::copy(space_[position][chunk]->begin(), space_[position][chunk]->end(),
                  own.begin() + static_cast<ptrdiff_t>(range->begin));
      }
    }
  }

 private:
  // This part's share of a stretch of elements, cut further into pieces.
  Range Piece(const Range& stretch, uint64_t piece, uint64_t pieces) const {
    const Range share = ShareOf(parts_, index_, stretch.size());
    const Range part = PartOf(share.size(), piece, pieces);
    const uint64_t begin = stretch.begin + share.begin;
    return {begin + part.begin, begin + part.end};
  }

  // A chunk's range in the blocks of all members or, if `alone`, in its own block.
  Range BlockRange(uint32_t chunk, bool alone) const {
    const uint32_t p = input_.ranks();
    const uint32_t owner = order_[BlockOf(algorithm_, input_, 0, chunk).to];
    Range block = PartOf(problem_.elements, owner, p);
    if (alone) block = {0, block.size()};
    return Piece(block, chunk / p, chunks_ / p);
  }

  Range PairRange(uint32_t position, uint32_t chunk, bool sends) const {
    const Block block = BlockOf(algorithm_, input_, position, chunk);
    const uint32_t from = order_[block.from];
    const uint32_t to = order_[block.to];
    uint64_t offset = 0;
    for (uint32_t other = 0; other < (sends ? to : from); ++other) {
      offset += sends ? PairElements(problem_, from, other) : PairElements(problem_, other, to);
    }
    return Piece({offset, offset + PairElements(problem_, from, to)}, 0, 1);
  }

  // Where a chunk lies in what the member puts in, or gets out; nothing if it does not.
  std::optional<Range> InputRange(uint32_t position, uint32_t chunk) const {
    const uint32_t p = input_.ranks();
    switch (input_.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduce:
        return Piece({0, problem_.elements}, chunk, chunks_);
      case CollectiveKind::kBroadcast:
        if (order_[position] != problem_.root) return std::nullopt;
        return Piece({0, problem_.elements}, chunk, chunks_);
      case CollectiveKind::kReduceScatter:
        return BlockRange(chunk, false);
      case CollectiveKind::kAllGather:
        if (BlockOf(algorithm_, input_, position, chunk).to != position) return std::nullopt;
        return BlockRange(chunk, true);
      case CollectiveKind::kAllToAll:
        if (chunk >= p) return std::nullopt;
        return PairRange(position, chunk, true);
      case CollectiveKind::kSendReceive:
        if (chunk != 0) return std::nullopt;
        return Piece({0, problem_.elements}, 0, 1);
      case CollectiveKind::kBarrier:
      case CollectiveKind::kToHost:  // no message
      case CollectiveKind::kFromHost:
        return std::nullopt;
    }
    internal::FailCheck(__FILE__, __LINE__, "unknown kind");
  }

  std::optional<Range> OutputRange(uint32_t position, uint32_t chunk) const {
    const uint32_t p = input_.ranks();
    switch (input_.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kBroadcast:
        return Piece({0, problem_.elements}, chunk, chunks_);
      case CollectiveKind::kReduce:
        if (order_[position] != problem_.root) return std::nullopt;
        return Piece({0, problem_.elements}, chunk, chunks_);
      case CollectiveKind::kReduceScatter:
        if (BlockOf(algorithm_, input_, position, chunk).to != position) return std::nullopt;
        return BlockRange(chunk, true);
      case CollectiveKind::kAllGather:
        return BlockRange(chunk, false);
      case CollectiveKind::kAllToAll:
        if (chunk < p || chunk >= 2 * p) return std::nullopt;
        return PairRange(position, chunk, false);
      case CollectiveKind::kSendReceive:
        if (chunk != 1) return std::nullopt;
        return Piece({0, problem_.elements}, 0, 1);
      case CollectiveKind::kBarrier:
      case CollectiveKind::kToHost:  // no message
      case CollectiveKind::kFromHost:
        return std::nullopt;
    }
    internal::FailCheck(__FILE__, __LINE__, "unknown kind");
  }

  // The messages of the position's present step.
  std::pair<size_t, size_t> Present(uint32_t position) const {
    const std::vector<Leg>& messages = messages_[position];
    const size_t begin = next_[position];
    size_t end = begin;
    while (end < messages.size() && messages[end].step == messages[begin].step) ++end;
    return {begin, end};
  }

  // Sends what the present step has to send; then ends it, if all that it receives has come.
  bool Advance(uint32_t position, Traffic* traffic) {
    const auto [begin, end] = Present(position);
    if (begin == end) return false;
    const std::vector<Leg>& messages = messages_[position];
    if (!has_sent_[position]) {
      for (size_t i = begin; i < end; ++i) {
        if (messages[i].from == position) Send(messages[i], traffic);
      }
      if (traffic) CountMessages(position, begin, end, traffic);
      has_sent_[position] = true;
    }
    std::map<uint32_t, size_t> needs;
    for (size_t i = begin; i < end; ++i) {
      if (messages[i].to == position) ++needs[messages[i].from];
    }
    for (const auto& [from, count] : needs) {
      if (sent_[{from, position}].size() < count) return false;
    }
    for (size_t i = begin; i < end; ++i) {
      if (messages[i].to == position) Receive(messages[i]);
    }
    next_[position] = end;
    has_sent_[position] = false;
    return true;
  }

  void Send(const Leg& leg, Traffic* traffic) {
    std::vector<Values> message;
    for (uint32_t k = 0; k < leg.read.count; ++k) {
      const std::optional<Values>& chunk = space_[leg.from][leg.read.At(0, k)];
      CHECK(chunk.has_value());
      if (traffic && leg.from != leg.to) {
        traffic->by_pair[{Member(leg.from), Member(leg.to)}].elements += chunk->size();
      }
      message.push_back(*chunk);
    }
    sent_[{leg.from, leg.to}].push_back(std::move(message));
  }

  void CountMessages(uint32_t position, size_t begin, size_t end, Traffic* traffic) const {
    std::set<uint32_t> receivers;
    for (size_t i = begin; i < end; ++i) {
      const Leg& leg = messages_[position][i];
      if (leg.from == position && leg.to != position) receivers.insert(leg.to);
    }
    for (const uint32_t to : receivers) {
      ++traffic->by_pair[{Member(position), Member(to)}].messages;
    }
    traffic->steps = std::max(traffic->steps, messages_[position][begin].step + 1);
  }

  void Receive(const Leg& leg) {
    std::deque<std::vector<Values>>& queue = sent_[{leg.from, leg.to}];
    const std::vector<Values> message = std::move(queue.front());
    queue.pop_front();
    CHECK_EQ(message.size(), leg.write.count);
    for (uint32_t k = 0; k < leg.write.count; ++k) {
      std::optional<Values>& chunk = space_[leg.to][leg.write.At(0, k)];
      const bool switch_begins = leg.to >= input_.ranks() && !chunk.has_value();
      if (leg.combine == Combine::kCopy || switch_begins) {
        chunk = message[k];
        continue;
      }
      CHECK(chunk.has_value());
      CHECK_EQ(chunk->size(), message[k].size());
      for (size_t i = 0; i < chunk->size(); ++i) (*chunk)[i] += message[k][i];
    }
  }

  uint32_t Member(uint32_t position) const {
    const uint32_t p = input_.ranks();
    return position < p ? order_[position]
                        : position + static_cast<uint32_t>(index_) * algorithm_.switches(input_);
  }

  const Algorithm& algorithm_;
  const std::vector<Part>& parts_;
  const size_t index_;
  const StepInput& input_;
  const std::vector<uint32_t>& order_;
  const DataProblem& problem_;
  const uint32_t chunks_;
  std::vector<std::vector<std::optional<Values>>> space_;  // [position][chunk]
  std::vector<std::vector<Leg>> messages_;                 // by position
  std::vector<size_t> next_;                               // by position: of its messages
  std::vector<bool> has_sent_;                             // by position: the present step's
  std::map<std::pair<uint32_t, uint32_t>, std::deque<std::vector<Values>>> sent_;
};

uint64_t OutputSize(const DataProblem& problem, uint32_t member) {
  switch (problem.kind) {
    case CollectiveKind::kReduceScatter:
      return PartOf(problem.elements, member, problem.members).size();
    case CollectiveKind::kReduce:
      return member == problem.root ? problem.elements : 0;
    case CollectiveKind::kAllToAll: {
      uint64_t size = 0;
      for (uint32_t from = 0; from < problem.members; ++from) {
        size += PairElements(problem, from, member);
      }
      return size;
    }
    case CollectiveKind::kBarrier:
      return 0;
    default:
      return problem.elements;
  }
}

}  // namespace

Range PartOf(uint64_t n, uint64_t index, uint64_t count) {
  return {index * n / count, (index + 1) * n / count};
}

uint64_t PairElements(const DataProblem& problem, uint32_t from, uint32_t to) {
  if (!problem.pair_elements.empty()) {
    return problem.pair_elements[size_t{from} * problem.members + to];
  }
  return PartOf(problem.elements, to, problem.members).size();
}

Data Interpret(const Algorithm& algorithm, const std::vector<Part>& parts,
               const DataProblem& problem, const Data& inputs, uint64_t seed, Traffic* traffic) {
  CHECK_EQ(inputs.size(), problem.members);
  Data outputs(problem.members);
  for (uint32_t member = 0; member < problem.members; ++member) {
    outputs[member].resize(OutputSize(problem, member));
  }
  for (size_t index = 0; index < parts.size(); ++index) {
    PartRun run(algorithm, parts, index, problem);
    run.Fill(inputs);
    run.Run(seed + index, traffic);
    run.Empty(&outputs);
  }
  return outputs;
}

}  // namespace rehearse
