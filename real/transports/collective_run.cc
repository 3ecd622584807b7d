#include "real/transports/collective_run.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "real/transports/collective_messages.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

// A member's chunks in memory.
template <typename T>
class Space {
 public:
  Space(const StepMessages& steps, CollectiveKind kind, uint32_t ranks)
      : steps_(steps), kind_(kind), ranks_(ranks) {}

  T* memory = nullptr;    // in place; for all-to-all, what is sent
  T* arriving = nullptr;  // all-to-all: what is received
  T* scratch = nullptr;   // all-to-all: further chunks
  uint64_t elements = 0;  // of `memory`

  std::span<T> Chunk(uint32_t chunk) const {
    if (kind_ == CollectiveKind::kAllToAll) {
      const uint64_t block = elements / ranks_;
      T* const base[] = {memory, arriving, scratch};
      const uint32_t part = std::min(chunk / ranks_, 2u);
      return {base[part] + (chunk - part * ranks_) * block, block};
    }
    if (steps_.blocks.empty()) return Part({memory, elements}, chunk, steps_.chunks);
    const uint64_t block = elements / ranks_;
    return Part({memory + steps_.blocks[chunk] * block, block}, chunk / ranks_,
                steps_.chunks / ranks_);
  }

 private:
  static std::span<T> Part(std::span<T> whole, uint64_t part, uint64_t parts) {
    const uint64_t begin = part * whole.size() / parts;
    return whole.subspan(begin, (part + 1) * whole.size() / parts - begin);
  }

  const StepMessages& steps_;
  CollectiveKind kind_;
  uint32_t ranks_;
};

template <typename T>
void Reduce(Reduction reduction, const T* from, T* to, size_t n) {
  if (reduction == Reduction::kMaximum) {
    for (size_t i = 0; i < n; ++i) to[i] = std::max(to[i], from[i]);
  } else {
    for (size_t i = 0; i < n; ++i) to[i] += from[i];
  }
}

// One message of the current step.
template <typename T>
struct Posted {
  const StepMessage* message = nullptr;
  Transport::Handle handle;
  std::vector<T> buffer;  // if it does not go directly from or into the space
};

template <typename T>
class Runner {
 public:
  Runner(Transport& transport, const CollectiveCall<T>& call, const Space<T>& space)
      : transport_(transport), call_(call), space_(space) {}

  void Run(const std::vector<StepMessage>& messages) {
    for (size_t first = 0; first < messages.size();) {
      size_t last = first;
      while (last < messages.size() && messages[last].step == messages[first].step) ++last;
      Step(std::span(messages).subspan(first, last - first));
      first = last;
    }
  }

 private:
  void Step(std::span<const StepMessage> messages) {
    posted_.clear();
    for (const StepMessage& message : messages) {
      if (!message.sends) PostReceive(message, messages);
    }
    for (const StepMessage& message : messages) {
      if (message.sends) PostSend(message);
    }
    for (Posted<T>& posted : posted_) transport_.Wait(std::move(posted.handle));
    for (const Posted<T>& posted : posted_) {
      if (!posted.message->sends && !posted.buffer.empty()) TakeIn(posted);
    }
  }

  // A single chunk is sent and received without a copy, unless it has to be added or is being sent
  // at the same time.
  bool IsDirect(const StepMessage& message, std::span<const StepMessage> step) const {
    if (message.chunks.size() != 1 || message.reduces) return false;
    return std::none_of(step.begin(), step.end(), [&](const StepMessage& other) {
      return other.sends && std::find(other.chunks.begin(), other.chunks.end(),
                                      message.chunks[0]) != other.chunks.end();
    });
  }

  uint64_t Elements(const StepMessage& message) const {
    uint64_t elements = 0;
    for (const uint32_t chunk : message.chunks) elements += space_.Chunk(chunk).size();
    return elements;
  }

  void PostReceive(const StepMessage& message, std::span<const StepMessage> step) {
    const uint64_t elements = Elements(message);
    if (elements == 0) return;
    Posted<T> posted{&message, nullptr, {}};
    T* memory = nullptr;
    if (IsDirect(message, step)) {
      memory = space_.Chunk(message.chunks[0]).data();
    } else {
      posted.buffer.resize(elements);
      memory = posted.buffer.data();
    }
    posted.handle = transport_.Receive(call_.group->ranks[message.peer], call_.tag, memory,
                                       elements * sizeof(T));
    posted_.push_back(std::move(posted));
  }

