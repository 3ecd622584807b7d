// What comes over a connection of the TCP transport, as the rank at its end receives it: a hello,
// then frames until one is wrong.
#include <cstring>

#include <sys/socket.h>
#include <unistd.h>

#include "real/transports/tcp_socket.h"
#include "real/transports/tcp_wire.h"
#include "sim/base/error.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

constexpr uint32_t kRanks = 4;

// Written to the receiver's socket in one piece: its buffer takes kLongestStream.
constexpr size_t kLongestStream = size_t{1} << 16;

void ReadStream(std::string_view input, uint32_t neighbour, uint32_t receiver) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  Socket theirs(ends[0]);
  Socket ours(ends[1]);
  CHECK(theirs.Send(input.data(), input.size()));
  theirs.ShutDown();
  WireFrame frame;
  std::string data;
  while (ours.ReceiveAll(&frame, sizeof frame) &&
         FaultOf(frame, neighbour, receiver, kRanks).empty()) {
    if (!ours.ReceiveText(frame.bytes, &data)) break;
    CHECK(data.size() == frame.bytes);
    CHECK(frame.from < kRanks && frame.to < kRanks);
  }
}

void ReadFrames(std::string_view input) {
  const std::string_view stream = input.substr(0, kLongestStream);
  ReadStream(stream, 1, 0);
  ReadStream(stream, 0, 2);
}

std::string Frames(const std::vector<WireFrame>& frames) {
  std::string text;
  for (const WireFrame& frame : frames) {
    text.append(reinterpret_cast<const char*>(&frame), sizeof frame);
    text.append(frame.bytes, 'x');
  }
  return text;
}

std::vector<std::string> FrameSeeds() {
  return {
      Frames({{FrameKind::kMessage, 1, 0, 7, 100}, {FrameKind::kMessage, 1, 2, 8, 3}}),
      Frames({{FrameKind::kAlive, 1, 0, 0, 0}, {FrameKind::kAbort, 1, 0, 0, 20}}),
      Frames({{FrameKind::kMessage, 1, 2, kBarrierTag, 1}, {FrameKind::kFarewell, 0, 2, 0, 0}})};
}

std::vector<std::string> FrameWords() {
  std::vector<std::string> words;
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, uint64_t{4}, kLongestMessage,
                                kLongestMessage + 1, kLongestReason + 1, UINT64_MAX}) {
    words.emplace_back(reinterpret_cast<const char*>(&number), sizeof number);
    words.emplace_back(reinterpret_cast<const char*>(&number), sizeof(uint32_t));
  }
  words.push_back(Frames({{FrameKind::kMessage, 1, 0, 7, 0}}));
  words.push_back(Frames({{FrameKind::kMessage, 3, 2, kBarrierTag, 1}}));
  return words;
}

const FuzzTargetRow kFramesRow({"tcp_frames", ReadFrames, FrameSeeds, FrameWords,
                                FuzzLanguage::kBytes});

}  // namespace
}  // namespace rehearse
