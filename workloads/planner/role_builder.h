// Writes one role of a Schedule op by op, as a training framework would issue it.
//
// Dependencies are not written by hand: each op says which buffers it reads and writes, and the
// builder orders it after the last writer (and, for a write, after the readers since) of any
// element it touches, wherever streams alone do not. A communication op also waits for all compute
// issued before it, as PyTorch's collectives wait for the current stream; a *blocking* one makes
// the next compute op wait for it. Edges that are implied by others are left out. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "sim/schedule/schedule.h"

namespace rehearse {

class RoleBuilder {
 public:
  // One compute stream, and one communication stream for each communicator of the schedule, with
  // its name.
  RoleBuilder(std::string name, const std::vector<Communicator>& communicators);

  // One more communication stream: for the collectives of a communicator that the schedule got
  // later, or for messages.
  void AddStream(const Communicator& communicator, CommunicatorId id);
  StreamId AddStream(std::string name, StreamKind kind = StreamKind::kCommunication);
  bool HasStream(CommunicatorId communicator) const {
    return communicator.index() < stream_of_.size() && stream_of_[communicator.index()].IsSet();
  }

  StreamId StreamOf(CommunicatorId communicator) const { return stream_of_[communicator.index()]; }

  BufferId AddBuffer(std::string name, BufferKind kind, Bytes bytes);
  BufferId AddBuffer(Buffer buffer);
  const Buffer& BufferOf(BufferId buffer) const { return role_.buffers[buffer.index()]; }
  // From now on it counts as a part of another.
  void Borrow(BufferId buffer) { role_.buffers[buffer.index()].borrowed = true; }
  uint32_t AddRegion(Region region);

  // What the following ops are part of.
  void set_tag(Tag tag) { tag_ = tag; }
  const Tag& tag() const { return tag_; }

  OpId AddCompute(std::string name, Compute compute, std::vector<BufferId> reads,
                  std::vector<BufferId> writes);

  // On a compute stream other than the first, beside what runs there: a kernel that waits only for
  // its buffers.
  OpId AddComputeBeside(std::string name, Compute compute, StreamId stream,
                        std::vector<BufferId> reads, std::vector<BufferId> writes);

  // A wait on such a stream, which ends before the next kernel on the first one begins.
  OpId AddWait(std::string name, Compute wait, StreamId stream);

  enum class Issue : uint8_t { kBlocking, kAsynchronous };
  OpId AddCollective(std::string name, Collective collective, Issue issue,
                     std::vector<BufferId> reads, std::vector<BufferId> writes);

  // What has been communicated from that op on is awaited by the next compute op.
  void AwaitSince(size_t first_op);

  // A Send or Receive.
  OpId AddMessage(std::string name, Work message, StreamId stream, Issue issue,
                  std::vector<BufferId> reads, std::vector<BufferId> writes);

  // A copy to or from the host by the copy engines: begins after `since` and what its buffers need,
  // and nothing waits for it but what needs them.
  OpId AddHostCopy(std::string name, Collective copy, StreamId stream, OpId since,
                   std::vector<BufferId> reads, std::vector<BufferId> writes);
  // The next compute op waits for it.
  void Await(OpId op) { pending_.push_back(op.index()); }
  // Of the first compute stream; not set if there is none.
  OpId LastCompute() const;

  // What has been written so far.
  const Role& role() const { return role_; }
  // The last ops and buffers are a body that is repeated. What comes next is planned as if its last
  // copy had just been written.
  void AddRepeat(const Repeat& repeat);

  Role Build();

 private:
  // The ops that touched a part of a buffer last.
  struct Access {
    Footprint part;
    std::optional<uint32_t> writer;
    boost::container::small_vector<uint32_t, 4> readers;  // since the last write
  };

  OpId Add(Op&& op, const std::vector<uint32_t>& extra);
  OpId AddCommunication(Op&& op, std::vector<BufferId> reads, std::vector<BufferId> writes);
  Access& Touch(BufferId buffer, bool writes, uint32_t op, std::vector<uint32_t>* before);

  Role role_;
  Tag tag_;
  // By buffer: its parts, of which most have one.
  std::vector<boost::container::small_vector<Access, 1>> accesses_;
  // By op, one after the other: for each stream the last op (plus one) that is known to be done
  // before the op begins; streams that were added later are missing.
  std::vector<uint32_t> clocks_;
  std::vector<size_t> clock_begin_ = {0};      // by op, and where the last one ends
  std::vector<std::optional<uint32_t>> last_;  // by stream
  std::vector<StreamId> stream_of_;            // by communicator; not set if it has none (yet)
  std::vector<uint32_t> pending_;              // blocking ops that the next compute op waits for
  std::vector<uint32_t> before_;               // while an op is added: those before it
};

}  // namespace rehearse