  void PostSend(const StepMessage& message) {
    const uint64_t elements = Elements(message);
    if (elements == 0) return;
    Posted<T> posted{&message, nullptr, {}};
    const T* memory = nullptr;
    if (message.chunks.size() == 1) {
      memory = space_.Chunk(message.chunks[0]).data();
    } else {
      posted.buffer.reserve(elements);
      for (const uint32_t chunk : message.chunks) {
        const std::span<T> data = space_.Chunk(chunk);
        posted.buffer.insert(posted.buffer.end(), data.begin(), data.end());
      }
      memory = posted.buffer.data();
    }
    posted.handle =
        transport_.Send(call_.group->ranks[message.peer], call_.tag, memory, elements * sizeof(T));
    posted_.push_back(std::move(posted));
  }

  void TakeIn(const Posted<T>& posted) {
    const T* from = posted.buffer.data();
    for (const uint32_t chunk : posted.message->chunks) {
      const std::span<T> to = space_.Chunk(chunk);
      if (posted.message->reduces) {
        Reduce(call_.collective->reduction, from, to.data(), to.size());
      } else {
        std::copy(from, from + to.size(), to.data());
      }
      from += to.size();
    }
  }

  Transport& transport_;
  const CollectiveCall<T>& call_;
  const Space<T>& space_;
  std::vector<Posted<T>> posted_;
};

template <typename T>
void CopyUnlessSame(const T* from, uint64_t n, T* to) {
  if (from != to) std::copy(from, from + n, to);
}

// Everybody sends to the next member, and receives from the previous one.
template <typename T>
void SendToNext(Transport& transport, const CollectiveCall<T>& call) {
  const Group& group = *call.group;
  CHECK_EQ(call.from_elements, call.to_elements);
  CHECK(call.from != call.to);
  const uint32_t p = group.size();
  const size_t bytes = call.from_elements * sizeof(T);
  Transport::Handle coming =
      transport.Receive(group.ranks[(group.member + p - 1) % p], call.tag, call.to, bytes);
  Transport::Handle going =
      transport.Send(group.ranks[(group.member + 1) % p], call.tag, call.from, bytes);
  transport.Wait(std::move(coming));  // a sender may wait until the other takes the message
  transport.Wait(std::move(going));
}

// In an all-to-all whose pairs have different sizes, what is received is in the order of members.
template <typename T>
void ExchangePairs(Transport& transport, const CollectiveCall<T>& call) {
  const Group& group = *call.group;
  const uint32_t p = group.size();
  const double element = SizeOf(call.collective->dtype).value();
  const auto elements = [&](uint32_t from, uint32_t to) {
    const Bytes bytes = call.collective->pair_bytes[size_t{from} * p + to];
    return static_cast<uint64_t>(std::llround(bytes.value() / element));
  };
  std::vector<Transport::Handle> handles;
  uint64_t coming = 0;
  uint64_t going = 0;
  uint64_t own = 0;
  for (uint32_t other = 0; other < p; ++other) {
    const uint64_t n = elements(other, group.member);
    if (other == group.member) {
      own = coming;
    } else if (n > 0) {
      handles.push_back(
          transport.Receive(group.ranks[other], call.tag, call.to + coming, n * sizeof(T)));
    }
    coming += n;
  }
  for (uint32_t other = 0; other < p; ++other) {
    const uint64_t n = elements(group.member, other);
    if (other == group.member) {
      std::copy(call.from + going, call.from + going + n, call.to + own);
    } else if (n > 0) {
      handles.push_back(
          transport.Send(group.ranks[other], call.tag, call.from + going, n * sizeof(T)));
    }
    going += n;
  }
  CHECK_EQ(coming, call.to_elements);
  CHECK_EQ(going, call.from_elements);
  for (Transport::Handle& handle : handles) transport.Wait(std::move(handle));
}

// In step k a member hears from the 2^k before it, in the end from all.
void MeetAll(Transport& transport, const Group& group, uint32_t tag) {
  const uint32_t p = group.size();
  for (uint32_t distance = 1; distance < p; distance *= 2) {
    char heard = 0;
    const char said = 0;
    Transport::Handle coming =
        transport.Receive(group.ranks[(group.member + p - distance) % p], tag, &heard, 1);
    Transport::Handle going =
        transport.Send(group.ranks[(group.member + distance) % p], tag, &said, 1);
    transport.Wait(std::move(coming));
    transport.Wait(std::move(going));
  }
}

}  // namespace

