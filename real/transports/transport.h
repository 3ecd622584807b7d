// Messages between the ranks of one run: what collectives and sends are made of.
//
// Send and Receive only post; the memory belongs to the message until Wait returns. The k-th
// message from a to b with a tag meets the k-th receive at b from a with that tag, and must have
// the same length. A send may wait for its receive (rendezvous). Any number of threads of a rank
// may use one Transport; Wait must be called by the thread that posted.
//
// If a rank ends too early, for whatever reason, Wait and Barrier of every other rank throw
// RankLost within seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "sim/base/visible_text.h"

namespace rehearse {

// Another rank has ended or given up; says which, where and why.
class RankLost : public std::runtime_error {
 public:
  explicit RankLost(const std::string& reason) : std::runtime_error(VisibleLines(reason)) {}
};

class Transport {
 public:
  // A message on its way; only the transport knows what it is.
  struct Message {
    virtual ~Message() = default;
  };
  using Handle = std::unique_ptr<Message>;

  virtual ~Transport() = default;
  virtual const char* name() const = 0;  // "threads", "mpi"
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  // Ranks that share this one's cores.
  virtual uint32_t ranks_on_host() const = 0;
  // Whether all ranks read the same clock.
  virtual bool has_common_clock() const = 0;

  virtual Handle Send(uint32_t to, uint32_t tag, const void* data, size_t bytes) = 0;
  virtual Handle Receive(uint32_t from, uint32_t tag, void* data, size_t bytes) = 0;
  virtual void Wait(Handle handle) = 0;
  virtual void Barrier() = 0;
  // Throws RankLost if another rank has ended or given up. Ranks that wait for something other than
  // messages (a GPU) call it.
  virtual void Check() = 0;

  // Tells the others that this rank gives up, so that they throw RankLost(reason). Does not throw.
  virtual void Abort(const std::string& reason) noexcept = 0;
  // What the rank is doing now, for the others' messages in case it is lost: `text` must live as
  // long as the run.
  virtual void set_activity(const char* text) noexcept = 0;
};

// Tags from here on are free for measurements and bookkeeping between steps.
inline constexpr uint32_t kControlTag = 1u << 20;

}  // namespace rehearse
