#include "tests/doubles/graphs.h"

#include "real/cuda/libraries.h"

namespace rehearse::gpu_double {
namespace {

World& world() { return World::Get(); }

int& CapturesOfThread() {
  thread_local int captures = 0;
  return captures;
}

struct Graph {
  std::shared_ptr<Capture> capture;
};

struct Executable {
  std::shared_ptr<Capture> capture;
  std::map<const Stream*, Stream*> streams;
};

// Whether everything the streams did comes before what the first one does next.
bool IsJoined(const Capture& capture) {
  const Clock& known = capture.clocks.at(capture.first);
  for (const auto& [stream, clock] : capture.clocks) {
    const auto last = clock.find(stream->id);
    if (last == clock.end()) continue;
    const auto seen = known.find(stream->id);
    if (seen == known.end() || seen->second < last->second) return false;
  }
  return true;
}

}  // namespace

void Capture::Add(Stream* stream, std::function<void(Replay*)> action) {
  ++clocks[stream][stream->id];
  actions.push_back(std::move(action));
}

bool IsCapturing() { return CapturesOfThread() > 0; }

bool KeepForReplay(Stream* stream, const std::function<void(Stream*)>& action) {
  if (stream->capture == nullptr) return false;
  stream->capture->Add(stream,
                       [stream, action](Replay* replay) { action(replay->streams.at(stream)); });
  return true;
}

#define FAIL_IF_TOLD(name) \
  if (world().ShouldFail(#name)) return kPretendedFailure

GPU_DOUBLE_ENTRY cudaStreamBeginCapture(Stream* stream, CaptureMode mode) {
  FAIL_IF_TOLD(cudaStreamBeginCapture);
  if (stream->capture != nullptr || mode != CaptureMode::kThreadLocal) return kInvalidValue;
  stream->capture = std::make_shared<Capture>(stream);
  stream->capture->clocks[stream];
  ++CapturesOfThread();
  return kSuccess;
}

// Ends the capture in any case.
GPU_DOUBLE_ENTRY cudaStreamEndCapture(Stream* stream, Graph** graph) {
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr || capture->first != stream) return kInvalidValue;
  for (const auto& [captured, clock] : capture->clocks) captured->capture.reset();
  --CapturesOfThread();
  FAIL_IF_TOLD(cudaStreamEndCapture);
  if (!IsJoined(*capture)) return kCaptureUnjoined;
  *graph = new Graph{capture};
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaGraphInstantiateWithFlags(Executable** executable, Graph* graph,
                                               unsigned long long) {
  FAIL_IF_TOLD(cudaGraphInstantiateWithFlags);
  auto made = std::make_unique<Executable>();
  made->capture = graph->capture;
  for (const auto& [stream, clock] : graph->capture->clocks)
    made->streams[stream] = world().MakeStream();
  *executable = made.release();
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaGraphLaunch(Executable* executable, Stream* stream) {
  FAIL_IF_TOLD(cudaGraphLaunch);
  Event before;
  world().Record(&before, stream);
  for (const auto& [captured, own] : executable->streams) world().Wait(own, before);
  Replay replay{executable->streams, std::vector<Event>(executable->capture->marks)};
  for (const auto& action : executable->capture->actions) action(&replay);
  for (const auto& [captured, own] : executable->streams) {
    Event after;
    world().Record(&after, own);
    world().Wait(stream, after);
  }
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaGraphExecDestroy(Executable* executable) {
  for (const auto& [captured, own] : executable->streams) world().DestroyStream(own);
  delete executable;
  FAIL_IF_TOLD(cudaGraphExecDestroy);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaGraphDestroy(Graph* graph) {
  delete graph;
  FAIL_IF_TOLD(cudaGraphDestroy);
  return kSuccess;
}

}  // namespace rehearse::gpu_double