Group GroupOf(const Communicator& communicator, uint32_t rank) {
  const auto position = communicator.PositionOf(rank);
  if (!position) {
    throw Error(fmt::format("rank {} is in no group of \"{}\"", rank, communicator.name()));
  }
  Group group;
  group.member = position->member;
  for (uint32_t member = 0; member < communicator.size(); ++member) {
    group.ranks.push_back(communicator.Rank(position->group, member));
  }
  return group;
}

template <typename T>
void RunCollective(Transport& transport, const CollectiveCall<T>& call) {
  const Group& group = *call.group;
  const uint32_t p = group.size();
  const CollectiveKind kind = call.collective->kind;
  if (p == 1) {
    CopyUnlessSame(call.from, std::min(call.from_elements, call.to_elements), call.to);
    return;
  }

  if (kind == CollectiveKind::kSendReceive) {
    SendToNext(transport, call);
    return;
  }
  if (kind == CollectiveKind::kBarrier) {
    MeetAll(transport, group, call.tag);
    return;
  }
  if (!call.collective->pair_bytes.empty()) {
    ExchangePairs(transport, call);
    return;
  }
  const StepMessages steps =
      MessagesOf(*call.collective, p, group.member, call.from_elements * sizeof(T));
  Space<T> space(steps, kind, p);
  std::vector<T> own;  // memory that the caller does not give
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast:
      CHECK_EQ(call.from_elements, call.to_elements);
      CopyUnlessSame(call.from, call.from_elements, call.to);
      space.memory = call.to;
      space.elements = call.to_elements;
      break;
    case CollectiveKind::kReduce:  // only the root's `to` is written
      CHECK_EQ(call.from_elements, call.to_elements);
      own.assign(call.from, call.from + call.from_elements);
      space.memory = own.data();
      space.elements = call.from_elements;
      break;
    case CollectiveKind::kAllGather:
      CHECK_EQ(call.to_elements, p * call.from_elements);
      CopyUnlessSame(call.from, call.from_elements, call.to + group.member * call.from_elements);
      space.memory = call.to;
      space.elements = call.to_elements;
      break;
    case CollectiveKind::kReduceScatter:
      CHECK_EQ(call.from_elements, p * call.to_elements);
      own.assign(call.from, call.from + call.from_elements);
      space.memory = own.data();
      space.elements = call.from_elements;
      break;
    case CollectiveKind::kAllToAll: {
      CHECK_EQ(call.from_elements, call.to_elements);
      CHECK(call.from != call.to);
      CHECK_EQ(call.from_elements % p, 0u);
      const uint64_t block = call.from_elements / p;
      own.resize((steps.chunks - 2 * p) * block);
      space.memory = const_cast<T*>(call.from);  // steps write only to chunks p and above
      space.arriving = call.to;
      space.scratch = own.data();
      space.elements = call.from_elements;
      CopyUnlessSame(call.from + group.member * block, block, call.to + group.member * block);
      break;
    }
    case CollectiveKind::kSendReceive:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kToHost:
    case CollectiveKind::kFromHost:
      CHECK(false);  // above
  }
  Runner<T>(transport, call, space).Run(steps.messages);
  if (kind == CollectiveKind::kReduceScatter) {
    const T* mine = own.data() + group.member * call.to_elements;
    std::copy(mine, mine + call.to_elements, call.to);
  } else if (kind == CollectiveKind::kReduce && group.member == call.collective->root) {
    std::copy(own.begin(), own.end(), call.to);
  }
}

namespace {

class OwnCollectives : public Collectives {
 public:
  explicit OwnCollectives(Transport& transport) : transport_(transport) {}
  const char* name() const override { return "own"; }
  void Run(const CollectiveCall<float>& call) override { RunCollective(transport_, call); }
  void Run(const CollectiveCall<double>& call) override { RunCollective(transport_, call); }

 private:
  Transport& transport_;
};

}  // namespace

std::unique_ptr<Collectives> MakeOwnCollectives(Transport& transport) {
  return std::make_unique<OwnCollectives>(transport);
}

template void RunCollective<float>(Transport& transport, const CollectiveCall<float>& call);
template void RunCollective<double>(Transport& transport, const CollectiveCall<double>& call);

}  // namespace rehearse
